"""The parts of the Flow page."""
