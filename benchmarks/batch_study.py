"""The equivalence study of docs/quality.md: is a large batch as good as a batch of 64?

python -m benchmarks.batch_study list              lists the parts, up to two hours each on 2 cores
python -m benchmarks.batch_study run PART HOME     trains a part and evaluates its runs
python -m benchmarks.batch_study tables HOME       prints the tables

--gpu trains on a GPU, with JAX. --batches=64,512 and --seeds=4-6 train only these runs of a part,
in a separate HOME; `tables HOME --seeds=4-8` reads only these seeds. Ctrl-C saves and stops; the
same command resumes. A part is a study in the home folder HOME, with the 10,000 test images of
MNIST: GAN_DATA_DIR names a folder that holds only these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from benchmarks import batch_tables
from gan_runtime import api
from gan_runtime.base.errors import SpecError
from gan_runtime.cli import commands, following, training
from gan_runtime.records.home import Home
from gan_runtime.spec.presets import preset
from gan_runtime.studies.design import StudyDesign

TABLE_1 = {"workload": "dcgan_mnist", "precision": "mixed_bfloat16"}
SCALED = {**TABLE_1, "learning_rate_scaling": "sqrt"}
AVERAGED = {**SCALED, "adam_beta_1": 0.5, "ema_decay": 0.98, "samples_from": "ema"}
CHANGED = ("dataset", "batch_size_global", "epochs")  # options of the preset that the study sets
MODERN = {name: value for name, value in preset("modern").values.items() if name not in CHANGED}
RECIPES: dict[str, dict[str, Any]] = {
    "table-1": TABLE_1,
    "scaled": SCALED,
    "averaged": AVERAGED,
    "modern": MODERN,
}
RECIPES_WITH_EXTRA_SEEDS = ("averaged", "modern")  # only these can be equivalent
BUDGETS = (batch_tables.IMAGES, batch_tables.UPDATES)
# The options that repair the largest batch of `modern`, for the budget `longer`.
REPAIR = max(preset("modern").cautions, key=lambda caution: caution.least).repair
BASE = {
    **{"accelerator": "cpu", "replicas": 1, "weight_snapshots": "yes", "pictures_every": 4},
    "quality_every": 0,  # training is timed, so `measure` evaluates afterward
}


@dataclass(frozen=True)
class Size:
    """The size of the study. `epochs` and `modern_epochs` (recipe `modern`): at the smallest batch.

    `seeds`: for every batch; `extra_seeds`: for the smallest and the largest batch only.
    `samples`: images that an evaluation compares. `only_batches`, `only_seeds`: if not empty, the
    runs of a part to train.
    """

    batches: tuple[int, ...]
    epochs: int
    modern_epochs: int
    seeds: int
    extra_seeds: int
    samples: int
    options: dict[str, Any]
    only_batches: tuple[int, ...] = ()
    only_seeds: range = range(0)


FULL = Size(
    (64, 128, 256, 512), 8, preset("modern").values["epochs"], 3, 5, 2_000, {"dataset": "mnist"}
)
GPU = {"accelerator": "gpu", "engine": "jax"}
# Tests the script from end to end in half a minute; too small for conclusions.
SMOKE = Size(
    (64, 128), 1, 1, 1, 0, 600, {"dataset": "digits", "precision": "float32", "base_channels": 4}
)


@dataclass(frozen=True)
class Part:
    """One study: a recipe, a budget and seeds."""

    recipe: str
    budget: str
    has_extra_seeds: bool

    @property
    def name(self) -> str:
        """The name on the command line."""
        return f"{self.recipe}-{self.budget}{'-more' if self.has_extra_seeds else ''}"

    @property
    def title(self) -> str:
        """The title of the study."""
        suffix = " more" if self.has_extra_seeds else ""
        return f"{batch_tables.TITLE}{self.recipe} {self.budget}{suffix}"

    def design(self, size: Size) -> StudyDesign:
        """The runs of this part; each repeat has one seed for all batches. The part `longer` has
        only the largest batch.
        """
        batches = (size.batches[0], size.batches[-1]) if self.has_extra_seeds else size.batches
        batches = size.only_batches or batches
        base_epochs = size.modern_epochs if self.recipe == "modern" else size.epochs
        base = {**BASE, **RECIPES[self.recipe], **size.options, "epochs": base_epochs}
        seeds = size.only_seeds or self._seeds(size)
        base["seed"] = seeds[0]
        if self.budget == batch_tables.LONGER:
            base |= {"batch_size_global": size.batches[-1], **REPAIR}
            return StudyDesign.parse("seed", base, list(seeds), title=self.title)
        if len(batches) == 1:
            times = 1 if self.budget == batch_tables.IMAGES else batches[0] // size.batches[0]
            base |= {"batch_size_global": batches[0], "epochs": base_epochs * times}
            return StudyDesign.parse("seed", base, list(seeds), title=self.title)
        if self.budget == batch_tables.IMAGES:
            return StudyDesign.parse("batch_size", base, list(batches), len(seeds), self.title)
        epochs = [f"{batch}:{base_epochs * batch // size.batches[0]}" for batch in batches]
        return StudyDesign.parse("batch_updates", base, epochs, len(seeds), self.title)

    def _seeds(self, size: Size) -> range:
        all_seeds = range(1, 1 + size.seeds + size.extra_seeds)
        if self.budget == batch_tables.LONGER:
            return all_seeds
        return all_seeds[size.seeds :] if self.has_extra_seeds else all_seeds[: size.seeds]


def parts() -> Iterator[Part]:
    """All parts, most important first."""
    for recipe in reversed(RECIPES):
        for has_extra_seeds in (False, True)[: 1 + (recipe in RECIPES_WITH_EXTRA_SEEDS)]:
            for budget in BUDGETS:
                yield Part(recipe, budget, has_extra_seeds)
    yield Part("modern", batch_tables.LONGER, has_extra_seeds=False)


def train(part: Part, home: Home, size: Size) -> bool:
    """Trains the unfinished runs; returns whether all are finished. Stops queued runs first, so
    that the runs resume one at a time, in order.
    """
    design = part.design(size)
    display = following.Lines(lambda snapshot: print(following.in_words(snapshot)))
    runs = _runs(home, part.title)
    if runs.empty:
        ends = training.train_study(home, design, display)
        return len(ends) == len(design.runs) and {end.row.status for end in ends} == {"finished"}
    for run_id in runs.run_id[runs.status == "queued"]:
        commands(home).stop(run_id)
    for run_id in runs.run_id[runs.status != "finished"]:
        if training.resume_run(home, run_id, {}, display).row.status != "finished":
            return False
    return True


def measure(part: Part, home: Home, size: Size) -> None:
    """Evaluates every stored epoch, at most 20, of each run without a quality evaluation."""
    evaluated = set(
        api.sql(home, "SELECT run_id FROM evaluations WHERE evaluation = 'quality'").run_id
    )
    for run_id in _runs(home, part.title).run_id:
        if run_id not in evaluated:
            print(f"{run_id}: evaluating quality")
            api.evaluate(home, run_id, "quality", checkpoint="every", samples=size.samples)


def _runs(home: Home, title: str) -> pd.DataFrame:
    """The runs of the study with this title, oldest first. Columns: run_id, status."""
    return api.sql(
        home,
        "SELECT run_id, status FROM runs JOIN studies USING (study_id)"
        f" WHERE studies.title = '{title}' ORDER BY run_id",
    )


def sized(flags: list[str]) -> Size:
    """The size that the flags describe. Raises ValueError for an unknown flag or number."""
    size = SMOKE if "--smoke" in flags else FULL
    for flag in flags:
        match flag.split("="):
            case ["--smoke"]:
                pass
            case ["--gpu"]:
                size = replace(size, options={**size.options, **GPU})
            case ["--batches", batches]:
                size = replace(size, only_batches=tuple(map(int, batches.split(","))))
            case ["--seeds", seeds]:
                first, _, last = seeds.partition("-")
                size = replace(size, only_seeds=range(int(first), int(last or first) + 1))
            case _:
                raise ValueError(flag)
    return size


def main(arguments: list[str]) -> int:
    """Returns 1 if runs are unfinished, 2 for an invalid command."""
    parts_by_name = {part.name: part for part in parts()}
    try:
        size = sized([argument for argument in arguments if argument.startswith("--")])
    except ValueError as error:
        print(f"{error}: use --gpu, --batches=64,512 or --seeds=4-6.", file=sys.stderr)
        return 2
    match [argument for argument in arguments if not argument.startswith("--")]:
        case ["list"]:
            for name, part in parts_by_name.items():
                print(f"{name}: {len(part.design(size).runs)} runs")
        case ["tables", folder]:
            measured = batch_tables.evaluated_epochs(api.open_home(folder))
            if size.only_seeds:
                measured = measured[measured.seed.isin(size.only_seeds)]
            print(batch_tables.text(measured, size.batches))
        case ["run", name, folder] if name in parts_by_name:
            home = api.open_home(folder)
            try:
                is_finished = train(parts_by_name[name], home, size)
            except SpecError as error:
                print(error, file=sys.stderr)
                return 2
            if not is_finished:
                print(
                    "Some runs are unfinished: repeat the command to resume them.", file=sys.stderr
                )
                return 1
            measure(parts_by_name[name], home, size)
        case _:
            print(f"{__doc__}\nPART is one of {', '.join(parts_by_name)}.", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
