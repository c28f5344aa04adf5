"""python -m benchmarks.mutants.warm, in a copy of the repository: loads TensorFlow once, then runs pytest in children of itself.

Loading takes longer than most of these tests. A line of JSON in, a list of tests; a line out, {"code": …, "output": …}: what
pytest returned, or minus the signal that ended it. Children load the copy's own modules, as they are at that moment.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from typing import IO

PROCESSOR_SECONDS = (
    240  # of a trial: a change can make a loop endless; not of the clock, which a busy machine stretches
)
LAST_CHARACTERS = 20_000  # of the output, which names the failed test at its end


def main() -> None:
    """Answers until there are no more questions."""
    import keras  # noqa: F401
    import pytest  # noqa: F401
    import tensorflow  # noqa: F401

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            code = _code(json.loads(line), output)
            output.seek(0)
            answers.write(json.dumps({"code": code, "output": output.read()[-LAST_CHARACTERS:]}) + "\n")
        answers.flush()


def _code(tests: list[str], output: IO[str]) -> int:
    child = os.fork()
    if child == 0:
        os._exit(_asked(tests, output))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _asked(tests: list[str], output: IO[str]) -> int:
    import pytest

    for stream in (sys.stdout, sys.stderr):
        os.dup2(output.fileno(), stream.fileno())
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS + 5))
    code = int(pytest.main(["-x", "-q", "--tb=line", "--timeout=0", *tests]))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    main()
