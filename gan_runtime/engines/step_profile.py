"""The composition of a step: the time of its operations in a profile, and the kernels in XLA's
text.

Pure functions, no framework.

A profiled window is divided moment by moment, so that the shares always add up to 1. A moment
belongs to the first of these that applies, in equal parts:

* the operations that compute;
* those in the queue of a thread pool, submitted and not done;
* the exchanges between replicas. An exchange, or a wait for another replica, that computing hides
  costs no time and does not count; a sum within one memory is computing;
* input: the step waits for its next batch. Input work that computing hides does not count;
* idle.

Of nested operations on one thread only the innermost counts; calls that wait for what they called
do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gan_runtime.engines import hlo_text
from gan_runtime.engines.contract import Category, ProfileShare
from gan_runtime.engines.hlo_text import FREE, Module


@dataclass(frozen=True)
class Op:
    """One execution of one operation.

    `name`: its path in the graph; `kind`: such as MatMul; `line`: thread or stream.
    `handed_over`: a thread pool runs it; the time includes the wait for a thread.
    """

    name: str
    kind: str
    start_s: float
    seconds: float
    line: str
    handed_over: bool = False

    @property
    def end_s(self) -> float:
        return self.start_s + self.seconds


@dataclass(frozen=True)
class Window:
    """The profiled part of a trace, in the trace's seconds."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


Place = tuple[str, str, Category]  # (phase, network, category); "" if unknown

_EXCHANGES = "^Collective|^Nccl|^nccl|^AllReduce|^all-reduce"
# The category of an operation: the first row that matches its kind and path decides. {network}: the
# name of a network, with the number that Keras or TensorFlow can append.
_RULES: tuple[tuple[str, str, Category], ...] = (
    # kind, path, category
    (r"Iterator|Infeed|MemcpyH2D|MEMCPYHtoD|OptionalGetValue", "", "input"),
    ("", r"/all_reduce_batch_norm", "batch_norm_all_reduce"),
    ("", r"/all_reduce_({network}|weights)", "gradient_all_reduce"),
    (_EXCHANGES, r"/[a-z_]*_{network}/", "gradient_all_reduce"),
    (_EXCHANGES, r"/{network}/", "batch_norm_all_reduce"),
    (_EXCHANGES, r"/gradients(?:_\d+)*/", "batch_norm_all_reduce"),  # the way back through it
    (_EXCHANGES, "", "gradient_all_reduce"),
    ("", r"/(optimizer|loss_scale|adam|sgd|rmsprop)_{network}/", "optimizer"),
    ("", r"/(gradient_tape|gradients)(?:_\d+)*/", "backward"),
    ("", r"/{network}/", "forward"),
    ("", r"/forward(?:_\d+)*/", "forward"),
)
# Calls that wait for others, which have separate events.
_CALLS = re.compile(
    r"^(_?XlaRun|XlaLaunch|_?XlaCompile|(Stateful)?PartitionedCall|While|StatelessWhile|If|StatelessIf|RemoteCall)$"
)

_WAITS = re.compile(_EXCHANGES)
PHASE_SCOPE = "phase_{}"  # name of a phase's operations in both engines, by its index in the step
_PHASE = re.compile("/" + PHASE_SCOPE.format(r"(\d+)") + r"(?:_\d+)*/")


class Classifier:
    """The phase, network and category of each operation.

    `networks`: their names in the graph; `phases`: in their order.
    """

    def __init__(self, networks: Sequence[str], phases: Sequence[str] = ()) -> None:
        names = "|".join(map(re.escape, networks))
        network = rf"(?:{names})(?:_\d+)*"
        self._rules = [
            (re.compile(kind), re.compile(path.replace("{network}", network)), place)
            for kind, path, place in _RULES
        ]
        self._network = re.compile(rf"/(?:[a-z_]+_)?({names})(?:_\d+)*/")
        self._phases = tuple(phases)
        self._places: dict[tuple[str, str], Place] = {}

    def place(self, op: Op) -> Place:
        """The (phase, network, category) of an operation; "unattributed" if no rule matches."""
        key = (op.name, op.kind)
        if key not in self._places:
            self._places[key] = self._find(f"/{op.name}/", op.kind)
        return self._places[key]

    def _find(self, path: str, kind: str) -> Place:
        category = next(
            (
                place
                for kinds, paths, place in self._rules
                if kinds.search(kind) and paths.search(path)
            ),
            None,
        )
        if category == "input":
            return "", "", category
        phase = self._phase(path)
        if category is None:
            return phase, "", "unattributed"
        network = self._network.search(path)
        return phase, (network[1] if network else ""), category

    def _phase(self, path: str) -> str:
        match = _PHASE.search(path)
        index = int(match[1]) if match else len(self._phases)
        return self._phases[index] if index < len(self._phases) else ""


def profile_shares(
    devices: Sequence[Iterable[Op]],
    window: Window,
    networks: Sequence[str],
    phases: Sequence[str] = (),
) -> tuple[ProfileShare, ...]:
    """Seconds and share of each phase, network and category that occurs, the mean over the devices,
    largest first.

    `devices`: the operations of each device; simulated cores are one device, because they share
    threads. Only the window counts. The seconds add up to the window's, the shares to 1. Without
    operations all is idle.
    """
    classifier = Classifier(networks, phases)
    total: dict[Place, float] = defaultdict(float)
    for ops in devices:
        for place, seconds in _divided(ops, window, classifier).items():
            total[place] += seconds / len(devices)
    largest_first = sorted(total.items(), key=lambda share: (-share[1], share[0]))
    return tuple(
        ProfileShare(network, category, seconds, seconds / window.seconds, phase)
        for (phase, network, category), seconds in largest_first
        if seconds > 0
    )


Running = dict[tuple[int, Place], int]  # (level, place) → running operations


def _divided(ops: Iterable[Op], window: Window, classifier: Classifier) -> dict[Place, float]:
    """The seconds of the window by place; each moment is divided among its running operations."""
    changes = sorted(_changes(ops, window, classifier), key=lambda change: change[0])
    running: Running = defaultdict(int)
    seconds: dict[Place, float] = defaultdict(float)
    now = window.start_s
    for moment, taker, change in [*changes, (window.end_s, None, 0)]:
        if moment > now:
            for place, part in _takers(running).items():
                seconds[place] += part * (moment - now)
            now = moment
        if taker is not None:
            running[taker] += change
    return seconds


def _takers(running: Running) -> dict[Place, float]:
    """The places that share a moment, and their shares."""
    lowest = min((level for (level, _), count in running.items() if count), default=None)
    if lowest is None:
        return {("", "", "idle"): 1.0}
    active = {
        place: count for (level, place), count in running.items() if count and level == lowest
    }
    return {place: count / sum(active.values()) for place, count in active.items()}


def _changes(
    ops: Iterable[Op], window: Window, classifier: Classifier
) -> Iterable[tuple[float, tuple[int, Place], int]]:
    """(moment, (level, place), +1 or −1) at begin and end of each innermost operation."""
    lines: dict[str, list[Op]] = defaultdict(list)
    for index, op in enumerate(ops):
        if op.seconds > 0 and not _CALLS.match(op.kind):
            # Those of a thread pool overlap without being nested.
            lines[f"{index}" if op.handed_over else op.line].append(op)
    for line in lines.values():
        for op, begin, end in _innermost(line):
            begin, end = max(begin, window.start_s), min(end, window.end_s)
            if end > begin:
                place = classifier.place(op)
                taker = (_level(op, place[-1]), place)
                yield begin, taker, 1
                yield end, taker, -1


def _level(op: Op, category: Category) -> int:
    """The lowest level with an operation takes the moment. Computing comes first."""
    if category == "input":
        return 3
    return 2 if _WAITS.search(op.kind) else int(op.handed_over)


def _innermost(ops: list[Op]) -> Iterable[tuple[Op, float, float]]:
    """(operation, begin, end) on one thread, one after another; nested time belongs to the inner
    operation.
    """
    open_ops: list[Op] = []
    now = 0.0
    for op in [*sorted(ops, key=lambda op: (op.start_s, -op.seconds)), None]:
        while open_ops and (op is None or open_ops[-1].end_s <= op.start_s):
            inner = open_ops.pop()
            if inner.end_s > now:
                yield inner, now, inner.end_s
                now = inner.end_s
        if op is not None:
            if open_ops and op.start_s > now:
                yield open_ops[-1], now, op.start_s
            now = max(now, op.start_s)
            open_ops.append(op)


# ----------------------------------------------------------------------
# How many kernels and fusions a module of XLA has, counted in its text.
#
# An instruction of the entry computation does work, and so do those of what it calls; instructions
# inside a fusion are one kernel together. Before XLA has optimized it, a module has no fusions:
# each instruction would be one kernel.

# Computations that a call runs. What other instructions name (a reduction's sum) is part of these.
_CALLED = re.compile(
    r"(?:to_apply|body|condition|true_computation|false_computation|branch_computations)=\{?([^,}]+(?:,"
    r" %[^,}]+)*)"
)
_HLO_CALLS = {"call", "while", "conditional", "async-start"}


@dataclass(frozen=True)
class HloCounts:
    """`kernels`: instructions that do work; `fusions`: the fusions among them."""

    kernels: int
    fusions: int


def hlo_counts(module: str) -> HloCounts:
    """The counts of one module from its text; a loop's body counts once."""
    program = hlo_text.parsed(module)
    return sum_counts(_count(program, program.entry)) if program.entry else HloCounts(0, 0)


def _count(program: Module, name: str) -> Iterable[HloCounts]:
    for instruction in program.computations.get(name, []):
        if instruction.opcode in _HLO_CALLS:
            for names in _CALLED.findall(instruction.text):
                for called in names.split(", "):
                    yield from _count(program, called.strip().removeprefix("%"))
        elif instruction.opcode not in FREE:
            yield HloCounts(1, int(instruction.opcode == "fusion"))


def sum_counts(counts: Iterable[HloCounts]) -> HloCounts:
    """The sum of several counts."""
    counts = list(counts)
    return HloCounts(sum(c.kernels for c in counts), sum(c.fusions for c in counts))
