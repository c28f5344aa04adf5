"""Slurm as a target: the batch script of a run, and the states of its jobs. The cluster sees the
home here, or has one for its runs.

All jobs are read by one `squeue`. Its answers name jobs by the token of their submission, so a job
is found even if the owner was killed before it read the id.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gan_runtime import __version__
from gan_runtime.base.slurm import TIME_LIMIT
from gan_runtime.records import processes
from gan_runtime.records.home import Home
from gan_runtime.targets.configuration import SlurmTarget
from gan_runtime.targets.far_home import FarHome, other_version, place_there
from gan_runtime.targets.target import (
    COMPLETING,
    NoAnswerError,
    Offer,
    Seen,
    Stage,
    Submitted,
    TargetJob,
)
from gan_runtime.targets.transport import NO_MESSAGE, Transport

WAITING = frozenset(
    ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT")
)
ENDED = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
    )
)
# With these reasons a job waits until a user changes it.
_NEVER = (
    *("PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints", "Invalid"),
    *("DependencyNever", "JobHeld", "AccountNotAllowed", "QOSNotAllowed", "QOSMinCpu"),
)
_OF_LIMITS = ("Assoc", "QOS")  # other reasons that begin so
# `sbatch` exits with 1 also when it does not know whether the job was accepted, and for limits that
# pass.
_UNCERTAIN = ("timed out", "unable to contact", "temporarily", "zero bytes", "maxsubmit")
# What slurmstepd and srun print of processes that are killed for memory.
_FOR_MEMORY = re.compile(
    r"^(slurmstepd|srun)\S*: error:.*(memory limit|oom|out of memory)", re.M | re.I
)
_IN_WORDS = {
    "Resources": "waits for free nodes",
    "Priority": "waits behind other jobs",
    "BeginTime": "starts at the expected time or later",
    "ReqNodeNotAvail": "waits for a node that is not available",
    "Licenses": "waits for a license",
    "Dependency": "waits for another job",
}
_FIELDS = (
    *("JobID:40", "Name:200", "State:40", "Reason:120"),
    *("StartTime:40", "EndTime:40", "NodeList:200", "RestartCnt:20"),
)
# A warning before the end of the time limit, early enough for a checkpoint: Slurm may send it up to
# a minute earlier.
WARNING_SECONDS = 120
SINFO_WORDS = 6
_ACCOUNTED = "now-90days"
_NO_HOME = 91  # exit code
_VERSION = "import gan_runtime; print(gan_runtime.__version__)"
QUERY_SECONDS, SUBMIT_SECONDS = 60.0, 60.0


def in_words(reason: str) -> str:
    """Why a job waits, for people."""
    if reason.startswith(_NEVER):
        return f"cannot start unless it is changed ({reason})"
    if reason.startswith(_OF_LIMITS):
        return f"waits for a limit of your account ({reason})"
    return _IN_WORDS.get(reason, reason or "just submitted")


def lacked_memory(log: str) -> bool:
    """Whether Slurm has killed processes of a failed job for memory, by the end of its log: the
    script fails as after any other error.
    """
    return _FOR_MEMORY.search(log) is not None


@dataclass(frozen=True)
class Slurm:
    """A cluster whose commands `transport` reaches, and whose nodes see `home` under its path."""

    options: SlurmTarget
    transport: Transport
    home: Home

    def offer(self) -> Offer:
        """The partitions with their limits, nodes and GPUs."""
        try:
            return self.partitions()
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")

    def check(self) -> Offer:
        """As `offer`, if the login node has the home and the same version of the project. Runs the
        lines before a trainer there.
        """
        offer = self.offer()
        if offer.refusal:
            return offer
        try:
            refusal = self._lacking()
        except NoAnswerError as error:
            refusal = f"{error}."
        return Offer(refusal=refusal) if refusal else offer

    def partitions(self) -> Offer:
        """The partitions with their limits, nodes and GPUs. Raises NoAnswerError."""
        lines = []
        for line in self._run("sinfo", "-h", "-o", "%P|%a|%l|%D|%c|%G").splitlines():
            words = line.split("|")
            if len(words) != SINFO_WORDS:
                continue
            name, state, limit, nodes, cores, gpus = words
            parts = [f"partition {name.rstrip('*')}", f"{nodes} nodes of {cores} cores"]
            parts += [gpus] if gpus not in ("", "(null)") else []
            parts += [f"at most {limit}"] if limit != "infinite" else []
            lines.append(", ".join([*parts, *([state] if state != "up" else [])]))
        return Offer(tuple(lines))

    def _lacking(self) -> str:
        """What the login node lacks of what a job needs, after the lines before a trainer; ""."""
        runs = str(self.home.runs.resolve())
        lines = [
            f"test -d {shlex.quote(runs)} || exit {_NO_HOME}",
            *_python_path(self.options),
            *self.options.prelude,
            f"{shlex.quote(self.options.interpreter)} -P -c {shlex.quote(_VERSION)}",
        ]
        done = self.transport.run(["bash", "-s"], "\n".join(lines), QUERY_SECONDS)
        if done.code == _NO_HOME:
            return f"it does not see {runs}: add it as a cluster that does not see the home here."
        if done.code:
            return (
                f"{self.options.interpreter} cannot run this project there"
                f" ({done.last_error or NO_MESSAGE}): set `python` and `project`."
            )
        version = done.output.strip().rpartition("\n")[2]
        return other_version(version, self.options.clone) if version != __version__ else ""

    def set_up(self) -> Offer:
        """Nothing: the nodes use this project or the one in the settings."""
        return Offer(refusal="a cluster is set up by hand: run `make setup` in the project there.")

    def script(self, job: TargetJob) -> str:
        """The batch script of an attempt."""
        return script(job, self.options)

    def submit(self, job: TargetJob) -> Submitted:
        """Submits the batch script, unless there is a job of this name."""
        present = self.observe([job.token]).get(job.token)
        return self.sbatch(job) if present is None else Submitted(present.job)

    def sbatch(self, job: TargetJob) -> Submitted:
        """Submits the batch script. Raises NoAnswerError."""
        done = self.transport.run(["sbatch", "--parsable"], self.script(job), SUBMIT_SECONDS)
        message = done.last_error or NO_MESSAGE
        if done.code and any(words in message.lower() for words in _UNCERTAIN):
            raise NoAnswerError(message)
        if done.code:
            return Submitted(refusal=message)
        # The start files of a shell on the login node may print lines before it.
        number = done.output.strip().rpartition("\n")[2].partition(";")[0]
        if not number.isdecimal():
            raise NoAnswerError(f"sbatch did not answer with a number: {number}")
        return Submitted(number)

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        """The newest job of each name. Slurm lists an ended one for some minutes; then its
        accounting knows it, where there is one.
        """
        if not tokens:
            return {}
        shown = self._run(
            *("env", "TZ=UTC"),  # the login node can be in another time zone
            *("squeue", "-h", "--all", "--states=all", f"--name={','.join(tokens)}"),
            *("--sort=i", "-O", ",".join(_FIELDS)),
        )
        widths = [int(field.partition(":")[2]) for field in _FIELDS]
        found: dict[str, Seen] = {}
        for line in shown.splitlines():
            words, begin = [], 0
            for width in widths:
                words.append(line[begin : begin + width].strip())
                begin += width
            job, name, state, reason, starts, ends, nodes, restarts = words
            found[name] = Seen(
                stage=_stage(state),
                state=state,
                reason=in_words(reason if reason != "None" else ""),
                job=job,
                starts_at=_time(starts),
                ends_at=_time(ends),
                nodes=_nodes(nodes),
                restarts=int(restarts) if restarts.isdecimal() else 0,
            )
        absent = [token for token in tokens if token not in found]
        return {**(self._accounted(absent) if absent else {}), **found}

    def _accounted(self, tokens: Sequence[str]) -> dict[str, Seen]:
        """The ended jobs of these names, by one line for each time that Slurm has started one."""
        words = ("env", "TZ=UTC", "sacct", "-n", "-P", "-X", "--duplicates", f"-S{_ACCOUNTED}")
        fields = "-oJobName,JobID,State,NodeList"
        try:
            shown = self._run(*words, f"--name={','.join(tokens)}", fields)
        except NoAnswerError:
            return {}
        found: dict[str, Seen] = {}
        for line in shown.splitlines():
            name, job, state, nodes = line.split("|") if line.count("|") == 3 else ("",) * 4
            if state and name in tokens:  # such as CANCELLED by 1000
                restarts = found[name].restarts + 1 if name in found else 0
                found[name] = Seen(
                    "ended", state.split()[0], "", job, nodes=_nodes(nodes), restarts=restarts
                )
        return {name: seen for name, seen in found.items() if seen.state in ENDED}

    def cancel(self, token: str) -> None:
        """Cancels the job of this name. Code 1 means that it has ended."""
        self.transport.run(["scancel", f"--name={token}"], seconds=QUERY_SECONDS)

    def _run(self, *words: str) -> str:
        done = self.transport.run(words, seconds=QUERY_SECONDS)
        if done.code:
            raise NoAnswerError(f"Slurm did not answer: {done.last_error or NO_MESSAGE}")
        return done.output


@dataclass(frozen=True)
class FarSlurm:
    """A cluster that does not see the home here: runs train in one there, and each observation
    brings what they have written.
    """

    slurm: Slurm
    far: FarHome

    def offer(self) -> Offer:
        """The partitions, if the login node has the same version of the project."""
        known = self.far.offer()
        try:
            return known if known.refusal else self.slurm.partitions()
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")

    def set_up(self) -> Offer:
        """Runs `make setup` in the clone there."""
        return self.far.set_up()

    def script(self, job: TargetJob) -> str:
        """The batch script of an attempt."""
        return self.slurm.script(job)

    def submit(self, job: TargetJob) -> Submitted:
        """Puts the run in place, then submits its batch script, unless the cluster has that job."""
        present = self.slurm.observe([job.token]).get(job.token)
        if present is not None:
            return Submitted(present.job)
        placed = self.far.place(job, self.script(job), begin=False)
        return placed if placed.refusal else self.slurm.sbatch(job)

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        """The newest job of each name. One that has ended, or is no longer listed, counts as
        running until all that it has written is here.
        """
        if not tokens:
            return {}
        states = dict(self.slurm.observe(tokens))
        ended = {token: token not in states or states[token].stage == "ended" for token in tokens}
        arrivals = self.far.look(ended)
        for token in tokens:
            if ended[token] and not (token in arrivals and arrivals[token].is_whole):
                last = states.get(token, Seen("running", COMPLETING))
                states[token] = replace(last, stage="running", state=COMPLETING)
        return states

    def cancel(self, token: str) -> None:
        """Cancels the job of this name."""
        self.slurm.cancel(token)


def _stage(state: str) -> Stage:
    if state in WAITING:
        return "waiting"
    return "ended" if state in ENDED else "running"


def _nodes(text: str) -> str:
    return "" if text == "(null)" or " " in text else text  # such as None assigned


def _time(text: str) -> datetime | None:
    """A time of an answer, in UTC."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    return None


def _quoted(path: str) -> str:
    """A path in a line of #SBATCH, where % begins a pattern."""
    return '"' + path.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- the batch script ----------------------------------------------------------------------------


_AGAIN = (
    "# Slurm starts a preempted job again only if it has to end it.",
    """scontrol show job "$SLURM_JOB_ID" 2>/dev/null | grep -q ' PreemptTime=[0-9]' &&"""
    """ exec scontrol requeue "$SLURM_JOB_ID\"""",
)


def _python_path(options: SlurmTarget) -> list[str]:
    """The line that lets Python find the project, if it is not installed there."""
    path = place_there if options.home else shlex.quote
    return [f"export PYTHONPATH={path(options.clone)}"] if options.clone else []


def script(job: TargetJob, options: SlurmTarget) -> str:
    """The batch script of an attempt, for the folder in which `sbatch` of a login begins.

    Before the time limit it asks the run to save and stop. The worker counts requeues itself.
    """
    folder = f"{options.home}/runs/{job.folder.name}" if options.home else str(job.folder)
    path = place_there if options.home else shlex.quote
    settings = {
        "job-name": job.token,
        "output": _quoted(f"{folder}/log.txt"),
        "open-mode": "append",
        "signal": f"B:USR2@{WARNING_SECONDS}",
        "ntasks": str(job.workers),
        "partition": options.partition,
        "account": options.account,
        "qos": options.qos,
        "constraint": options.constraint,
        "time": options.time_limit,
        "mem": options.memory,
        "cpus-per-task": str(options.cpus_per_task or ""),
        "gpus-per-task": str(job.gpus or "") if job.accelerator == "gpu" else "",
    }
    lines = [f"#SBATCH --{name}={value}" for name, value in settings.items() if value]
    lines += ["#SBATCH --requeue" if options.requeue else "#SBATCH --no-requeue"]
    # The last one of several equal options counts.
    lines += [f"#SBATCH {line}" for line in (*options.extra, *job.options)]
    module = shlex.join(processes.command(processes.TRAINER)[1:])
    worker = f"{path(options.interpreter)} {module} {path(folder)} {job.attempt} {job.accelerator}"
    return "\n".join(
        [
            "#!/bin/bash",
            *lines,
            *_python_path(options),
            # Slurm 22.05 and later do not hand it on to `srun`.
            *(["export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"] if options.cpus_per_task else []),
            *options.prelude,
            f"run={path(folder)}",
            f"""grep -qsx {TIME_LIMIT} "$run/STOP" && rm "$run/STOP"  # of the time before""",
            f"""trap '[ -e "$run/STOP" ] || echo {TIME_LIMIT} >"$run/STOP"' USR2""",
            f"srun --kill-on-bad-exit=1 {worker} &",
            "while wait $!; kill -0 $! 2>/dev/null; do :; done  # a signal ends `wait` early",
            "wait $!",
            "code=$?",
            *(_AGAIN if options.requeue else ()),
            "exit $code",
            "",
        ]
    )
