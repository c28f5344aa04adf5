"""The place of this process in a cluster of TensorFlow: TF_CONFIG as it stands, or made from Slurm's variables by its resolver."""

from __future__ import annotations

import os

from gan_runtime.base import cluster
from gan_runtime.base.cluster import Members, Place
from gan_runtime.engines.tf import flags as tf_flags

FIRST_PORT = 18_900  # of the workers on one Slurm node; worker n listens on FIRST_PORT + n


def place(workers: int) -> Place:
    """This process among `workers`. Under Slurm it also sets TF_CONFIG, from which the strategy learns the addresses.

    Raises AcceleratorError as `Members.found`.
    """
    members = Members.found(workers, _in_slurm)
    os.environ.setdefault("TF_CONFIG", cluster.tf_config(list(members.addresses), members.rank))
    return members.place


def leave() -> None:
    """Nothing to do: TensorFlow's workers part without a word."""


def _in_slurm() -> Members:
    tf_flags.keep_jax_out()
    import tensorflow as tf

    # Which GPUs a task may see is Slurm's own business (--gpus-per-task). The resolver would deal them out itself and
    # cannot without any, so it is told of one per task and to leave CUDA_VISIBLE_DEVICES alone.
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=FIRST_PORT, gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
    )
    addresses = tuple(resolver.cluster_spec().as_dict()["worker"])  # first: only then it knows the task
    return Members(int(resolver.task_id), addresses)
