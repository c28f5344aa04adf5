"""The tf.distribute strategy of a run, and the exchange between workers in each call.

The TPU path follows the TensorFlow guide and has not run on hardware (docs/tpu.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.base import cluster
from gan_runtime.base.cluster import Members
from gan_runtime.base.errors import AcceleratorError, cause
from gan_runtime.engines.contract import DeviceMemory, WorkerSeconds, WorkerStatus
from gan_runtime.spec import RunSpec

Result = TypeVar("Result")


class SharedMemoryMirroredStrategy(tf.distribute.MirroredStrategy):
    """Simulated cores share one memory, where exchanges are summed and weights are updated once.

    MirroredStrategy itself sums over CPUs in a ring of collectives, which packs, copies and unpacks
    for each replica. The single update is in tf/optimizers.py.
    """

    def __init__(self, devices: list[str]) -> None:
        super().__init__(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())


def make_strategy(spec: RunSpec, accelerator: str) -> tf.distribute.Strategy:
    """The strategy for `accelerator` (resolved: cpu, gpu or tpu) with `spec.replicas` replicas.

    Must run before TensorFlow starts its devices, which fixes the number of simulated cores.

    Raises:
        AcceleratorError: there are fewer devices than replicas, or TensorFlow cannot reach the TPU.
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
    return simulated_cores(spec.replicas)


def simulated_cores(cores: int) -> tf.distribute.Strategy:
    """A replica on each of `cores` simulated CPU cores.

    Raises AcceleratorError if the process has started with fewer.
    """
    _simulate_cpu_cores(cores)
    return _mirrored([f"CPU:{index}" for index in range(cores)], SharedMemoryMirroredStrategy)


def fullest_memory(devices: Sequence[str]) -> DeviceMemory | None:
    """The memory of the device with the highest peak; None for CPUs."""
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
    """Joins the other workers that TF_CONFIG names, and waits for them. No TensorFlow call may
    start a device before that.
    """
    if accelerator == "gpu":
        gpus = tf.config.list_physical_devices("GPU")
        # The strategy uses all visible GPUs.
        tf.config.set_visible_devices(gpus[: _gpus(spec.replicas)], "GPU")
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
            f"the run needs {spec.replicas} replicas in each of {spec.workers} workers, but"
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
            f" run needs {replicas}: start it in a new process."
        ) from None


def _gpus(replicas: int) -> int:
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < replicas:
        raise AcceleratorError(
            f"the run needs {replicas} GPU(s), but TensorFlow sees {len(gpus)}: lower replicas,"
            " use accelerator=cpu for simulated cores, or install the GPU build with `make setup`."
        )
    for gpu in gpus:
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
    """The error of a failed TPU start, in one sentence."""
    why = cause(str(error) or type(error).__name__)
    return f"the TPU at {address!r} cannot be used ({why}); or choose accelerator=cpu or gpu."


# ----------------------------------------------------------------------
# Several workers: what they exchange in each call, and how long each waits for the others.
#
# A call begins with one small all-reduce: the stop requests, and the seconds that each worker
# needed for its own part of a step in the call before. So all workers stop at the same step, and
# each knows who is slow. It ends with another one, for the numbers of its steps.
#
# Waiting is the time inside collectives: from the moment a worker's own contribution is ready until
# the result is there, the transfer included. Nothing waits for the time stamps. The host takes
# them: exact on a CPU; on a GPU they mark when work was submitted, not when it was done (not
# verified there).


class WaitClock:
    """Adds time stamps around collectives while a step is traced. Each replica is traced in its own
    thread and has its own stamps.
    """

    def __init__(self, is_on: bool) -> None:
        self._is_on, self._traced = is_on, threading.local()

    def set_own_work(self, results: list[tf.Tensor]) -> None:
        """The replica's own results: until the next call, a collective's wait begins when all of
        them are ready.

        Otherwise the gradients of one network would seem to wait while those of another are being
        computed.
        """
        self._traced.results, self._traced.graph = results, tf.compat.v1.get_default_graph()

    def timed(
        self, exchange: Callable[[], Result], results: list[tf.Tensor] | None = None
    ) -> Result:
        """The result of `exchange`, timed from when `results` are ready.

        None: those of `set_own_work`.
        """
        if not self._is_on or (results is None and self._is_inside_a_branch()):
            return exchange()
        with tf.control_dependencies(self._traced.results if results is None else results):
            begin = tf.timestamp()
        result = exchange()
        with tf.control_dependencies(tf.nest.flatten(result)):
            self._stamps().append(tf.stack([begin, tf.timestamp()]))
        return result

    def after_own_work(self, numbers: tf.Tensor) -> tf.Tensor:
        """The same numbers, ready when everything is computed: losses are ready long before the
        gradients.
        """
        if not self._is_on:
            return numbers
        with tf.control_dependencies(self._traced.results):
            return tf.identity(numbers)

    def take(self) -> tf.Tensor:
        """float64 (collectives, 2): begin and end of those since the last `take` of
        this replica.
        """
        stamps, self._traced.stamps = self._stamps(), []
        return tf.stack(stamps) if stamps else tf.zeros([0, 2], tf.float64)

    def _is_inside_a_branch(self) -> bool:
        """The update under a loss scale is a branch of a condition, whose tensors are invisible
        outside; the exchange of overflows before it is timed.
        """
        return tf.compat.v1.get_default_graph() is not getattr(self._traced, "graph", None)

    def _stamps(self) -> list[tf.Tensor]:
        if not hasattr(self._traced, "stamps"):
            self._traced.stamps = []
        return self._traced.stamps


NO_CLOCK = WaitClock(is_on=False)


def waited_s(stamps: NDArray[np.float64]) -> float:
    """Seconds covered by the intervals (n, 2). Overlaps, as of two networks, count once."""
    waited, until = 0.0, -np.inf
    for begin, end in stamps[np.argsort(stamps[:, 0])]:
        waited += max(0.0, end - max(begin, until))
        until = max(until, end)
    return float(waited)


class Workers:
    """This worker's side of the exchange. `is_one`: there are no other workers, so nothing is
    exchanged.
    """

    def __init__(self, spec: RunSpec, strategy: tf.distribute.Strategy) -> None:
        self.is_one = spec.workers == 1
        self._strategy, self._spec = strategy, spec
        self._rank = 0 if self.is_one else strategy.cluster_resolver.task_id
        # None before the first call, 0 after it, because the first call includes compilation.
        self._own_s: float | None = None

    def message(self, stop_requested: bool) -> tf.Tensor:
        """float32 (1 + workers,): this worker's stop request (0 or 1), and its own seconds per step
        at its rank.
        """
        message = np.zeros(1 + self._spec.workers, np.float32)
        message[0], message[1 + self._rank] = stop_requested, self._own_s or 0.0
        return tf.constant(message)

    def extremes(self, number: int) -> tuple[int, int]:
        """The lowest and the highest number of all workers, below 2^53. All workers
        must call it.
        """
        if self.is_one:
            return number, number
        message = np.zeros(self._spec.workers, np.float64)
        message[self._rank] = number
        exchange = tf.function(lambda: self.sum(tf.constant(message), NO_CLOCK), autograph=False)
        numbers = np.rint(exchange().numpy())
        return int(numbers.min()), int(numbers.max())

    def local(self, value: Any) -> tuple[tf.Tensor, ...]:
        """The values of this worker's replicas."""
        return self._strategy.experimental_local_results(value)

    def local_mean(self, numbers: Any) -> tf.Tensor:
        """The mean over this worker's replicas."""
        if self.is_one:
            return self._strategy.reduce(tf.distribute.ReduceOp.MEAN, numbers, axis=None)
        return tf.reduce_mean(tf.stack(self.local(numbers)), axis=0)

    def mean(self, rows: tf.Tensor, clock: WaitClock) -> tf.Tensor:
        """The mean over all workers, in one exchange for a whole call."""
        return self._exchanged("mean", rows, clock)

    def sum(self, message: tf.Tensor, clock: WaitClock) -> tf.Tensor:
        """The sum of all workers' messages. All workers must call it, once per call."""
        return self._exchanged("sum", message / self._spec.replicas, clock)

    def _exchanged(self, kind: str, value: tf.Tensor, clock: WaitClock) -> tf.Tensor:
        if self.is_one:
            return value

        def on_replica(value: tf.Tensor) -> tf.Tensor:
            # On the replica's device: a value from outside has no device and cannot be reduced.
            return tf.distribute.get_replica_context().all_reduce(kind, tf.identity(value))

        return self.local(
            clock.timed(lambda: self._strategy.run(on_replica, args=(value,)), results=[value])
        )[0]

    def status(
        self, messages: tf.Tensor, stamps: tf.Tensor, steps: int, seconds: float
    ) -> WorkerStatus | None:
        """The worker status after a call of `seconds`; None for a single worker."""
        if self.is_one:
            return None
        wait_s = waited_s(stamps.numpy()) / steps
        own_s = max(0.0, seconds / steps - wait_s)
        self._own_s = 0.0 if self._own_s is None else own_s
        total = messages.numpy()
        return WorkerStatus(
            bool(total[0] > 0),
            WorkerSeconds(own_s, wait_s, tuple(float(value) for value in total[1:])),
        )
