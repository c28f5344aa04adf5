"""What is kept of the runs of a home, as pages ask for it: part of the runtime (`Runtime.keeping`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gan_runtime.commands import commands
from gan_runtime.records.actors import Asker
from gan_runtime.records.home import Home
from gan_runtime.supervision import bin
from gan_runtime.supervision.bin import BinnedRun
from gan_runtime.supervision.disk_usage import Space
from gan_runtime.supervision.maintenance import Housekeeping


@dataclass(frozen=True)
class Keeping:
    """For one asker. `refresh`: lets the owner act at once, so that a page shows the effect of its own button."""

    home: Home
    asker: Asker
    refresh: Callable[[], None]
    housekeeping: Housekeeping

    @property
    def space(self) -> Space | None:
        """As it was measured some seconds ago; None in the first moments."""
        return self.housekeeping.space

    def binned(self) -> list[BinnedRun]:
        """See `bin.listed`."""
        return bin.listed(self.home)

    def restore(self, key: str) -> None:
        """See `commands.restore`."""
        commands.restore(self.home, key, asker=self.asker)
        self.refresh()
        self.housekeeping.look()

    def remove_for_good(self, keys: Sequence[str]) -> None:
        """See `commands.remove_for_good`."""
        commands.remove_for_good(self.home, keys, asker=self.asker)
        self.housekeeping.look()  # the space is free at once

    def mark(
        self,
        run_ids: Sequence[str],
        *,
        tags: Sequence[str] | None = None,
        remark: str | None = None,
        pinned: bool | None = None,
        hidden: bool | None = None,
    ) -> None:
        """See `commands.mark`, of each of the runs."""
        for run_id in run_ids:
            run = self.home.run_dir(run_id)
            commands.mark(run, tags=tags, remark=remark, pinned=pinned, hidden=hidden, asker=self.asker)
        self.refresh()
