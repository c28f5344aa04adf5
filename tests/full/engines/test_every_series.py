"""Every series that a DCGAN trainer stores has a panel."""

from __future__ import annotations

from dashboard import histogram_view
from gan_runtime.catalog import declarations
from gan_runtime.workloads import dcgan_mnist
from tests.support.engines.small_engines import MakeEngine, trained


def without_a_panel(histograms: list[str], metrics: list[str]) -> set[str]:
    """Returns histograms that the Histograms page does not show, and metrics that the workload and
    the engine do not declare.
    """
    declaration = declarations.of("dcgan_mnist")
    return {*histograms} - histogram_view.panel_names(histograms, metrics, declaration) | {
        *metrics
    } - {*declaration.table()}


def test_every_stored_dcgan_series_has_a_panel(make: MakeEngine) -> None:
    engine = make(1, dcgan_mnist.WORKLOAD, precision="mixed_float16", r1_weight=1.0)
    metrics = [*trained(engine, 1)]
    engine.mark()
    engine.run(1)
    probe = engine.probe()
    histograms, metrics = (
        [histogram.name for histogram in probe.histograms],
        [*metrics, *probe.scores],
    )
    assert (len(histograms), len(metrics)) == (26, 19)
    assert without_a_panel(histograms, metrics) == set()
    assert without_a_panel([*histograms, "activation/generator"], [*metrics, "fid"]) == {
        "activation/generator",
        "fid",
    }
