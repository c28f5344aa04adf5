"""GANs, written in keras and keras.ops only; none depends on an engine."""
