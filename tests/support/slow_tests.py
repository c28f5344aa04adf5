"""Tests of `make test` that may take longer than the others, each with a reason; at most MOST.

These are tests that took more than 3 s without cached programs on the machine of docs/testing.md.
"""

from __future__ import annotations

MOST = 10
ENGINES = "tests/engines"
COMPILES = "JAX compiles programs, once on each machine"

REASONS: dict[str, str] = {
    "tests/browser/test_main_job.py::test_a_run_is_launched_watched_stopped_resumed_and_compared": (
        "a browser, a dashboard and two trainers, 25 s"
    ),
    "tests/project/test_document_commands.py::test_a_documented_command_runs": (
        "two of them train, up to 25 s each"
    ),
    "tests/project/test_loaded_modules.py::test_importing_all_dashboard_modules_loads_no_framework": (  # noqa: E501
        "in a new clone it compiles every module to bytecode, 5 s"
    ),
    f"{ENGINES}/test_jax_engine.py::test_eight_devices_match_one": COMPILES,
    f"{ENGINES}/test_jax_engine.py::test_streamed_rows_train_exactly_like_resident_ones": COMPILES,
    f"{ENGINES}/test_jax_engine.py::test_step_all_reduces_gradients_once_and_reuses_buffers": (
        COMPILES
    ),
    f"{ENGINES}/test_jax_parity.py::test_jax_matches_the_stored_tensorflow_steps": COMPILES,
    f"{ENGINES}/test_jax_parity.py::test_engines_train_alike_and_load_each_others_checkpoints": (
        COMPILES
    ),
    f"{ENGINES}/test_tiles.py::test_engines_agree_on_tiles_and_two_cores_match_one": COMPILES,
}
