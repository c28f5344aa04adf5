"""Tests of `make test` that may take longer than the others, each with a reason; at most MOST.

These are tests that took more than 1.5 s on an AVX-512 processor without cached programs, so that
slower machines do not fail because of them.
"""

from __future__ import annotations

MOST = 26
ENGINES = "tests/engines"
SPMD = f"{ENGINES}/test_jax_engine.py"
COMPILES = "JAX compiles a program for several devices, once on each machine"
TRACES = "TensorFlow builds and traces an engine for each side of the comparison"

REASONS: dict[str, str] = {
    "tests/store/test_earlier_journals.py::test_example_bundles_open_with_all_their_options": (
        "whole example bundles are taken in, 3 to 8 MB"
    ),
    "tests/browser/test_main_job.py::test_a_run_is_launched_watched_stopped_resumed_and_compared": (
        "a browser, a dashboard and two trainers, 25 s"
    ),
    "tests/project/test_document_commands.py::test_a_documented_command_runs": (
        "programs as a reader starts them; the whole file takes 100 s of the processor"
    ),
    f"{SPMD}::test_eight_devices_match_one": COMPILES,
    f"{SPMD}::test_streamed_rows_train_exactly_like_resident_ones": COMPILES,
    f"{SPMD}::test_step_all_reduces_gradients_once_and_reuses_buffers": COMPILES,
    f"{SPMD}::test_identical_phases_draw_different_noise": COMPILES,
    f"{SPMD}::test_resumed_run_matches_an_uninterrupted_one": COMPILES,
    f"{ENGINES}/test_jax_parity.py::test_jax_matches_the_stored_tensorflow_steps": (COMPILES),
    f"{ENGINES}/test_jax_parity.py::test_engines_train_alike_and_load_each_others_checkpoints": (
        "both engines, live"
    ),
    f"{ENGINES}/test_tiles.py::test_engines_agree_on_tiles_and_two_cores_match_one": (
        "both engines, live"
    ),
    f"{ENGINES}/test_float16_probe.py::test_jax_probe_skips_overflowed_gradients": (
        "JAX compiles a probe for both precisions"
    ),
    f"{ENGINES}/test_jax_layers.py::test_convolutions_match_keras": (
        "JAX compiles a program for each of many sizes"
    ),
    f"{ENGINES}/test_tf_batches.py::test_three_field_batches_train_alike_in_parts_and_on_two_replicas": (  # noqa: E501
        TRACES
    ),
    f"{ENGINES}/test_tf_distribution.py::test_replicas_train_locally_and_average_every_third_step": (  # noqa: E501
        TRACES
    ),
    f"{ENGINES}/test_tf_loops.py::test_both_loops_agree_and_load_each_others_checkpoints": (TRACES),
    f"{ENGINES}/test_tf_precision.py::test_dcgan_gradients_in_bfloat16_align_with_float32": (
        "the networks of the paper, in two precisions"
    ),
    "tests/hostile/test_properties.py::test_journal_keeps_its_good_records_when_read_in_pieces": (
        "40 journals that hypothesis makes up"
    ),
    "tests/project/test_floors.py::test_imports_only_go_down_the_floors": (
        "the first to ask parses every file of the project"
    ),
    "tests/benchmarks/test_shower_results.py::test_noise_has_correct_energies_but_wrong_profiles": (
        "fewer showers give no sure distance"
    ),
    f"{ENGINES}/test_tf_batches.py::test_streamed_rows_train_exactly_like_resident_ones": TRACES,
    f"{ENGINES}/test_tf_objectives.py::test_in_turn_d_takes_k_steps_before_g_follows": TRACES,
    f"{ENGINES}/test_tf_precision.py::test_each_loss_is_scaled_and_unscaled_for_its_own_network": (
        TRACES
    ),
    "tests/commands/test_bundles.py::test_a_run_with_a_too_repetitive_journal_is_not_packed": (
        "a large journal is compressed"
    ),
    "tests/project/test_loaded_modules.py::test_importing_all_dashboard_modules_loads_no_framework": (  # noqa: E501
        "a fresh process imports every module of the dashboard"
    ),
    "tests/cli/test_setup.py::test_a_requirements_list_is_remembered_by_later_setups": (
        "pip checks an environment twice"
    ),
}
