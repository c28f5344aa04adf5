"""The GANs, written in keras and keras.ops only, independent of the engine."""
