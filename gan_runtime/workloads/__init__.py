"""The GAN systems, written in keras and keras.ops only; none of them knows an engine."""
