"""What an epoch's look says of generated showers beside real ones of the same energies and angles, over the rows of all replicas.

Sources: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; svalleco/3Dgan, branch Anglegan, analysis. Definitions: docs/3dgan.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from keras import ops

from gan_runtime.domains.showers import measuring_heads
from gan_runtime.domains.showers.fields import ANGLE, CELL_UNITS, DEPOSIT, ENERGY, ENERGY_SCALE, SHOWERS
from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Batch, Judged, Tensor
from gan_runtime.workloads.losses import mean_absolute_error
from gan_runtime.workloads.pair import UNDECIDED, spread

# Ends of the bins of the incident energy, in units of 100 GeV: the authors' set ends at 5, the CaloChallenge's at 10.
ENERGY_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)
EMPTY_SHARE = 0.01  # of the real deposit; below it a shower counts as empty
AXES = {"x": (0, 2, 3), "y": (0, 1, 3), "z": (0, 1, 2)}  # what is summed over for the profile along each
PERCENT_A_UNIT = (
    100 * ENERGY_SCALE / CELL_UNITS
)  # deposit in 20 MeV over energy in 100 GeV, as a share in per cent


def judged(rows: Batch, fake: Tensor, score_real: Tensor, score_fake: Tensor) -> Judged:
    """`rows`: real showers with energies, deposits and perhaps angles. `fake`: generated beside them; scores: of D, (B,)."""
    real = ops.cast(rows[SHOWERS], "float32")
    cells, made = measuring_heads.energies(real), measuring_heads.energies(fake)
    deposited = {"real": rows[DEPOSIT], "fake": measuring_heads.deposit(made)}
    scores = {"real": score_real, "fake": score_fake}
    right = {"real": score_real > UNDECIDED, "fake": score_fake < UNDECIDED}
    sampled = {kind: PERCENT_A_UNIT * each / rows[ENERGY] for kind, each in deposited.items()}
    scalars = {
        **{f"d_accuracy_{kind}": ops.mean(ops.cast(hits, "float32")) for kind, hits in right.items()},
        **{f"probe_score_{kind}": ops.mean(score) for kind, score in scores.items()},
        **{"spread_real": spread(real), "spread_fake": spread(fake)},
        **_of_deposits(deposited["real"], deposited["fake"]),
        "sampling_fraction_error": sampling_fraction_error(rows[ENERGY], sampled["real"], sampled["fake"]),
        **_of_profiles(cells, made),
    }
    if ANGLE in rows:
        scalars["probe_angle_error"] = mean_absolute_error(measuring_heads.measured_angle(made), rows[ANGLE])
    return Judged({**scores, **{f"sampled_{kind}": values for kind, values in sampled.items()}}, scalars)


def sampling_fraction_error(energies: Tensor, real: Tensor, fake: Tensor) -> Tensor:
    """Mean over bins of the energy of |⟨SF_real⟩ - ⟨SF_generated⟩| / ⟨SF_real⟩, bins without a shower left out; scalar, 0 to infinity.

    All (B,). For 256 showers and 12 bins: `bins` (256, 12), the sums over the showers of all replicas (12,).
    """
    place = ops.sum(ops.cast(energies[:, None] >= ops.convert_to_tensor(ENERGY_ENDS), "int32"), axis=1)
    bins = ops.one_hot(place, len(ENERGY_ENDS) + 1, dtype="float32")
    own = ops.stack([ops.sum(bins * values[:, None], axis=0) for values in (ops.ones_like(real), real, fake)])
    showers, of_real, of_fake = ops.unstack(step_context.current().mean_over_replicas(own), 3)
    filled = ops.cast((showers > 0.0) & (of_real > 0.0), "float32")
    errors = ops.abs(of_real - of_fake) / ops.where(of_real > 0.0, of_real, 1.0)
    return ops.sum(errors * filled) / ops.maximum(ops.sum(filled), 1.0)


def profile_errors(cells: Tensor, made: Tensor) -> dict[str, Tensor]:
    """Along each axis Σ |S - Ŝ| / Σ S, with the summed energies S, Ŝ in each of its places over all showers: 0 to infinity, 1 for
    nothing at all. The authors take the mean over places of |S - Ŝ| / S, which counts the empty border as much as the core."""
    errors = {}
    for axis, others in AXES.items():
        own = ops.stack([ops.sum(cells, axis=others), ops.sum(made, axis=others)])
        real, fake = ops.unstack(step_context.current().mean_over_replicas(own), 2)
        errors[axis] = ops.sum(ops.abs(real - fake)) / ops.maximum(ops.sum(real), measuring_heads.NOTHING)
    return errors


def _of_profiles(cells: Tensor, made: Tensor) -> Mapping[str, Tensor]:
    errors = profile_errors(cells, made)
    return {
        "profile_error": ops.mean(ops.stack(list(errors.values()))),
        **{f"profile_error_{axis}": error for axis, error in errors.items()},
    }


def _of_deposits(real: Tensor, fake: Tensor) -> Mapping[str, Tensor]:
    """Generated over real energy, all showers together; and the share of generated ones that are empty."""
    own = ops.stack([ops.mean(fake), ops.mean(real)])
    of_fake, of_real = ops.unstack(step_context.current().mean_over_replicas(own), 2)
    return {
        "energy_response": of_fake / ops.maximum(of_real, measuring_heads.NOTHING),
        "empty_showers": ops.mean(ops.cast(fake <= EMPTY_SHARE * real, "float32")),
    }
