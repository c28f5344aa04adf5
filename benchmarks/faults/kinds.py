"""The table of faults.

Every tenth seed (last digit 0) selects a fault with TensorFlow, every twentieth (5, 25, …) one on a
Slurm cluster; the others train a toy model on this host, or on one that ssh reaches.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.faults import (
    clocks_and_owners,
    damage,
    jobs_and_commands,
    kills,
    on_a_host,
    on_slurm,
    with_tensorflow,
)
from benchmarks.faults.fault import Fault


def _named(*kinds: Fault) -> dict[str, Fault]:
    return {kind.__name__: kind for kind in kinds}


TOYS = _named(
    kills.kill_trainer,
    kills.kill_worker,
    kills.kill_launcher,
    kills.kill_owner,
    kills.kill_all,
    kills.kill_starting,
    kills.kill_at_operation,
    kills.kill_at_sync,
    kills.kill_in_a_write,
    kills.fail_once,
    kills.fail_a_sync,
    kills.fail_a_write,
    kills.kill_owner_at_commit,
    kills.fail_owner_once,
    kills.freeze_and_stop,
    kills.freeze_and_thaw,
    kills.stop_and_kill_owner,
    damage.cut_journal,
    damage.append_garbage,
    damage.flip_bit,
    damage.damage_checkpoint,
    damage.fill_disk,
    damage.nearly_fill_disk,
    damage.read_only_folder,
    clocks_and_owners.shift_clock,
    clocks_and_owners.reuse_pid,
    clocks_and_owners.race_owners,
    clocks_and_owners.take_over,
    jobs_and_commands.kill_preparation,
    jobs_and_commands.kill_import,
    jobs_and_commands.kill_submit,
    damage.damage_database,
    on_a_host.cut_connection,
    on_a_host.lose_host,
    on_a_host.kill_submitting_owner,
    on_a_host.kill_far_trainer,
)
WITH_TENSORFLOW = _named(with_tensorflow.kill_real_trainer, with_tensorflow.stop_real_trainer)
ON_SLURM = _named(
    on_slurm.lose_node,
    on_slurm.cut_node,
    on_slurm.stop_controller,
    on_slurm.preempt_job,
    on_slurm.kill_owner_at_submission,
    on_slurm.open_elsewhere,
)
KINDS: dict[str, Fault] = {**TOYS, **WITH_TENSORFLOW, **ON_SLURM}
EVERY = 10  # one in EVERY seeds trains with TensorFlow
ONE_OF_SLURM, EVERY_OF_SLURM = 5, 20


def kind_of(seed: int, among: Sequence[str] = ()) -> str:
    """The fault of a seed. The kinds take turns, so each is tried equally often."""
    if among:
        return among[seed % len(among)]
    if seed % EVERY == 0:
        return list(WITH_TENSORFLOW)[seed // EVERY % len(WITH_TENSORFLOW)]
    if seed % EVERY_OF_SLURM == ONE_OF_SLURM:
        return list(ON_SLURM)[seed // EVERY_OF_SLURM % len(ON_SLURM)]
    of_others = seed // EVERY + (seed + EVERY_OF_SLURM - ONE_OF_SLURM) // EVERY_OF_SLURM
    return list(TOYS)[(seed - of_others) % len(TOYS)]
