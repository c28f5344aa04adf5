"""This host: its devices, its processor, and the presets that fit it."""
