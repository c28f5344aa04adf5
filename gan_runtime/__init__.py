"""Background runtime for distributed GAN training: specs, engines, trainer processes, journals and the results store."""

__version__ = "0.2.0"
