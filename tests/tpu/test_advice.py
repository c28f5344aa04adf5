"""The messages with which a TPU refuses to start, as printed, and the advice shown instead."""

from __future__ import annotations

import pytest

from gan_runtime.base.errors import advice, cause

BUSY = (
    "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by"
    " process with pid 2718466. Not attempting to load libtpu.so in this process. (set"
    " JAX_PLATFORMS='' to automatically choose an available backend)"
)
BUSY_ELSEWHERE = (
    "I0000 00:00:1649423660.053391 1924758 f236.cc:165] libtpu.so already in use by another process"
    ' probably owned by another user. Run "$ sudo lsof -w /dev/accel0" to figure out which process'
    " is using the TPU. Not attempting to load libtpu.so in this process."
)
BUSY_GROUP = "Couldn't open iommu group /dev/vfio/0: Device or resource busy [16]"
LOCK = (
    'Internal error when accessing libtpu multi-process lockfile. Run "$ sudo rm'
    ' /tmp/libtpu_lockfile".'
)
NO_LIBTPU = (
    "Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open"
    " shared object file: No such file or directory"
)
NO_BUILD = (
    "No OpKernel was registered to support Op 'ConfigureDistributedTPU' used by {{node"
    " ConfigureDistributedTPU}} with these attrs: […]\nRegistered devices: [CPU]"
)
METADATA = (
    "Failed to get TPU metadata (tpu-env) from instance metadata for variable"
    " CHIPS_PER_HOST_BOUNDS: INTERNAL: Couldn't connect to server"
)
FETCH = (
    "I0000 00:00:1671728351.222598      12 common_lib.cc:145] Failed to fetch URL on try 1 out of"
    " 6: Timeout was reached"
)
NO_PLATFORM = (
    "Unable to initialize backend 'tpu': UNAVAILABLE: No TPU Platform available. (set"
    " JAX_PLATFORMS='' …)"
)
TENSORFLOW_NO_PLATFORM = "No TPU platform found. Platform manager status: OK"
STRUCT = (
    "INVALID_ARGUMENT: Unexpected PJRT_Client_Create_Args struct size: expected at least 88, got 80"
)
RIGHTS = "open(/dev/accel0): Operation not permitted: Operation not permitted"
UNKNOWN_BACKEND = (
    "Unable to initialize backend 'tpu': Backend 'tpu' is not in the list of known backends: cpu."
)


@pytest.mark.parametrize(
    ("message", "beginning"),
    [
        (
            BUSY,
            (
                "another process uses the TPU, and only one can: find it with `sudo lsof -w"
                " /dev/accel0 /dev/vfio/0`"
            ),
        ),
        (BUSY_ELSEWHERE, "another process uses the TPU"),
        (BUSY_GROUP, "another process uses the TPU"),
        (LOCK, "libtpu's lock file is left over from a process that was killed"),
        (NO_LIBTPU, "libtpu is not installed in this environment: run `make clean setup`"),
        (NO_BUILD, "this TensorFlow was built without TPU support"),
        (METADATA, "libtpu gets no answer from the cloud's metadata server"),
        (FETCH, "libtpu gets no answer from the cloud's metadata server"),
        (NO_PLATFORM, "libtpu finds no TPU"),
        (TENSORFLOW_NO_PLATFORM, "libtpu finds no TPU"),
        (STRUCT, "libtpu does not match this framework"),
        (RIGHTS, "this user cannot open the TPU"),
        (UNKNOWN_BACKEND, "the framework cannot start the TPU"),
    ],
)
def test_common_error_is_answered_with_advice(message: str, beginning: str) -> None:
    assert advice(message).startswith(beginning)


def test_unknown_error_gets_no_advice_and_shows_its_first_line() -> None:
    assert advice("the moon is full") == ""
    assert cause("\n  the moon is full\nand more") == "the moon is full"
    assert cause("") == "no message"
