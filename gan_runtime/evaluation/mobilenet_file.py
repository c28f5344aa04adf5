"""The weights file of MobileNetV2 in Keras' cache. Loads no framework."""

from __future__ import annotations

import contextlib
from pathlib import Path

from gan_runtime.base.framework_settings import keras_cache

# Sandler et al. 2018, arXiv:1801.04381: 1,280 features.
MOBILENET = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224_no_top.h5"


def mobilenet_path() -> Path:
    """Where Keras stores it. Raises RuntimeError for a user without a home folder."""
    return keras_cache().with_name("models") / MOBILENET


def has_mobilenet() -> bool:
    """Whether it is on this machine, so that nothing is downloaded."""
    with contextlib.suppress(OSError, RuntimeError):
        return mobilenet_path().is_file()
    return False
