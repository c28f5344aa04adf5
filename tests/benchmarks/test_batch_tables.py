"""Decisions of the equivalence study, from numbers with a known answer."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from benchmarks import batch_study, batch_tables
from gan_runtime.records.home import Home
from gan_runtime.studies.statistics import Equivalence

BATCHES = (64, 512)


def frame(shift: float = 0.0, covered: float = 0.8, seeds: int = 8) -> pd.DataFrame:
    """Two epochs of each run. A seed shifts all batches alike, and each run a little. Batch 512 has
    a ln FCD∞ larger by `shift`, and the coverage `covered`.
    """
    random = np.random.RandomState(1)
    of_seeds = random.standard_normal(seeds)
    rows = []
    for batch in BATCHES:
        for seed in range(1, seeds + 1):
            noise = of_seeds[seed - 1] + 0.2 * random.standard_normal()
            for epoch in (1, 2):
                log_fcd = 2.0 + 0.2 * noise + shift * (batch == 512) + (2 - epoch)
                rows.append(
                    {
                        **{"recipe": "modern", "budget": "images", "batch": batch, "seed": seed},
                        **{"epoch": epoch, "images": 100 * epoch, "device_s": 0.5 * epoch},
                        **{"log_fcd": log_fcd, "fcd_infinite": math.exp(log_fcd)},
                        **{"kcd": 1.0 + 0.1 * noise},
                        **{"coverage": (covered if batch == 512 else 0.8) + 0.01 * noise},
                    }
                )
    return pd.DataFrame(rows)


def decided(measured: pd.DataFrame) -> batch_tables.Decision:
    result = batch_tables.decision(batch_tables.ends(measured), BATCHES)
    assert result
    return result


def test_equal_batches_are_equivalent_within_the_smallest_batch_spread() -> None:
    result = decided(frame())
    usual = frame().query("batch == 64 and epoch == 2").log_fcd
    assert result.log_fcd.margin == pytest.approx(1.96 * usual.std())
    assert len(result.log_fcd.differences) == 8
    assert result.is_equivalent


@pytest.mark.parametrize(("shift", "covered"), [(1.0, 0.8), (-1.0, 0.8), (0.0, 0.7)])
def test_a_differing_large_batch_is_not_equivalent(shift: float, covered: float) -> None:
    assert not decided(frame(shift, covered)).is_equivalent


def test_higher_coverage_does_not_break_equivalence() -> None:
    assert decided(frame(covered=0.9)).is_equivalent


def test_a_single_seed_gives_no_decision() -> None:
    assert batch_tables.decision(batch_tables.ends(frame(seeds=1)), BATCHES) is None
    assert "| modern, images | – | – | – | – | too few pairs |" in batch_tables.text(
        frame(seeds=1), BATCHES
    )


@pytest.mark.parametrize(("pairs", "share"), [(3, 0.02), (5, 0.23), (8, 0.69)])
def test_equal_recipes_are_rarely_found_equivalent_from_few_pairs(pairs: int, share: float) -> None:
    """With independent scores. So the tables decide nothing from three pairs, even if the tests
    hold.
    """
    random = np.random.default_rng(pairs)
    found = [_equal_recipes(random, pairs).is_equivalent for _ in range(1_000)]
    assert np.mean(found) == pytest.approx(share, abs=0.06)
    text = batch_tables.text(frame(seeds=pairs), BATCHES)
    assert ("| too few pairs |" in text) == (pairs < 5)


def _equal_recipes(random: np.random.Generator, pairs: int) -> batch_tables.Decision:
    def equivalence() -> Equivalence:
        small, large = random.standard_normal((2, pairs))
        margin = batch_tables.MARGIN_STDS * float(small.std(ddof=1))
        return Equivalence(tuple(large - small), margin)

    return batch_tables.Decision(equivalence(), equivalence(), equivalence())


def test_tables_can_have_only_some_seeds(
    monkeypatch: pytest.MonkeyPatch, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as those that the options were not chosen with."""
    monkeypatch.setattr(batch_tables, "evaluated_epochs", lambda _: frame())
    assert batch_study.main(["tables", str(home.path), "--seeds=4-8"]) == 0
    text = capsys.readouterr().out
    assert "| modern, images | 5 | " in text


def test_cost_to_target_is_taken_at_the_first_epoch_reaching_it() -> None:
    measured = frame(shift=-2.0).query("batch == 512")
    target = 1.0  # about the ln FCD∞ after epoch 1; after epoch 2 it is 0
    hits = batch_tables.cost_to_target(measured, target)
    first = measured.query("epoch == 1")
    late = set(first.seed[first.log_fcd > target])
    assert late
    assert {seed for seed, images in hits["images"].items() if images == 200} == late
    assert batch_tables.cost_to_target(measured, -9.0) == {"images": {}, "device_s": {}}


def test_tables_show_the_measurements() -> None:
    text = batch_tables.text(frame(), BATCHES)
    cells = "7.46 (6.76); 0.984 (0.955); 80% (80%); 1 s | 7.48 (6.57); 0.99 (0.941); 80% (79%); 1 s"
    assert f"| modern, images | {cells} |" in text
    assert "| modern, images | 8 | +" in text or "| modern, images | 8 | -" in text
    assert text.count("| yes |") == 1
    reached = text.splitlines()[-1]
    assert reached.startswith("| modern, images | 0, 1 s (")
    assert reached.count(" of 8)") == 2


def test_no_target_table_if_only_the_smallest_batch_reaches_it() -> None:
    text = batch_tables.text(frame(shift=5.0), BATCHES)
    assert text.rstrip().endswith("No larger batch reaches the mean FCD∞ at which it ends.")
    assert "; 1 s | 1,110 (975); 0.99 (0.941); 80% (79%); 1 s |" in text


def test_a_home_without_the_study_reports_not_measured(home: Home) -> None:
    empty = batch_tables.evaluated_epochs(home)
    assert batch_tables.text(empty, BATCHES) == "Not measured yet."


def test_parts_cover_all_recipes_and_budgets_with_paired_seeds() -> None:
    parts = list(batch_study.parts())
    assert len({part.name for part in parts}) == len(parts) == 13
    for part in parts[:-1]:
        runs = part.design(batch_study.FULL).runs
        by_repeat = {(run.repeat, run.spec.seed) for run in runs}
        assert len(by_repeat) == (5 if part.has_extra_seeds else 3), "one seed for all batches"
        updates = {10_000 // run.spec.batch_size_global * run.spec.epochs for run in runs}
        images = {run.spec.epochs for run in runs}
        assert (len(images) == 1) == (part.budget == "images")
        if part.budget == "updates":
            assert max(updates) / min(updates) < 1.03  # incomplete batches are dropped
    seeds = {
        run.spec.seed
        for part in parts
        if part.recipe == "modern" and part.budget == "images"
        for run in part.design(batch_study.FULL).runs
    }
    assert seeds == set(range(1, 9))


def test_the_longer_part_repairs_the_largest_batch_for_every_seed() -> None:
    part = batch_study.Part("modern", "longer", has_extra_seeds=False)
    specs = [run.spec for run in part.design(batch_study.FULL).runs]
    assert [(spec.seed, spec.batch_size_global) for spec in specs] == [
        (seed, 512) for seed in range(1, 9)
    ]
    assert {(spec.epochs, spec.reference_batch) for spec in specs} == {(78, 128)}


def test_the_longer_budget_is_compared_with_the_smallest_batch_of_updates() -> None:
    updates = frame().assign(budget="updates")
    longer = frame(shift=5.0).query("batch == 512").assign(budget="longer")
    text = batch_tables.text(pd.concat([updates, longer]), BATCHES)
    assert re.search(r"\| modern, longer \| 7.46 [^|]* \| 1,110 ", text)
    assert "| modern, longer | 8 | +5 (" in text
    assert re.search(r"\| modern, updates \| 7.46 [^|]* \| 7.48 ", text)


def test_a_selection_of_a_single_run_is_refused(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "modern-longer", str(home.path), "--seeds=4"]
    assert batch_study.main(words) == 2
    assert "a study compares at least 2" in capsys.readouterr().err


def test_flags_choose_runs_of_a_part() -> None:
    part = batch_study.Part("modern", "updates", has_extra_seeds=True)

    def runs(*flags: str) -> list[tuple[int, int, int, str]]:
        design = part.design(batch_study.sized([*flags]))
        specs = [run.spec for run in design.runs]
        return [
            (spec.seed, spec.batch_size_global, spec.epochs, spec.accelerator) for spec in specs
        ]

    assert runs("--seeds=6-7") == [run for run in runs() if run[0] in (6, 7)]
    assert runs("--batches=256", "--seeds=9-10") == [(9, 256, 120, "cpu"), (10, 256, 120, "cpu")]
    assert sorted(runs("--batches=256,512", "--seeds=6", "--gpu")) == [
        (6, 256, 120, "gpu"),
        (6, 512, 240, "gpu"),
    ]


@pytest.mark.parametrize("flag", ["--seed=4", "--seeds=four", "--batches"])
def test_unknown_flags_list_the_known_ones(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert batch_study.main(["list", flag]) == 2
    assert "use --gpu, --batches=64,512 or --seeds=4-6" in capsys.readouterr().err
