"""The parts of the Physics page."""
