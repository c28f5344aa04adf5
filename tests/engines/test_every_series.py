"""Everything that a trainer stores as a series has a panel: a new one without words for it
would be seen by nobody.
"""

from __future__ import annotations

from dashboard import histogram_view
from gan_runtime.catalog import declarations
from tests.support.engines.small_engines import MakeEngine, trained


def without_a_panel(histograms: list[str], metrics: list[str]) -> set[str]:
    """Histograms that the Histograms page does not show, and numbers that the workload and
    the engine do not declare.
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
