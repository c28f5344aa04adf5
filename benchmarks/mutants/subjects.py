"""What is changed, and which tests are asked: the core of training, each file with the unit tests that are about it.

Paths are under gan_runtime/. Tests are files or node ids under tests/, the quickest first; the first failure ends a trial.
"""

from __future__ import annotations

LOSSES, NETWORKS, ORDER = (
    "workloads/test_losses.py",
    "workloads/test_networks.py",
    "engines/test_image_order.py",
)
NOISE, KERNELS, INPUT = "engines/test_tf_noise.py", "engines/test_tf_kernels.py", "engines/test_tf_input.py"
EVERY_WORKLOAD = "workloads/test_every_workload.py"
OBJECTIVES, OPTIMIZERS = "engines/test_tf_objectives.py", "engines/test_tf_optimizers.py"
PRECISION, RATES, COUNTS = (
    "engines/test_tf_precision.py",
    "engines/test_tf_rates.py",
    "engines/test_bin_counts.py",
)
PROBES, STATE, RESUME = "engines/test_tf_probes.py", "engines/test_tf_state.py", "engines/test_tf_resume.py"
BATCHES, PROGRAM = "engines/test_tf_batches.py", "workloads/test_program.py"
REPLICAS, LATENTS = "engines/test_tf_distribution.py", "test_fixed_inputs.py"
JAX_PARTS, JAX = "engines/test_jax_parts.py", "engines/test_jax_spmd.py"
JAX_KERNELS = f"{JAX}::test_kernels_compute_what_the_layers_of_keras_compute"
LAYERS = ("workloads/test_layers.py", "engines/test_tf_layers.py")
JAX_LAYERS = "engines/test_jax_layers.py"
JAX_CALLS = f"{JAX}::test_the_length_of_a_call_changes_no_number"
JAX_PRECISION = f"{JAX}::test_each_loss_is_scaled_and_unscaled_by_the_scale_of_its_own_network"
JAX_REPLICAS = (
    f"{JAX}::test_parts_of_a_batch_add_up_to_the_batch",
    f"{JAX}::test_eight_devices_compute_what_one_computes",
)
JAX_STATE = (
    f"{JAX}::test_a_resumed_run_ends_where_a_straight_one_does",
    f"{JAX}::test_the_averaged_generator_has_the_batch_norm_statistics_of_the_live_one",
    f"{JAX}::test_lowered_rates_hold_from_the_next_call_on",
)
BOTH_ENGINES = "engines/test_jax_parity.py::test_both_engines_train_alike_and_take_up_each_others_checkpoints"
PARITY = tuple(
    f"{BOTH_ENGINES}[{case}]"
    for case in (
        "two replicas, each with its own batch norm and its share in two parts",
        "one replica, in turn, with all that a loss can have",
        "adam, schedule, clipping, average",
        "rmsprop",
    )
)
PLAN, SCHEDULES = "training/test_rates.py", "training/test_schedules.py"

TESTS: dict[str, tuple[str, ...]] = {
    "training/alarms.py": ("training/test_alarms.py",),
    "engines/rates.py": (PLAN,),
    "engines/schedules.py": (SCHEDULES,),
    "training/calls.py": ("training/test_calls.py",),
    "engines/image_order.py": (ORDER,),
    "engines/fixed_inputs.py": (LATENTS,),
    "workloads/losses.py": (LOSSES,),
    "workloads/contract.py": (PROGRAM,),
    "workloads/pair.py": (NETWORKS,),
    "workloads/layers.py": (NETWORKS, *LAYERS),
    "workloads/dcgan_mnist.py": (NETWORKS, EVERY_WORKLOAD),
    "workloads/mlp_gan.py": (NETWORKS, EVERY_WORKLOAD),
    "workloads/step_context.py": (NETWORKS, EVERY_WORKLOAD),
    "engines/tf/kernels.py": (KERNELS, *LAYERS[1:]),
    "engines/tf/spectra.py": (KERNELS, *LAYERS[1:]),
    "engines/tf/histograms.py": (COUNTS,),
    "engines/tf/input.py": (INPUT, BATCHES),
    "engines/tf/noise.py": (NOISE,),
    "engines/probing.py": (COUNTS, PROBES),
    "engines/checkpoint_fit.py": (STATE,),
    "engines/step_plan.py": (ORDER, BATCHES),
    "engines/tf/optimizers.py": (OPTIMIZERS, PRECISION),
    "engines/tf/probes.py": (PROBES, BATCHES),
    "engines/tf/sampler.py": (PROBES, BATCHES),
    "engines/tf/values.py": (BATCHES,),
    "engines/tf/state.py": (STATE, RESUME, REPLICAS),
    "engines/tf/step.py": (PRECISION, OBJECTIVES, REPLICAS),
    "engines/jax/noise.py": (JAX_PARTS, JAX_CALLS),
    "engines/jax/kernels.py": (JAX_PARTS, JAX_KERNELS, JAX_LAYERS),
    "engines/jax/optimizers.py": (JAX_PRECISION, *PARITY[2:]),
    "engines/jax/model.py": (JAX_CALLS, *JAX_STATE),
    "engines/jax/call.py": (JAX_CALLS, *JAX_REPLICAS),
    "engines/jax/probes.py": (JAX_PARTS, *JAX_REPLICAS[1:], *PARITY[:1]),
    "engines/jax/step.py": (JAX_CALLS, JAX_PRECISION, *JAX_REPLICAS, *PARITY),
}


def tests_of(path: str) -> tuple[str, ...]:
    """Those that are asked about gan_runtime/… ; from the top of the repository, as pytest takes them."""
    return tuple(f"tests/{name}" for name in TESTS[path.removeprefix("gan_runtime/")])
