"""The process of a user's command that a scenario interrupts: queues a run or loads a bundle.

python -m benchmarks.faults.user_command submit HOME SPEC_JSON
python -m benchmarks.faults.user_command import HOME BUNDLE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.spec import RunSpec
from tests.support import inject
from tests.support.asking import ask
from tests.support.hosts import stated_host

ACTOR = operator("a user")


def main(command: str, home: Home, argument: str) -> None:
    """Runs the command until it is interrupted."""
    if command == "submit":
        ask(home, stated_host(), actor=ACTOR).submit(RunSpec.parse(json.loads(argument)), "quick")
    else:
        ask(home, actor=ACTOR).import_bundle(Path(argument))


if __name__ == "__main__":
    inject.arm("user command", Path(sys.argv[2]))
    main(sys.argv[1], Home(Path(sys.argv[2])), sys.argv[3])
