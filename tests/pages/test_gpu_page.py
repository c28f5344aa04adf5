"""The GPU page with a stored answer, and on a host that cannot compile."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from gan_runtime.gpu import check as checks
from gan_runtime.gpu.check import GpuPlan
from gan_runtime.records.home import Home
from gan_runtime.spec.presets import preset
from gan_runtime.tpu.estimates import ProgramMemory
from tests.gpu.examples import WIDE, keep
from tests.pages.reading import shown_commands, texts

Show = Callable[..., AppTest]


@pytest.fixture
def plan() -> GpuPlan:
    """The initial values of the form."""
    fields = {"workload": "dcgan_mnist", "precision": "mixed_bfloat16", "batch_size_global": 512}
    return checks.make({**preset("paper").values, **fields}, "h100")


def figures(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_an_unchecked_selection_shows_no_figure(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "missing_compiler", lambda: "")
    app = show("gpu")
    assert not app.exception
    assert "Nothing is compiled for this selection yet" in texts(app)
    assert not app.metric


def test_a_host_without_the_compiler_says_what_to_install(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "compiler", lambda: None)
    app = show("gpu")
    assert not app.exception
    assert "run `make gpu-compiler`" in texts(app)


def test_a_stored_answer_is_shown_immediately(show: Show, home: Home, plan: GpuPlan) -> None:
    keep(home, plan)
    app = show("gpu")
    assert not app.exception
    assert figures(app) == {
        "Compiles": "yes",
        "Kernels": "100",
        "Read and written": "800 MB",
        "Memory": "200 MB",
    }
    assert "The widest forward convolution has 6 × 6 taps. None is wider" in texts(app)


def test_wide_convolutions_are_listed(show: Show, home: Home, plan: GpuPlan) -> None:
    keep(home, plan, wide=(WIDE,))
    assert "generator up_3, backward: 28 × 28 taps, its kernel has 5 × 5" in texts(show("gpu"))


def test_a_step_that_does_not_fit_is_an_error(show: Show, home: Home, plan: GpuPlan) -> None:
    memory = ProgramMemory(arguments=90_000_000_000, temporary=0, program=0, outputs=0)
    keep(home, plan, memory=memory)
    (error,) = show("gpu").error
    assert error.value.startswith("It does not fit: it needs 90.0 GB, and the card has 84.9 GB")


def test_a_refusal_shows_the_compilers_reason_and_can_be_repeated(
    show: Show, home: Home, plan: GpuPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "missing_compiler", lambda: "")
    keep(home, plan, refused="RESOURCE_EXHAUSTED: out of memory")
    app = show("gpu")
    assert app.error[0].value.endswith("RESOURCE_EXHAUSTED: out of memory")
    assert [button.label for button in app.button if "Check" in button.label] == ["Check again"]
    assert not app.metric


def test_the_equivalent_command_is_shown(show: Show) -> None:
    (command,) = shown_commands(show("gpu"))
    assert command.endswith(
        "-m gan_runtime gpu-check --card h100 --preset paper --set workload=dcgan_mnist --set"
        " precision=mixed_bfloat16 --set batch_size_global=512"
    )
