"""A host that ssh reaches as a target. Runs train in a home there, and each observation brings what
their trainers have written since into the home here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.targets.configuration import SshTarget
from gan_runtime.targets.far_home import CALL_SECONDS, FarHome, last_line, place_there, python
from gan_runtime.targets.target import NoAnswerError, Offer, Seen, Submitted, TargetJob
from gan_runtime.targets.transport import Transport


@dataclass(frozen=True)
class SshHost:
    """A host with the project in a folder. `home`: the one here, which gets copies."""

    options: SshTarget
    transport: Transport
    home: Home

    @property
    def _far(self) -> FarHome:
        return FarHome(self.options, self.transport, self.home)

    def offer(self) -> Offer:
        """Its processors, memory and accelerators, if it has the same version of the project."""
        known = self._far.offer()
        if known.refusal:
            return known
        try:
            words = python(self.options, "gan_runtime", "devices", "--json")
            done = self.transport.run(words, seconds=CALL_SECONDS)
            devices = json.loads(done.output[done.output.index("{") :])
            device = devices["devices"][self.options.accelerator]
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")
        except (ValueError, KeyError):
            return Offer(refusal=f"its devices cannot be read: {last_line(done)}.")
        if not device["available"]:
            return Offer(refusal=f"{self.options.accelerator}: {device['reason']}")
        name, count = device["name"], device["count"]
        return Offer(
            (
                f"host {known.lines[0]}: {devices['cores']} cores,"
                f" {devices['memory_bytes'] / 1e9:.0f} GB",
                f"{self.options.accelerator.upper()}: {count} × {name}",
                f"Python {devices['python']}, TensorFlow {devices['tensorflow']}",
            )
        )

    def set_up(self) -> Offer:
        """Runs `make setup` in the clone there."""
        return self._far.set_up()

    def script(self, job: TargetJob) -> str:
        """Starts the trainer in the home there."""
        run = f"{self.options.home}/runs/{job.folder.name}"
        module = processes.command(processes.TRAINER)[1:]
        words = [place_there(self.options.interpreter), *module, place_there(run)]
        return "\n".join(
            [
                "#!/bin/bash",
                f"export PYTHONPATH={place_there(self.options.clone)}",
                "export PYTHONUNBUFFERED=1",
                *self.options.prelude,
                " ".join(["exec", *words, str(job.attempt), job.accelerator]),
                "",
            ]
        )

    def submit(self, job: TargetJob) -> Submitted:
        """Starts the trainer once, after it has sent the data set if the host lacks it."""
        return self._far.place(job, self.script(job), begin=True)

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        """The states, once all that came before them is here."""
        states = {}
        for token, job in self._far.look(dict.fromkeys(tokens)).items() if tokens else ():
            is_over = job.state != "RUNNING" and job.is_whole
            states[token] = Seen(
                stage="ended" if is_over else "running",
                state=job.state if is_over else "RUNNING",
                job=job.job,
                nodes=job.host,
                is_complete=is_over,
            )
        return states

    def cancel(self, token: str) -> None:
        """Kills the trainer, or prevents it."""
        self._far.cancel(token)
