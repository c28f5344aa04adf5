"""What JAX reaches of one kind of accelerator, found out in a process of its own: it shares none
with TensorFlow.

python -m gan_runtime.hardware.jax_devices gpu      prints {"count": 1, "name": "NVIDIA H100"}; ends
with an error where there is none
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

from pydantic import BaseModel, ConfigDict, ValidationError

from gan_runtime.hardware import framework_settings

ASK_SECONDS = 60.0
PLATFORMS = {"gpu": "cuda", "tpu": "tpu"}  # JAX's names
PLUGINS = {"gpu": ("jax_cuda12_plugin", "jax_cuda13_plugin"), "tpu": ("libtpu",)}


class Reached(BaseModel):
    """`count` devices, called `name`."""

    model_config = ConfigDict(frozen=True)
    count: int
    name: str


def is_installed() -> bool:
    """Whether there is a JAX at all; without one only TensorFlow trains."""
    return (
        importlib.util.find_spec("jaxlib") is not None
    )  # `jax` itself may be kept out of this process (tf_process)


def ask(accelerator: str) -> Reached | None:
    """What JAX sees of `accelerator` (gpu or tpu), after some seconds; None when it sees
    none, or its part for it is missing.
    """
    if not is_installed() or not any(
        importlib.util.find_spec(plugin) for plugin in PLUGINS[accelerator]
    ):
        return None
    command = [sys.executable, "-m", "gan_runtime.hardware.jax_devices", accelerator]
    try:
        child = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            env=framework_settings.pinned(os.environ),
            check=False,
        )
        return Reached.model_validate_json(child.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return None
    except (IndexError, ValidationError):
        print(
            child.stderr, file=sys.stderr
        )  # `hosts.explained` reads there why a TPU does not start
        return None


def look(accelerator: str) -> Reached:
    """The answer itself, found in this process.

    Raises RuntimeError when JAX does not start there.
    """
    os.environ["JAX_PLATFORMS"] = PLATFORMS[accelerator]
    import jax

    devices = jax.devices()
    return Reached(count=len(devices), name=devices[0].device_kind)


if __name__ == "__main__":
    print(look(sys.argv[1]).model_dump_json())
