"""What each domain adds to the page of its evaluation, by the evaluation's name."""

from __future__ import annotations

from dashboard.domains.flows.page import PAGE as FLOWS
from dashboard.domains.showers.page import PAGE as SHOWERS
from dashboard.evaluation.shown import DomainPage
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.evaluation import Evaluation

PAGES: dict[str, DomainPage] = {"physics": SHOWERS, "rollout": FLOWS}
EVALUATIONS = {
    name: Evaluation(name, title, summary, "", OptionRecord, lambda *_: "", (), "")
    for name, title, summary in (
        ("physics", "Physics", "Generated showers next to held-out ones of the data set."),
        ("rollout", "Flow", "The model's own frames, fed back to it, next to the flow itself."),
    )
}
