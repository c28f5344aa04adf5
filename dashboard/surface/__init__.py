"""Loss surfaces, drawn on Paper."""
