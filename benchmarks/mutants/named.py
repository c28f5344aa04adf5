"""Changes that are tried every time: mistakes easily made, of which most once passed every test of their file.

Each is said in words. The tests that must notice are named, so that a trial is quick.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.mutants.changes import Change

PARTS, SPMD, NETWORKS = "engines/test_jax_parts.py", "engines/test_jax_spmd.py", "workloads/test_networks.py"
OBJECTIVES, PRECISION = "engines/test_tf_objectives.py", "engines/test_tf_precision.py"
OWN_SCALES = "test_each_loss_is_scaled_and_unscaled_by_the_scale_of_its_own_network"
OVERFLOW = "test_an_overflow_on_one_replica"


@dataclass(frozen=True)
class Named:
    """`path` under gan_runtime/, `tests` under tests/. `before`: whole lines, without what stands around them."""

    name: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]

    def change(self, source: str) -> Change:
        """Where the text before it stands first; `before` as it is, so that it is found to be gone, if it stands nowhere."""
        lines = source.split("\n")
        line = next((number for number, text in enumerate(lines) if self.before in text), None)
        path = f"gan_runtime/{self.path}"
        if line is None:
            return Change(path, 1, self.before, self.after, "Named")
        return Change(path, line + 1, lines[line], lines[line].replace(self.before, self.after), "Named")


NAMED = (
    Named(
        "TensorFlow: D's loss is scaled by G's loss scale",
        "engines/tf/step.py",
        "scales[networks[0]]",
        'scales["generator"]',
        (f"{PRECISION}::{OWN_SCALES}",),
    ),
    Named(
        "JAX: D's loss is scaled by G's loss scale",
        "engines/jax/step.py",
        "self.loss_scale(networks[0], state)",
        'self.loss_scale("generator", state)',
        (f"{SPMD}::{OWN_SCALES}",),
    ),
    Named(
        "batch norm's momentum is swapped",
        "workloads/layers.py",
        "stored * self.momentum + fresh * (1.0 - self.momentum)",
        "stored * (1.0 - self.momentum) + fresh * self.momentum",
        (NETWORKS,),
    ),
    Named(
        "d_real and d_fake are swapped",
        "workloads/pair.py",
        '{"d_real": ops.mean(probability_real(real)), "d_fake": ops.mean(probability_real(fake))}',
        '{"d_fake": ops.mean(probability_real(real)), "d_real": ops.mean(probability_real(fake))}',
        (NETWORKS,),
    ),
    Named(
        "JAX: all steps of a call have the number of the first",
        "engines/jax/call.py",
        "first_step + index)",
        "first_step)",
        (f"{SPMD}::test_the_length_of_a_call_changes_no_number",),
    ),
    Named(
        "JAX: dropout's mask is missing on the way back",
        "engines/jax/noise.py",
        "return _thinned(upstream, jax.lax.optimization_barrier(levels), kept_levels), None",
        "return upstream, None",
        (f"{PARTS}::test_the_gradient_comes_back_through_the_mask_of_the_way_there",),
    ),
    Named(
        "JAX: the averaged generator keeps the first batch-norm statistics",
        "engines/jax/spmd.py",
        "return state | {average: state[name] for name, average in kept.items()}",
        "return state | {average: state[average] for average in kept.values()}",
        (f"{SPMD}::test_the_averaged_generator_has_the_batch_norm_statistics_of_the_live_one",),
    ),
    Named(
        "TensorFlow: histograms of scores are mirrored",
        "engines/tf/probes.py",
        "histograms.fixed(values, *ends, SCORE_BINS)",
        "histograms.fixed(1.0 - values, *ends, SCORE_BINS)",
        ("engines/test_tf_probes.py::test_scores_are_counted_where_they_lie_between_zero_and_one",),
    ),
    Named(
        "JAX: histograms of scores are mirrored",
        "engines/jax/probes.py",
        "(values - low) / (high - low)",
        "(high - values) / (high - low)",
        (f"{PARTS}::test_scores_are_counted_in_forty_bins_from_zero_to_one",),
    ),
    Named(
        "JAX: replicas share the parts of accumulation",
        "engines/jax/step.py",
        "jax.lax.axis_index(AXIS) * self._parts + part",
        "jax.lax.axis_index(AXIS) + part",
        (f"{SPMD}::test_parts_of_a_batch_add_up_to_the_batch",),
    ),
    Named(
        "TensorFlow: the replicas' gradients are a sum, not a mean",
        "engines/tf/step.py",
        "1.0 if task.spec.sync_every_steps > 1 else 1.0 / replicas",
        "1.0 if task.spec.sync_every_steps > 1 else 1.0",
        (
            "engines/test_tf_distribute.py::test_replicas_compute_what_one_replica_computes_on_the_whole_batch",
        ),
    ),
    Named(
        "JAX: the replicas' gradients are a sum, not a mean",
        "engines/jax/step.py",
        "self.loss_scale(networks[0], state) / self._replicas",
        "self.loss_scale(networks[0], state)",
        (f"{SPMD}::test_eight_devices_compute_what_one_computes",),
    ),
    Named(
        "TensorFlow: the parts of a batch are added up, not averaged",
        "engines/tf/step.py",
        "lambda value: value / self._parts",
        "lambda value: value",
        ("engines/test_tf_distribution.py::test_a_batch_in_four_parts_is_the_batch_in_one",),
    ),
    Named(
        "JAX: the parts of a batch are added up, not averaged",
        "engines/jax/step.py",
        "lambda value: value / self._parts",
        "lambda value: value",
        (f"{SPMD}::test_parts_of_a_batch_add_up_to_the_batch",),
    ),
    Named(
        "TensorFlow: a replica heeds its own overflow only",
        "engines/tf/optimizers.py",
        'tf.distribute.get_replica_context().all_reduce("sum", overflow) > 0',
        "overflow > 0",
        (f"{PRECISION}::{OVERFLOW}_skips_the_step_on_all",),
    ),
    Named(
        "TensorFlow: all phases draw the noise of the first",
        "engines/tf/step.py",
        "self._replicas * self._parts, place)",
        "self._replicas * self._parts, 0)",
        ("engines/test_tf_batches.py::test_two_equal_phases_draw_different_noise",),
    ),
    Named(
        "JAX: all phases draw the noise of the first",
        "engines/jax/step.py",
        "step, share, place)",
        "step, share, 0)",
        (f"{SPMD}::test_phases_that_do_the_same_draw_noise_of_their_own",),
    ),
    Named(
        "TensorFlow: every worker reads the first worker's share of the images",
        "engines/tf/input.py",
        "rows[begin:, :, pipeline_id]",
        "rows[begin:, :, 0]",
        ("engines/test_tf_input.py",),
    ),
)
