"""What each domain adds to the page of its evaluation, by the evaluation's name."""

from __future__ import annotations

from dashboard.domains.flows.page import PAGE as FLOWS
from dashboard.domains.showers.page import PAGE as SHOWERS
from dashboard.evaluation.answers import DomainPage

PAGES: dict[str, DomainPage] = {"physics": SHOWERS, "rollout": FLOWS}
