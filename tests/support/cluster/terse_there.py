"""The half of an ssh target on the other host, with short answers: the files of a short run then
arrive in many pieces.

    python -m tests.support.cluster.terse_there HOME VERB …
"""

from __future__ import annotations

import sys

from gan_runtime.targets import there

MODULE = "tests.support.cluster.terse_there"
MOST_BYTES = 8_000

if __name__ == "__main__":
    there.MOST_BYTES = MOST_BYTES
    there.main(sys.argv[1:])
