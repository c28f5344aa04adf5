"""Every change that a person may ask for."""
