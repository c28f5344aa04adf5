"""Every series that a trainer stores has a panel. A new one without labels would not be shown."""

from __future__ import annotations

from dashboard import histogram_view
from gan_runtime.catalog import declarations
from tests.support.engines.small_engines import MakeEngine, trained


def without_a_panel(histograms: list[str], metrics: list[str]) -> set[str]:
    """Histograms missing from the Histograms page, and metrics that neither the workload nor the
    engine declares.
    """
    declaration = declarations.of("mlp_gan")
    return {*histograms} - histogram_view.panel_names(histograms, metrics, declaration) | {
        *metrics
    } - {*declaration.table()}


def test_every_stored_series_has_a_panel(make: MakeEngine) -> None:
    engine = make(1, precision="mixed_float16", r1_weight=1.0)
    metrics = [*trained(engine, 1)]
    engine.mark()
    engine.run(1)
    probe = engine.probe()
    histograms, metrics = (
        [histogram.name for histogram in probe.histograms],
        [*metrics, *probe.scores],
    )
    assert (len(histograms), len(metrics)) == (14, 19)
    assert without_a_panel(histograms, metrics) == set()
    assert without_a_panel([*histograms, "activation/generator"], [*metrics, "fid"]) == {
        "activation/generator",
        "fid",
    }
