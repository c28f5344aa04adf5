"""Memory freed by a thread stays in the process, so the next step does not request it from the
system again, page by page.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PAGES = 20_000_000 // os.sysconf("SC_PAGE_SIZE")  # of one array
# A thread allocates, fills and frees 20 MB five times. Prints the number of pages that the system
# provided for the last four.
STEPS = """
import ctypes, resource, sys, threading
from gan_runtime.engines.tf.process import keep_freed_memory
if sys.argv[1] == "keep":
    print(keep_freed_memory())
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
counts = []
def step():
    array = ctypes.c_void_p(libc.malloc(20_000_000))
    ctypes.memset(array, 1, 20_000_000)
    libc.free(array)
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
thread = threading.Thread(target=lambda: [step() for _ in range(5)])
thread.start()
thread.join()
print(counts[-1] - counts[0])
"""


def output(how: str, **environment: str) -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-c", STEPS, how],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.split()


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="mallopt is glibc's: elsewhere memory goes back as the system has it",
)
def test_memory_freed_by_a_thread_is_reused() -> None:
    succeeded, pages = output("keep")
    (as_it_was,) = output("leave")
    assert succeeded == "True"
    assert int(pages) < PAGES / 10
    assert int(as_it_was) > PAGES, "else there is nothing to keep"


def test_user_set_malloc_options_are_kept() -> None:
    assert output("keep", MALLOC_TOP_PAD_="4096")[0] == "False"
