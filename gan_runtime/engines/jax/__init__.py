"""The JAX engine: one program over all devices."""
