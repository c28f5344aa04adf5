"""What this host offers: devices, processors, presets, and the settings of frameworks."""
