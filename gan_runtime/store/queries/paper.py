"""What the figures of the paper ask of stored runs, beyond the results of a study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gan_runtime import catalog
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

# Options that runs may differ in and still be compared by their speed: how many devices, chance, length, rates, and
# what is watched and kept.
BESIDE_SPEED = (
    "name",
    "seed",
    "epochs",
    "replicas",
    "workers",
    *sorted({rate for entry in catalog.WORKLOADS.values() for rate in entry.rates}),
    "learning_rate_schedule",
    "restart_epochs",
    "adam_beta_1",
    "adam_beta_2",
    "rmsprop_epsilon",
    "weight_snapshots",
    "count_kernels",
    "profile_steps",  # the clock stands still while steps are profiled
    "alarm_action",
    "still_action",
    "resume_lost",
    "collapse_share",
    "d_wins_score",
    "keep_checkpoints",
    "pictures_every",
)
IMPORTED = "host IS NOT NULL AND host->>'hostname' IS NULL"  # a bundle leaves out the host's name


@dataclass(frozen=True)
class Conditions:
    """Under what runs were measured. `images`: of the training set, None before a trainer has loaded it; `devices`: replicas ×
    workers; `imported`: from a bundle, which leaves out the host's name, so that nobody knows whether it was this one."""

    dataset: str
    images: int | None
    accelerator: str
    engine: str
    devices: int
    epochs: int
    cpu_model: str
    cores: int | None
    imported: bool


def conditions(store: Store, run_ids: list[str]) -> list[Conditions]:
    """Each that occurs among these runs, once, by number of devices."""
    rows = store.rows(
        f"""
        SELECT DISTINCT dataset, images, accelerator, engine, replicas * workers AS devices, r.epochs,
               coalesce(host->>'cpu_model', ''), CAST(host->>'cores' AS INTEGER),
               {IMPORTED}
        FROM runs r LEFT JOIN (SELECT run_id, max(images) AS images FROM ingest.plans GROUP BY run_id) USING (run_id)
        WHERE list_contains(?, run_id) ORDER BY ALL
        """,
        [run_ids],
    )
    return sorted((Conditions(*row) for row in rows), key=lambda one: one.devices)


def loss_quartiles(store: Store, run_ids: list[str], metric: str) -> pd.DataFrame:
    """A step number in each epoch: its mean, and how wide the middle half of its values is. Source: the paper's Figs. 7 and 8.

    Columns: run_id, epoch, mean, width. Values that are not finite do not count.
    """
    return store.frame(
        """
        SELECT run_id, epoch, avg(value) AS mean, quantile_cont(value, 0.75) - quantile_cont(value, 0.25) AS width FROM scalars
        WHERE list_contains(?, run_id) AND metric = ? AND isfinite(value) GROUP BY run_id, epoch ORDER BY run_id, epoch
        """,
        [run_ids, metric],
    )


def rates_by_device(store: Store, workload: str) -> pd.DataFrame:
    """Steady speed of the finished runs of a workload, by where and how they trained.

    Columns: accelerator, devices (replicas × workers), precision, batch_size_global, dataset, images (of its training set),
    engine, xla, cpu_model, imported (see `Conditions`), settings (JSON of all options but `BESIDE_SPEED`: runs that agree in
    it can be joined to a line over devices), runs, images_per_s (median over the runs).
    """
    return store.frame(
        f"""
        WITH later AS (
            SELECT run_id, images_per_s FROM epochs QUALIFY epoch > min(epoch) OVER (PARTITION BY run_id, attempt)
        ), speed AS (SELECT run_id, median(images_per_s) AS images_per_s FROM later GROUP BY run_id
        ), sets AS (SELECT run_id, max(images) AS images FROM ingest.plans GROUP BY run_id)
        SELECT accelerator, replicas * workers AS devices, precision, batch_size_global, dataset, images, engine, xla,
               coalesce(host->>'cpu_model', '') AS cpu_model, {IMPORTED} AS imported,
               CAST(json_merge_patch(spec, $beside) AS VARCHAR) AS settings, count(*) AS runs,
               median(images_per_s) AS images_per_s
        FROM runs JOIN speed USING (run_id) LEFT JOIN sets USING (run_id) WHERE workload = $workload AND status = 'finished'
        GROUP BY ALL ORDER BY accelerator, devices, precision, batch_size_global, dataset, settings, cpu_model, imported
        """,
        {"workload": workload, "beside": "{" + ", ".join(f'"{name}": null' for name in BESIDE_SPEED) + "}"},
    )
