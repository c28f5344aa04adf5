"""The place of this process in a cluster, from TensorFlow's resolvers: TF_CONFIG as it stands, or made from Slurm's variables."""

from __future__ import annotations

import os

import tensorflow as tf

from gan_runtime import cluster
from gan_runtime.cluster import Place
from gan_runtime.errors import AcceleratorError

JOBS = ("chief", "worker")  # in the order of the ranks, as TensorFlow counts them
FIRST_PORT = 18_900  # of the workers on one Slurm node; worker n listens on FIRST_PORT + n


def place(workers: int) -> Place:
    """This process among `workers`. Under Slurm it also sets TF_CONFIG, from which the strategy learns the addresses.

    Raises:
        AcceleratorError: the cluster has another number of workers than the run, or its variables make no sense.
    """
    source = "TF_CONFIG" if "TF_CONFIG" in os.environ else "Slurm"
    try:
        rank, addresses, chiefs = _from_tf_config() if source == "TF_CONFIG" else _from_slurm()
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise AcceleratorError(f"{source} does not say which worker this is ({error!r}): see docs/cluster.md.") from None
    if len(addresses) != workers:
        raise AcceleratorError(
            f"workers is {workers}, but {source} names {len(addresses)} worker(s): start {workers}, or use workers={len(addresses)}."
        )
    if source == "Slurm":
        os.environ["TF_CONFIG"] = cluster.tf_config(addresses, rank)
    return Place(rank, workers, on_cluster=True, chiefs=chiefs)


def _from_tf_config() -> tuple[int, list[str], int]:
    """Rank, addresses in the order of the ranks, and how many of these are chiefs."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    jobs = resolver.cluster_spec().as_dict()
    before = sum(len(jobs.get(job, ())) for job in JOBS[: JOBS.index(resolver.task_type)])
    addresses = [address for job in JOBS for address in jobs.get(job, ())]
    rank = before + int(resolver.task_id)
    if rank >= len(addresses):
        raise ValueError(f"task {resolver.task_type} {resolver.task_id} is not in the cluster")
    return rank, addresses, len(jobs.get("chief", ()))


def _from_slurm() -> tuple[int, list[str], int]:
    """As `_from_tf_config`."""
    # Which GPUs a task may see is Slurm's own business (--gpus-per-task). The resolver would deal them out itself and
    # cannot without any, so it is told of one per task and to leave CUDA_VISIBLE_DEVICES alone.
    tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=FIRST_PORT, gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
    )
    addresses = list(resolver.cluster_spec().as_dict()["worker"])
    return int(resolver.task_id), addresses, 0
