"""Runs stored without training, for pages in a browser."""

from __future__ import annotations

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from tests.support.asking import ask
from tests.support.hosts import stated_host

STEPS = 200


def queued(home: Home) -> RunDir:
    """The next run of the home, queued as the Launch page does."""
    return ask(home, stated_host()).submit(RunSpec(), "quick")


def stored(run: RunDir, loss: float) -> None:
    """Finishes the run with constant losses, so that its curve is a flat line."""
    values = {name: [loss] * STEPS for name in ("loss_generator", "loss_discriminator")}
    wall_s = [float(step) for step in range(1, STEPS + 1)]
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="running", reason="training"),
        journal.AttemptPlan(images=32 * STEPS, steps_per_epoch=STEPS, epochs=1),
        journal.Scalars(epoch=1, first_step=1, wall_s=wall_s, values=values),
        StatusChange(status="finished", reason="all 1 epochs done"),
    )
