"""Tests of `make test` that may take longer than the others, each with the reason; at most MOST.

Named is what has taken more than 1.5 s of an AVX-512 processor with no compiled program kept from
before, so that a slower machine does not fail for it.
"""

from __future__ import annotations

MOST = 25
ENGINES = "tests/engines"
SPMD = f"{ENGINES}/test_jax_engine.py"
COMPILES = "JAX compiles a program for several devices, once on each machine"
TRACES = "TensorFlow builds and traces an engine for each side of the comparison"

REASONS: dict[str, str] = {
    "tests/store/test_earlier_journals.py::"
    "test_the_example_bundles_open_with_every_option_that_their_files_give": (
        "whole example bundles are taken in, 3 to 8 MB"
    ),
    "tests/browser/test_main_job.py::test_a_run_is_launched_watched_stopped_resumed_and_compared": (
        "a browser, a dashboard and two trainers, 25 s"
    ),
    "tests/project/test_document_commands.py::test_a_command_of_the_documents_runs": (
        "programs as a reader starts them; the whole file takes 100 s of the processor"
    ),
    f"{SPMD}::test_eight_devices_compute_what_one_computes": COMPILES,
    f"{SPMD}::test_streamed_rows_train_as_resident_ones_do": COMPILES,
    f"{SPMD}::test_a_step_exchanges_its_gradients_once_and_its_buffers_are_reused": COMPILES,
    f"{SPMD}::test_phases_that_do_the_same_draw_noise_of_their_own": COMPILES,
    f"{SPMD}::test_a_resumed_run_ends_where_a_straight_one_does": COMPILES,
    f"{ENGINES}/test_jax_parity.py::test_jax_takes_the_steps_that_are_stored_of_tensorflow": (
        COMPILES
    ),
    f"{ENGINES}/test_jax_parity.py::test_both_engines_train_alike_and_take_up_each_others_checkpoints": (  # noqa: E501
        "both engines, live"
    ),
    f"{ENGINES}/test_tiles.py::test_both_engines_paint_the_same_tiles_and_two_cores_what_one_paints": (  # noqa: E501
        "both engines, live"
    ),
    f"{ENGINES}/test_float16_probe.py::test_on_jax": "JAX compiles a probe for both precisions",
    f"{ENGINES}/test_jax_layers.py::test_a_convolution_is_that_of_keras_whatever_its_sizes": (
        "JAX compiles a program for each of many sizes"
    ),
    f"{ENGINES}/test_tf_batches.py::test_a_batch_of_three_fields_trains_alike_in_parts_and_on_two_replicas": (  # noqa: E501
        TRACES
    ),
    f"{ENGINES}/test_tf_distribution.py::test_replicas_train_alone_and_become_their_mean_every_third_step": (  # noqa: E501
        TRACES
    ),
    f"{ENGINES}/test_tf_loops.py::test_both_loops_compute_the_same_and_read_each_others_checkpoints": (  # noqa: E501
        TRACES
    ),
    f"{ENGINES}/test_tf_precision.py::test_the_gradients_of_the_dcgan_in_bfloat16_point_where_those_of_float32_do": (  # noqa: E501
        "the networks of the paper, in two precisions"
    ),
    "tests/hostile/test_properties.py::test_a_journal_gives_its_good_records_and_says_what_it_skips": (  # noqa: E501
        "40 journals that hypothesis makes up"
    ),
    "tests/project/test_floors.py::test_imports_go_down_the_floors": (
        "the first to ask parses every file of the project"
    ),
    "tests/benchmarks/test_shower_results.py::test_noise_has_every_energy_right_and_nothing_in_its_place": (  # noqa: E501
        "fewer showers give no sure distance"
    ),
}
