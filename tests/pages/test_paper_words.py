"""Paper page verdicts: whether stored runs agree with the paper, and which runs form a line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from dashboard.paper import devices as paper_devices
from dashboard.paper import verdicts as paper_verdicts
from dashboard.paper import words
from dashboard.paper.verdicts import Verdict
from gan_runtime.store.queries import Conditions
from gan_runtime.studies import references


def test_abrupt_rate_rises_are_counted() -> None:
    constant = pd.DataFrame({"variant": "a", "x": [0.0, 1.0, 2.0], "mean": [1e-4] * 3})
    cycles = pd.DataFrame(
        {"variant": "b", "x": [0.0, 1.0, 2.0, 3.0], "mean": [1e-4, 1e-5, 1e-4, 1e-5]}
    )
    both = pd.concat([constant, cycles])
    assert words.rates(both) == "a: stays at 0.0001; b: 1e-05 to 0.0001 with 1 abrupt rise."
    assert words.rate_cycles(both, {512}).agrees is True
    assert words.rate_cycles(constant, {512}).agrees is False
    assert "these runs have batch 64" in words.rate_cycles(both, {64}).why


def test_concentration_compares_the_first_epoch_with_the_last() -> None:
    frame = pd.DataFrame(
        {"variant": ["a", "a", "b"], "epoch": [1, 2, 1], "width": [0.5, 0.25, 9.0]}
    )
    assert words.concentration(frame).endswith("a: from 0.50 to 0.25.")
    assert "no run has finished its second epoch" in words.concentration(
        frame[frame["variant"] == "b"]
    )


def two_variants(
    names: tuple[str, str], first: list[float], second: list[float], **columns: list[float]
) -> pd.DataFrame:
    """The columns of study results that a verdict reads; the numbers are epoch_seconds."""
    rows = [
        {
            "variant": name,
            "variant_index": index,
            "repeat": repeat,
            "run_id": f"{name} {repeat}",
            "epoch_seconds": seconds,
        }
        for index, (name, numbers) in enumerate(zip(names, (first, second), strict=True))
        for repeat, seconds in enumerate(numbers, 1)
    ]
    return pd.DataFrame(rows).assign(**columns)


BATCHES = ("batch 64", "batch 512")


@pytest.mark.parametrize(
    ("seconds", "agrees", "part"),
    [
        (
            [2.1, 2.12, 2.05],
            True,
            "79% less time per epoch than batch 64 (× 0.21, 0.20 to 0.22: clear)",
        ),
        ([7.5, 7.6, 7.4], False, "25% less time per epoch than batch 64"),
        ([1.0, 1.01, 0.99], False, "90% less"),
        ([2.1], None, "1 repeat, which says nothing about noise"),
        ([0.5, 30.0], None, "; the interval contains that, but also no difference at all"),
    ],
)
def test_figure_5_agrees_if_the_interval_contains_the_papers_value(
    seconds: list[float], agrees: bool | None, part: str
) -> None:
    verdict = words.time_by_batch(two_variants(BATCHES, [10.0] * len(seconds), seconds), {"gpu"})
    assert verdict.agrees is agrees
    assert part in verdict.why
    assert "keeps a CPU busy" not in verdict.why


def test_figure_5_requires_the_papers_batch_sizes() -> None:
    verdict = words.time_by_batch(
        two_variants(("batch 32", "batch 64"), [2.0, 2.0], [1.0, 1.1]), {"cpu"}
    )
    assert (verdict.agrees, verdict.word) == (None, "Not enough runs yet")
    assert "the paper compares batch 64 with batch 512" in verdict.why


@pytest.mark.parametrize(("factor", "agrees"), [(1.5, True), (0.5, False), (1.0, None)])
def test_figure_5_growth_claim_is_judged_separately(factor: float, agrees: bool | None) -> None:
    """Section 5.1 contradicts the conclusion, so each claim is judged separately."""
    results = two_variants(
        BATCHES, [10.0, 10.1, 9.9], [factor * seconds for seconds in (10.0, 10.0, 10.0)]
    )
    assert words.time_grows(results).agrees is agrees


@pytest.mark.parametrize(("large", "agrees"), [(6.0, True), (3.0, False)])
def test_figure_6_agrees_if_epochs_take_longer(large: float, agrees: bool) -> None:
    later = {"batch 64": [4.0, 4.1], "batch 512": [large, large + 0.1]}
    epochs = pd.DataFrame(
        [
            {
                "variant": variant,
                "run_id": f"{variant} {repeat}",
                "epoch": epoch,
                "seconds": seconds,
            }
            for variant, numbers in later.items()
            for repeat in (1, 2)
            for epoch, seconds in enumerate([20.0, *numbers], 1)
        ]
    )
    results = two_variants(BATCHES, [4.0, 4.1], [large, large + 0.1])
    assert words.time_by_epoch(epochs, results).agrees is agrees
    assert words.time_by_epoch(epochs[epochs["epoch"] < 2], results).agrees is None


def test_figure_10_requires_lowest_g_loss_and_figure_11_rising_d_loss() -> None:
    """A large D loss at a large batch does not contradict Fig. 10: the text reports it."""
    results = two_variants(BATCHES, [1.0, 1.0], [1.0, 1.0])
    as_told = results.assign(
        loss_generator=[1.0, 1.01, 0.5, 0.505], loss_discriminator=[0.7, 0.705, 1.4, 1.41]
    )
    verdicts = (words.optimized_best, words.least_at_512, words.rises_in_d)
    assert [verdict(as_told).agrees for verdict in verdicts] == [True, True, True]
    opposite = as_told.assign(
        loss_generator=[0.5, 0.505, 1.0, 1.01], loss_discriminator=[1.4, 1.41, 0.7, 0.705]
    )
    assert [verdict(opposite).agrees for verdict in verdicts] == [False, False, False]
    scattered = as_told.assign(
        loss_generator=[1.0, 0.5, 0.6, 0.9], loss_discriminator=[1.0, 0.5, 0.6, 0.9]
    )
    assert [verdict(scattered).agrees for verdict in verdicts] == [None, None, None]
    alone = as_told[as_told["variant"] == "batch 64"]
    assert [verdict(alone).agrees for verdict in verdicts] == [None, None, None]


def test_figure_11_judges_only_the_generator_path() -> None:
    """The paper does not claim that D's loss falls along its path."""
    paths = {"generator": [2.0, 1.0], "discriminator": [1.0, 2.0]}
    assert (
        words.descends([path(network, losses) for network, losses in paths.items()]).agrees is True
    )
    assert (
        words.descends([path(network, losses[::-1]) for network, losses in paths.items()]).agrees
        is False
    )


def path(network: str, losses: list[float]) -> Any:
    return SimpleNamespace(network=network, path_loss=losses)


def test_reference_values_match_the_quotations() -> None:
    assert f"{references.PAPER_TIME_SAVED:.0%}" in references.TIME_FELL.sentence
    assert f"{references.PAPER_XLA_SPEEDUP} times" in references.XLA.sentence
    for share in references.PAPER_FASTER_THAN.values():
        assert f"{100 * share:.4g}" in references.FASTER.sentence
    for batch in references.PAPER_BEST_BATCHES:
        assert str(batch) in references.OPTIMIZED.sentence


# ---- comparable runs -----------------------------------------------------------------------------


def under(dataset: str = "mnist", images: int = 60_000, epochs: int = 30) -> Conditions:
    return Conditions(
        dataset, images, "cpu", "tensorflow", 8, epochs, "test processor", 2, False, "here"
    )


@pytest.mark.parametrize(
    ("runs", "repeats", "parts"),
    [
        ([under()], 3, []),
        ([under(epochs=40)], 5, []),
        ([under(epochs=29)], 3, ["29 epochs of at least 30"]),
        ([under()], 2, ["2 repeats of at least 3"]),
        ([under(images=10_000)], 3, ["MNIST, 10,000 of its 60,000 images"]),
        (
            [under(), under("fashion_mnist", epochs=2)],
            1,
            ["where the paper has", "2 epochs", "1 repeat of"],
        ),
    ],
)
def test_verdict_requires_the_papers_data_epochs_and_repeats(
    runs: list[Conditions], repeats: int, parts: list[str]
) -> None:
    reasons = paper_verdicts.shortfalls(runs, repeats, paper_verdicts.MINIMUMS["batch_size"])
    assert len(reasons) == len(parts)
    assert all(part in said for part, said in zip(parts, reasons, strict=True)), reasons
    verdict = paper_verdicts.judge(Verdict(False, "× 0.9."), reasons)
    assert (verdict.agrees, verdict.word) == (
        (None, "Not judged") if parts else (False, "Differs from the paper")
    )


def place(accelerator: str, engine: str = "tensorflow") -> Conditions:
    return Conditions(
        "digits", 1_797, accelerator, engine, 1, 3, "test processor", 2, False, "here"
    )


@pytest.mark.parametrize(
    ("where", "agrees", "part"),
    [
        (place("cpu"), False, "hand-written kernels"),
        (place("gpu"), False, "outside"),
        (
            place("tpu"),
            None,
            "a TPU compiles every step whatever the option says, so both are the same program",
        ),
        (place("cpu", "jax"), None, "JAX compiles every step whatever the option says"),
    ],
)
def test_figure_12_mentions_cpu_kernels_only_on_a_cpu(
    where: Conditions, agrees: bool | None, part: str
) -> None:
    results = two_variants(("xla off", "xla jit"), [1.0, 1.0], [5.0, 5.01]).rename(
        columns={"epoch_seconds": "steady_step"}
    )
    verdict = words.xla(results, [where])
    assert verdict.agrees is agrees
    assert "with XLA a run takes 5.0 × as long per step as without" in verdict.why
    assert part in verdict.why
    assert ("hand-written" in verdict.why) == (where == place("cpu"))


def test_figure_13_compares_with_the_papers_shares_and_lists_gaps() -> None:
    rows = [
        {
            "variant": variant,
            "variant_index": index,
            "repeat": repeat,
            "epoch_seconds": seconds * (1 + 0.001 * index * repeat),
        }
        for index, (variant, seconds) in enumerate(
            {"cpu x1": 100.0, "gpu x1": 54.5, "tpu x1": 58.1, "tpu x8": 43.8}.items()
        )
        for repeat in (1, 2, 3)
    ]
    whole = pd.DataFrame(rows)
    less_time = words.accelerators(whole)
    assert less_time.agrees is True
    assert (
        "(the paper: × 0.44 if it means less time, × 0.64 if it means more speed)" in less_time.why
    )
    assert (
        words.accelerators(whole.assign(epoch_seconds=whole["epoch_seconds"] ** 2)).agrees is False
    )
    speeds = whole["variant"].map(
        {"cpu x1": 1.562, "gpu x1": 1.197, "tpu x1": 1.246, "tpu x8": 1.0}
    )
    more_speed = whole.assign(
        epoch_seconds=speeds * (1 + 0.001 * whole["repeat"] * whole["variant_index"])
    )
    assert words.accelerators(more_speed).agrees is True
    mixed = more_speed.assign(
        epoch_seconds=speeds.where(whole["variant"] != "cpu x1", 1 / (1 - 0.562))
    )
    mixed["epoch_seconds"] *= 1 + 0.001 * whole["repeat"] * whole["variant_index"]
    assert words.accelerators(mixed).agrees is False, "one reading for all numbers of the sentence"
    some = words.accelerators(whole[whole["variant"].isin(["cpu x1", "gpu x1"])])
    assert (some.agrees, some.why.endswith("missing here: tpu x8, tpu x1.")) == (None, True)


def test_a_study_with_one_variant_has_no_verdict() -> None:
    rows = [
        {"variant": "a", "variant_index": 0, "repeat": 1, "epoch_seconds": 2.0, "steady_step": 0.1}
    ]
    assert words.time_by_batch(pd.DataFrame(rows), {"cpu"}).agrees is None
    assert words.xla(pd.DataFrame(rows), []).agrees is None


OFF, OTHER = '{"r1_weight": 0.0}', '{"r1_weight": 2.0, "batch_size_global": 7, "unknown": 1}'


def test_speed_up_lines_join_only_runs_that_differ_in_devices() -> None:
    """Two lines of one point each are omitted; 200 images/s on 2 devices with another batch is no
    speed-up over 100 on 1.
    """
    columns = [
        "accelerator",
        "devices",
        "precision",
        "batch_size_global",
        "dataset",
        "images",
        "engine",
        "xla",
        "cpu_model",
    ]
    rows = [
        ("cpu", 1, "float32", 64, "digits", 1_797, "tensorflow", "off", "A", False, OFF, 1, 100.0),
        ("cpu", 2, "float32", 64, "digits", 1_797, "tensorflow", "off", "A", False, OFF, 1, 150.0),
        (
            "cpu",
            2,
            "float32",
            256,
            "digits",
            1_797,
            "tensorflow",
            "off",
            "A",
            False,
            OTHER,
            1,
            200.0,
        ),
        ("cpu", 4, "float32", 64, "digits", 1_797, "tensorflow", "off", "B", True, OFF, 1, 900.0),
        ("cpu", 4, "float32", 64, "digits", 1_797, "tensorflow", "off", "B", False, OFF, 1, 950.0),
    ]
    rates = pd.DataFrame(rows, columns=[*columns, "imported", "settings", "runs", "images_per_s"])
    ours = paper_devices.speed_ups(rates).query("ours")
    name = "Here, CPU, batch 64"
    assert set(ours["detail"]) == {
        "Digits (embedded), 1,797 images, float32, XLA off, TensorFlow, A"
    }
    assert ours[["system", "devices", "speed_up"]].to_numpy().tolist() == [
        [name, 1, 1.0],
        [name, 2, 1.5],
    ]
    assert list(paper_devices.rate_table(rates)["Host"]) == ["A", "A", "A", "B (imported)", "B"]
    assert list(paper_devices.rate_table(rates)["Other options"]) == [
        "–",
        "–",
        "R1 penalty 2.0",
        "–",
        "–",
    ]
    again = rates.assign(cpu_model="C", imported=True, accelerator="tpu")
    assert set(paper_devices.speed_ups(pd.concat([rates, again])).query("ours")["system"]) == {
        name,
        "Here, TPU, batch 64",
    }
    assert set(paper_devices.rate_table(again)["XLA"]) == {"always"}
    elsewhere = paper_devices.speed_ups(pd.concat([rates, rates.assign(cpu_model="C")])).query(
        "ours"
    )
    assert set(elsewhere["system"]) == {name, f"{name} (2)"}
