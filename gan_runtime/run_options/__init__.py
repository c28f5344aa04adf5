"""The options of a run by group; RunSpec (gan_runtime/spec.py) is made of them."""
