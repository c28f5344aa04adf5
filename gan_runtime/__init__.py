"""Background runtime for distributed GAN training: specs, engines, trainer processes, journals and the results store."""
