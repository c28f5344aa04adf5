"""Whose a device is, as parts of sentences. Text of other homes stands in them as it is: who shows it on a page escapes it."""

from __future__ import annotations

from pathlib import Path

from gan_runtime.device_locks.claims import Claim
from gan_runtime.device_locks.holder import Holder
from gan_runtime.records.reasons import Cause, Reason, cause


def whose(holder: Holder | None, home: Path) -> str:
    """Such as "run quick-0007", "run quick-0007 of /data/gan" or "a training of ada". `home`: whose words they are."""
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    if not holder.is_known:
        return f"a training of {holder.user}"
    named = f" ({holder.name})" if holder.name and holder.name != holder.run_id else ""
    return f"run {holder.run_id}{named}" + ("" if holder.home == str(home) else f" of {holder.home}")


def elsewhere(claim: Claim, home: Path) -> Cause | None:
    """Why a run of `home` waits, where another home has what it needs, or nobody knows what there is; None where only its own runs do. Stands
    in the run's journal, which may be given away, so it names no folder and no user."""
    if claim.unknown:
        return cause(Reason.DEVICES_UNKNOWN, message=claim.unknown)
    others = [(device, holder) for device, holder in claim.blockers if not holder or holder.home != str(home)]
    told = [
        f"{device.label} ({_whose_in_short(holder)}{f', since {holder.since:%Y-%m-%d %H:%M} UTC' if holder and holder.since else ''})"
        for device, holder in others
    ]
    return cause(Reason.DEVICES_TAKEN, devices=", ".join(told)) if told else None


def _whose_in_short(holder: Holder | None) -> str:
    if holder is None or not (holder.is_known or holder.user):
        return "another training"
    return f"run {holder.run_id} of another home" if holder.is_known else "a training of another user"
