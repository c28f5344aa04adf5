"""The page of each evaluation by name: images, showers, flows."""

from __future__ import annotations

from dashboard.domains.flows.page import PAGE as FLOWS
from dashboard.domains.showers.page import PAGE as SHOWERS
from dashboard.evaluation.answers import IMAGES, DomainPage
from gan_runtime.catalog.domain import QUALITY

PAGES: dict[str, DomainPage] = {QUALITY: IMAGES, "physics": SHOWERS, "rollout": FLOWS}
