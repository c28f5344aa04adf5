"""Where the time of profiled steps goes, from the operations that ran.

Pure functions, no framework.

A profiled window is divided moment by moment, so that the shares always add up to 1:
* some operation computes: the moment is divided evenly among the operations that compute just then;
* none is seen computing, but some were handed to a pool of threads and are not done: it is divided
  evenly among them;
* none computes at all, but replicas exchange numbers: it is divided among the exchanges. An
  exchange, or a wait for another
  replica, that is hidden behind computing costs no time and is not counted; to add up what lies in
  one memory is computing;
* neither, but the step waits for its next batch: input. Input work that is hidden is not counted;
* nothing of all this: idle. Of operations nested in each other on one thread only the innermost
  counts; of calls that merely wait for what they called, none does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gan_runtime.engines.contract import Category, ProfileShare


@dataclass(frozen=True)
class Op:
    """One execution of one operation.

    `name`: its path in the graph; `kind`: such as MatMul; `line`: thread or stream.

    `handed_over`: from the start until it was done elsewhere, perhaps waiting for a thread first.
    """

    name: str
    kind: str
    start_s: float
    seconds: float
    line: str
    handed_over: bool = False

    @property
    def end_s(self) -> float:
        """When it was done."""
        return self.start_s + self.seconds


@dataclass(frozen=True)
class Window:
    """The profiled part of a trace, in the trace's seconds."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.start_s


Place = tuple[
    str, str, Category
]  # (phase, network, category); the first two are "" where none is known

_EXCHANGES = "^Collective|^Nccl|^nccl|^AllReduce|^all-reduce"
# The one table that says what an operation is: the first row that fits its kind and its path
# decides. {network} stands for the name of a network, with the number that Keras or TensorFlow may
# add to it.
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
# They wait for what they called, which has events of its own.
_CALLS = re.compile(
    r"^(_?XlaRun|XlaLaunch|_?XlaCompile|(Stateful)?PartitionedCall|While|StatelessWhile|If|StatelessIf|RemoteCall)$"
)

_WAITS = re.compile(_EXCHANGES)
PHASE_SCOPE = (  # what both engines call the operations of a phase, by its place in the step
    "phase_{}"
)
_PHASE = re.compile("/" + PHASE_SCOPE.format(r"(\d+)") + r"(?:_\d+)*/")


class Classifier:
    """Says to which phase, network and category an operation belongs.

    `networks`: their names in the graph; `phases`: by their place.
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
        self._known: dict[tuple[str, str], Place] = {}

    def place(self, op: Op) -> Place:
        """(phase, network, category); "unattributed" for an operation that no rule knows."""
        key = (op.name, op.kind)
        if key not in self._known:
            self._known[key] = self._find(f"/{op.name}/", op.kind)
        return self._known[key]

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
        found = self._network.search(path)
        return phase, (found[1] if found else ""), category

    def _phase(self, path: str) -> str:
        found = _PHASE.search(path)
        place = int(found[1]) if found else len(self._phases)
        return self._phases[place] if place < len(self._phases) else ""


def shares(
    devices: Sequence[Iterable[Op]],
    window: Window,
    networks: Sequence[str],
    phases: Sequence[str] = (),
) -> tuple[ProfileShare, ...]:
    """Seconds and share of each phase, network and category that occurs, the mean over the devices,
    largest first.

    `devices`: the operations of each device; simulated cores are one device, because they share the
    same threads. Only what lies in the window counts. The seconds add up to the window's, the
    shares to 1. No operation at all: all is idle.
    """
    classifier = Classifier(networks, phases)
    total: dict[Place, float] = defaultdict(float)
    for ops in devices:
        for place, seconds in _divided(ops, window, classifier).items():
            total[place] += seconds / len(devices)
    largest_first = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        ProfileShare(network, category, seconds, seconds / window.seconds, phase)
        for (phase, network, category), seconds in largest_first
        if seconds > 0
    )


Running = dict[tuple[int, Place], int]  # (level, place) → operations that run just now


def _divided(ops: Iterable[Op], window: Window, classifier: Classifier) -> dict[Place, float]:
    """Every moment of the window given to those that ran then."""
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
    """Who gets a moment, and which part of it."""
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
    """(moment, (level, place), +1 or −1) at the begin and end of every stretch in which an
    operation ran innermost.
    """
    lines: dict[str, list[Op]] = defaultdict(list)
    for index, op in enumerate(ops):
        if op.seconds > 0 and not _CALLS.match(op.kind):
            lines[f"{index}" if op.handed_over else op.line].append(
                op
            )  # those overlap without being nested
    for line in lines.values():
        for op, begin, end in _innermost(line):
            begin, end = max(begin, window.start_s), min(end, window.end_s)
            if end > begin:
                place = classifier.place(op)
                taker = (_level(op, place[-1]), place)
                yield begin, taker, 1
                yield end, taker, -1


def _level(op: Op, category: Category) -> int:
    """The lowest level with an operation takes the moment.

    Computing comes first, adding up what is exchanged included.
    """
    if category == "input":
        return 3
    return 2 if _WAITS.search(op.kind) else int(op.handed_over)


def _innermost(ops: list[Op]) -> Iterable[tuple[Op, float, float]]:
    """Stretches of one thread, one after another: of nested operations the inner one has the
    time that both took.
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
