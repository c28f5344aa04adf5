"""From a spec to a tf.distribute strategy: one device, GPUs, simulated CPU cores, or the cores of a
TPU.

The TPU path follows the TensorFlow guide and has not been run on hardware (docs/tpu.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from gan_runtime.base import cluster
from gan_runtime.base.cluster import Members
from gan_runtime.base.errors import AcceleratorError
from gan_runtime.base.tpu_advice import cause
from gan_runtime.engines.contract import DeviceMemory
from gan_runtime.spec import RunSpec


class SharedMemoryMirroredStrategy(tf.distribute.MirroredStrategy):
    """Simulated cores: what their replicas exchange lies in one memory, so it is summed there and
    weights are updated once.

    MirroredStrategy by itself sums over CPUs in a ring of collectives, which packs, copies and
    unpacks for each replica. The single update is in `tf_optimizers`.
    """

    def __init__(self, devices: list[str]) -> None:
        super().__init__(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def make_strategy(spec: RunSpec, accelerator: str) -> tf.distribute.Strategy:
    """The strategy for `accelerator` (already resolved: cpu, gpu or tpu) with `spec.replicas`
    replicas.

    Must run before TensorFlow has started its devices, because simulated cores are fixed by then.

    Raises:
        AcceleratorError: fewer devices than replicas, or TensorFlow cannot reach the TPU.
    """
    if spec.workers > 1:
        return _multi_worker(spec, accelerator)
    if accelerator == "tpu":
        return _tpu(spec)
    if accelerator == "gpu":
        return _mirrored(
            [f"GPU:{index}" for index in range(_gpus(spec.replicas))],
            tf.distribute.MirroredStrategy,
        )
    return simulated(spec.replicas)


def simulated(cores: int) -> tf.distribute.Strategy:
    """A replica on each of so many simulated CPU cores.

    Raises AcceleratorError when the process began with fewer.
    """
    _simulate_cpu_cores(cores)
    return _mirrored([f"CPU:{index}" for index in range(cores)], SharedMemoryMirroredStrategy)


def fullest(devices: Sequence[str]) -> DeviceMemory | None:
    """Memory of the device with the highest peak; None when they are CPUs."""
    names = [tf.DeviceSpec.from_string(device) for device in devices]
    infos = [
        tf.config.experimental.get_memory_info(f"{name.device_type}:{name.device_index}")
        for name in names
        if name.device_type in ("GPU", "TPU")
    ]
    if not infos:
        return None
    highest = max(infos, key=lambda info: info["peak"])
    return DeviceMemory(int(highest["current"]), int(highest["peak"]))


def _mirrored(
    devices: list[str], several: type[tf.distribute.MirroredStrategy]
) -> tf.distribute.Strategy:
    return tf.distribute.OneDeviceStrategy(devices[0]) if len(devices) == 1 else several(devices)


def _multi_worker(spec: RunSpec, accelerator: str) -> tf.distribute.Strategy:
    """Joins the other workers that TF_CONFIG names, and waits for them; before that, no
    TensorFlow call may start a device.
    """
    if accelerator == "gpu":
        gpus = tf.config.list_physical_devices("GPU")
        tf.config.set_visible_devices(
            gpus[: _gpus(spec.replicas)], "GPU"
        )  # the strategy takes all that it sees
    else:
        tf.config.set_visible_devices([], "GPU")
    exchange = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=spec.all_reduce_pack_mb * 1_000_000,
        implementation=exchange.AUTO if accelerator == "gpu" else exchange.RING,
    )
    cluster.meet(Members.in_tf_config())
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    if strategy.num_replicas_in_sync != spec.replicas_in_all:
        raise AcceleratorError(
            f"the run wants {spec.replicas} replicas in each of {spec.workers} workers, but"
            f" TensorFlow makes {strategy.num_replicas_in_sync} replicas in all: use replicas=1 on"
            " the CPU, and one GPU per replica elsewhere."
        )
    return strategy


def _simulate_cpu_cores(replicas: int) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    present = tf.config.get_logical_device_configuration(cpu)
    if present and len(present) >= replicas:
        return
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
        )
    except RuntimeError:
        raise AcceleratorError(
            f"this process already runs TensorFlow with {len(present or [1])} CPU core(s), but the"
            f" run needs {replicas}: start it in a process of its own."
        ) from None


def _gpus(replicas: int) -> int:
    found = tf.config.list_physical_devices("GPU")
    if len(found) < replicas:
        raise AcceleratorError(
            f"the run wants {replicas} GPU(s), but TensorFlow sees {len(found)}: lower replicas,"
            " use accelerator=cpu for simulated cores, or install the GPU build with `make setup`."
        )
    for gpu in found:
        tf.config.experimental.set_memory_growth(gpu, True)
    return replicas


def _tpu(spec: RunSpec) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(spec.tpu_address)
        if spec.tpu_address != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except Exception as error:  # the resolver raises many kinds; all mean "no usable TPU"
        raise AcceleratorError(tpu_advice(spec.tpu_address, error)) from None
    strategy = tf.distribute.TPUStrategy(resolver)
    cores = strategy.num_replicas_in_sync
    if cores != spec.replicas:
        raise AcceleratorError(
            f"replicas is {spec.replicas}, but the TPU at {spec.tpu_address} has {cores} cores: use"
            f" replicas={cores}."
        )
    return strategy


def tpu_advice(address: str, error: Exception) -> str:
    """What a failed TPU start means, in one sentence."""
    why = cause(str(error) or type(error).__name__)
    return f"the TPU at {address!r} cannot be used ({why}); or choose accelerator=cpu or gpu."
