"""The TensorFlow engine: tf.distribute, one process for each worker."""
