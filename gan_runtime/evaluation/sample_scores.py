"""Scores of generated images, from two samples of features: reference and generated.

All arithmetic is float64 in NumPy. N and M are the images of the reference and of the sample, F the
features of an image, K the classes of a classifier. Features come from image_classifier.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Numbers = Mapping[str, float]
Features = Literal["classifier", "imagenet", "inception"]

POINTS, SMALLEST = 5, 0.4  # sample sizes of the extrapolation; the smallest as a share of all
DRAWS = 6  # for each of these sizes
DRAWS_OF_HALVES = 4  # for the interval of the extrapolation; fewer draws widen it
FEWEST_A_FEATURE = 4  # least images per feature for the extrapolation
IMAGES_OF_FID = 50_000  # least images for a Fréchet distance of 2,048 features
BLOCK = 1_024  # rows of a kernel distance (TF-GAN, kernel_classifier_distance)
NEIGHBORS_OF_PRECISION, NEIGHBORS_OF_DENSITY = 3, 5
MOST_NEIGHBORS = 5_000  # most rows of a sample
SURE = 0.9  # class probability from which the classifier counts as sure
REPEATS = 25  # number of half samples for an interval
ROWS_AT_A_TIME = 500  # to limit memory
NEAREST = 0.01  # share of real images that are so near to a training image; copies are as near
FEWEST_OF_CLASS = 50  # real images of a class whose share is compared
TWO_SIDED = 1.96  # standard deviations of a 95% interval of a normal distribution
_NEIGHBORS = ("precision", "recall", "density", "coverage")
NAMES: dict[str, dict[str, str]] = {  # features → number in this module → name of the score
    "imagenet": {
        **{name: f"imagenet_{name}" for name in ("kcd", *_NEIGHBORS)},
        "copies": "copies",
    },
    "inception": {"kcd": "kid", **{name: f"inception_{name}" for name in _NEIGHBORS}},
}
_LIMITED = {
    **dict.fromkeys(
        ("precision", "recall", "coverage", "sure", "class_distance", "copies"), (0.0, 1.0)
    ),
    **dict.fromkeys(("fcd", "fid", "density", "rarest_class"), (0.0, math.inf)),
    **dict.fromkeys(("classifier_score", "modes"), (1.0, math.inf)),
}
RANGES: dict[str, tuple[float, float]] = {  # of the scores that cannot take every value
    **_LIMITED,
    **{
        names[name]: _LIMITED[name]
        for names in NAMES.values()
        for name in names
        if name in _LIMITED
    },
}


class ImageReader(Protocol):
    """A classifier of the data set, or a pretrained network.

    `parts`: sizes of the independent parts of a label; empty without classes. `digest`: of the
    weights. `facts`: facts for answers. `warning`: about low accuracy, else "".
    """

    @property
    def parts(self) -> tuple[int, ...]: ...

    @property
    def facts(self) -> dict[str, Any]: ...

    @property
    def warning(self) -> str: ...

    def read(self, images: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values (N, height, width, channels) → features (N, F), probabilities (N, K)."""
        ...


class NumbersOfSamples(Protocol):
    """Computes scores by name from the reference, the sample, a seed, and the draws for an
    extrapolation.
    """

    def __call__(
        self, reference: ImageSample, sample: ImageSample, seed: int, draws: int = ..., /
    ) -> dict[str, float]: ...


@dataclass(frozen=True)
class ImageSample:
    """Features of images.

    `features`: (N, F). `probabilities`: (N, K), rows sum to 1; K is 0 without classes. `nearest`:
    distances to the nearest training images, (N,).
    """

    features: Array
    probabilities: Array
    nearest: Array

    def __len__(self) -> int:
        return len(self.features)

    @classmethod
    def joined(cls, samples: Sequence[ImageSample]) -> ImageSample:
        """The rows of several samples, in order."""
        return cls(
            np.concatenate([sample.features for sample in samples]),
            np.concatenate([sample.probabilities for sample in samples]),
            np.concatenate([sample.nearest for sample in samples]),
        )

    def rows(self, rows: Rows) -> ImageSample:
        """A part of the sample."""
        return ImageSample(self.features[rows], self.probabilities[rows], self.nearest[rows])

    def halves(self, seed: int) -> tuple[ImageSample, ImageSample]:
        """Two random halves of the sample."""
        first, second = np.array_split(np.random.RandomState(seed).permutation(len(self)), 2)
        return self.rows(first), self.rows(second)


@dataclass(frozen=True)
class ScoreEstimate:
    """A score, and its standard deviation over other samples of the same size."""

    value: float
    error: float

    def interval(self, name: str) -> tuple[float, float]:
        """The 95% interval of a normal distribution, clipped to the range of the score `name`."""
        least, most = RANGES.get(name, (-math.inf, math.inf))
        half = TWO_SIDED * self.error
        # Unlike `max`, NumPy keeps NaN.
        low, high = np.maximum(least, self.value - half), np.minimum(most, self.value + half)
        return float(low), float(high)


def compared(
    reference: ImageSample, sample: ImageSample, seed: int, draws: int = DRAWS
) -> dict[str, float]:
    """All scores of a sample against a reference, from a classifier's features. `draws`: for the
    extrapolation.
    """
    random = np.random.RandomState(seed)
    features = reference.features, sample.features
    return {
        "fcd_infinite": extrapolated_frechet(*features, random, draws),
        "fcd": frechet_distance(*features),
        "kcd": kernel_distance(*features, random),
        "classifier_score": classifier_score(sample.probabilities),
        **neighbor_scores(*features),
        "sure": share_of_sure(sample.probabilities),
        "class_distance": class_distance(reference.probabilities, sample.probabilities),
        "copies": share_of_copies(reference.nearest, sample.nearest),
    }


def compared_features(reference: ImageSample, sample: ImageSample, seed: int) -> dict[str, float]:
    """The scores that need no classes and allow fewer images than features."""
    features = reference.features, sample.features
    return {
        "kcd": kernel_distance(*features, np.random.RandomState(seed)),
        **neighbor_scores(*features),
        "copies": share_of_copies(reference.nearest, sample.nearest),
    }


def numbers_of(features: Features) -> NumbersOfSamples:
    """The function that compares two samples of these features, with the stored names of the
    scores.
    """
    if features == "classifier":
        return compared
    names = NAMES[features]

    def renamed(
        reference: ImageSample, sample: ImageSample, seed: int, _draws: int = 0
    ) -> dict[str, float]:
        numbers = compared_features(reference, sample, seed)
        return {names[name]: value for name, value in numbers.items() if name in names}

    return renamed


def estimates(
    numbers_of: Callable[[Rows, Rows], Numbers],
    whole: Numbers,
    sizes: tuple[int, int],
    seed: int,
    repeats: int = REPEATS,
) -> dict[str, ScoreEstimate]:
    """Scores with errors from random half samples (Politis and Romano 1994,
    doi:10.1214/aos/1176325770).

    `numbers_of(rows of the reference, rows of the sample)`; `whole`: the scores of all rows. Scores
    of half of N rows, drawn without repetition, vary about the score of all N as that score varies
    about the truth: σ²/N · (1 - ½) / ½. A bootstrap would repeat rows, whose nearest neighbors are
    then themselves.
    """
    random = np.random.RandomState(seed)
    drawn: dict[str, list[float]] = {name: [] for name in whole}
    for _ in range(repeats):
        halves = [random.choice(size, size // 2, replace=False) for size in sizes]
        for name, value in numbers_of(halves[0], halves[1]).items():
            drawn[name].append(value)
    return {
        name: ScoreEstimate(value, float(np.std(drawn[name], ddof=1)))
        for name, value in whole.items()
    }


def measured(
    reference: ImageSample, sample: ImageSample, seed: int, features: Features = "classifier"
) -> dict[str, ScoreEstimate]:
    """Every score with its error; FCD∞ is NaN for fewer than four images per feature."""
    numbers = numbers_of(features)
    scores = estimates(
        lambda first, second: numbers(
            reference.rows(first), sample.rows(second), seed, DRAWS_OF_HALVES
        ),
        numbers(reference, sample, seed),
        (len(reference), len(sample)),
        seed,
    )
    if "fcd_infinite" in scores and len(sample) < FEWEST_A_FEATURE * sample.features.shape[1]:
        scores["fcd_infinite"] = ScoreEstimate(math.nan, math.nan)
    if features == "classifier":
        probabilities = reference.probabilities, sample.probabilities
        scores["rarest_class"] = rarest_class(*probabilities, seed)
    return scores


def fid(reference: ImageSample, sample: ImageSample, is_whole: bool, seed: int) -> ScoreEstimate:
    """The Fréchet distance between Inception features (Heusel et al. 2017, equation 6).

    NaN below 50,000 generated images, or if the reference is neither all training images nor as
    many: the distance would be mostly bias.
    """
    if len(sample) < IMAGES_OF_FID or not is_whole:
        return ScoreEstimate(math.nan, math.nan)

    def distance(rows: Rows, sample_rows: Rows) -> Numbers:
        return {"fid": frechet_distance(reference.features[rows], sample.features[sample_rows])}

    whole = {"fid": frechet_distance(reference.features, sample.features)}
    return estimates(distance, whole, (len(reference), len(sample)), seed)["fid"]


def fid_of_few(reference: ImageSample, sample: ImageSample) -> ScoreEstimate:
    """The same distance of samples of any size, for the ends of its scale. No error is known."""
    return ScoreEstimate(frechet_distance(reference.features, sample.features), math.nan)


def modes(probabilities: Array, seed: int) -> ScoreEstimate:
    """`classes_present` with its error; a class of few images makes the error up to a third too
    small or a fifth too large.
    """

    def count(_: Rows, rows: Rows) -> Numbers:
        return {"modes": classes_present(probabilities[rows])}

    whole = {"modes": classes_present(probabilities)}
    return estimates(count, whole, (0, len(probabilities)), seed)["modes"]


# ---- distances -----------------------------------------------------------------------------------


def frechet_distance(first: Array, second: Array) -> float:
    """FCD of two samples (N, F), (M, F), 0 or more: |μ₁ - μ₂|² + Tr(Σ₁ + Σ₂ - 2 (Σ₁ Σ₂)^½).

    Heusel et al. 2017, arXiv:1706.08500, equation 6, with the features of a classifier (TF-GAN,
    frechet_classifier_distance). Covariances divide by N - 1.
    """
    (mean, covariance), (other_mean, other_covariance) = (
        (sample.mean(axis=0), np.atleast_2d(np.cov(sample, rowvar=False)))
        for sample in (first, second)
    )
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    # Tr (Σ₁ Σ₂)^½ = Tr (Σ₁^½ Σ₂ Σ₁^½)^½, which is symmetric: no eigenvalue is complex.
    shared = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ other_covariance @ root), 0.0)).sum()
    offset = mean - other_mean
    traces = np.trace(covariance) + np.trace(other_covariance)
    return float(offset @ offset + traces - 2.0 * shared)


def extrapolated_frechet(
    first: Array, second: Array, random: np.random.RandomState, draws: int = DRAWS
) -> float:
    """FCD extrapolated to infinitely many images: the intercept of a line in 1/n through FCDs of n
    rows.

    Chong and Forsyth 2020, arXiv:1911.07023, section 4: the FCD of n images is too large by about
    c / n, and c depends on the generator. Five sizes with even steps in 1/n, from 40% of the rows
    to all of them. Near 0 for equal distributions, so it can be negative.
    """
    count = min(len(first), len(second))
    sizes = (1.0 / np.linspace(1.0 / (SMALLEST * count), 1.0 / count, POINTS)).astype(int)
    distances = [
        np.mean([_frechet_of_rows(first, second, size, random) for _ in range(draws)])
        for size in sizes
    ]
    return float(np.polyfit(1.0 / sizes, distances, 1)[1])


def _frechet_of_rows(
    first: Array, second: Array, size: int, random: np.random.RandomState
) -> float:
    rows = [random.choice(len(sample), size, replace=False) for sample in (first, second)]
    return frechet_distance(first[rows[0]], second[rows[1]])


def kernel_distance(first: Array, second: Array, random: np.random.RandomState) -> float:
    """KCD: unbiased squared maximum mean discrepancy of k(x, y) = (xᵀy / F + 1)³; 0 on average for
    equal distributions, so it can be negative.

    Binkowski et al. 2018, arXiv:1801.01401, section 4. Mean over disjoint random blocks of about
    1,024 rows; fewer rows are one block, where the order does not matter. Of a sample with more
    than twice the rows of the other, random rows are left out.
    """
    blocks = max(1, min(len(first), len(second)) // BLOCK)
    pairs = zip(blocks_of(first, blocks, random), blocks_of(second, blocks, random), strict=True)
    return float(np.mean([squared_discrepancy(x, y) for x, y in pairs]))


def blocks_of(sample: Array, count: int, random: np.random.RandomState) -> Iterator[Array]:
    """`count` disjoint random blocks of equal size, each of fewer than 2 · BLOCK rows."""
    rows = random.permutation(len(sample))[: count * (2 * BLOCK - 1)]
    for block in np.array_split(rows, count):
        yield sample[block]


def squared_discrepancy(x: Array, y: Array) -> float:
    """Σ_{i≠j} k(x_i, x_j) / n(n-1) + Σ_{i≠j} k(y_i, y_j) / m(m-1) - 2 Σ k(x_i, y_j) / nm (Gretton
    et al. 2012, lemma 6).
    """

    def kernel(left: Array, right: Array) -> Array:
        products = left @ right.T / left.shape[1] + 1.0
        return np.asarray(products * products * products)

    def within(sample: Array) -> float:
        values = kernel(sample, sample)
        return float((values.sum() - np.trace(values)) / (len(sample) * (len(sample) - 1)))

    return within(x) + within(y) - 2.0 * float(kernel(x, y).mean())


# ---- neighbors -----------------------------------------------------------------------------------


def squared_distances(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Squared Euclidean distances between two samples, (N, M)."""
    squares = first @ second.T
    squares *= -2.0
    squares += (first**2).sum(axis=1)[:, np.newaxis]
    squares += (second**2).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)


def squared_radii(sample: Array, *neighbors: int) -> list[Array]:
    """For each k, the squared distance of each row to its k-th nearest other row, (N,). Needs more
    than k rows.
    """
    among = squared_distances(sample, sample)
    np.fill_diagonal(among, 0.0)
    among.partition(neighbors, axis=1)
    return [among[:, rank].copy() for rank in neighbors]


def neighbor_scores(reference: Array, sample: Array) -> dict[str, float]:
    """Precision, recall, density and coverage of features (N, F), (M, F); of more than 5,000 rows,
    only 5,000 random ones count, to limit memory.

    Precision: share of generated images within the radius of a reference image, to its 3rd
    neighbor. Recall: share of reference images within the radius of a generated one. Kynkäänniemi
    et al. 2019, arXiv:1904.06991, equation 2.

    Density, 0 or more: the number of reference images within whose radius, to the 5th neighbor, a
    generated image lies, divided by 5. Coverage: share of reference images whose nearest generated
    image is within their radius. Naeem et al. 2020, arXiv:2002.09797, equations 4 and 5. Two equal
    distributions give about 1 and 0.97.
    """
    reference, sample = _some_rows(reference), _some_rows(sample)
    between = squared_distances(reference, sample)
    near, far = squared_radii(reference, NEIGHBORS_OF_PRECISION, NEIGHBORS_OF_DENSITY)
    (of_sample,) = squared_radii(sample, NEIGHBORS_OF_PRECISION)
    is_within = between < far[:, np.newaxis]
    return {
        "precision": float((between < near[:, np.newaxis]).any(axis=0).mean()),
        "recall": float((between < of_sample).any(axis=1).mean()),
        "density": float(is_within.sum(axis=0).mean() / NEIGHBORS_OF_DENSITY),
        "coverage": float(is_within.any(axis=1).mean()),
    }


def _some_rows(sample: Array) -> Array:
    """At most MOST_NEIGHBORS random rows, always the same ones: rows can be sorted by class."""
    if len(sample) <= MOST_NEIGHBORS:
        return sample
    return sample[np.random.RandomState(0).permutation(len(sample))[:MOST_NEIGHBORS]]


def nearest_distances(
    images: Array, blocks: Iterable[NDArray[Any]], *, are_among: bool = False
) -> Array:
    """Root-mean-square difference between each image (N, …) and the nearest image of all blocks (M,
    …), in pixel units, in float32: (N,). `are_among`: each image is once in the blocks, which its
    search skips.
    """
    flat, rank = _flat(images), int(are_among)
    nearest = np.full((len(flat), rank + 1), np.inf, np.float32)
    for block in blocks:
        others = _flat(block)
        for begin in range(0, len(flat), ROWS_AT_A_TIME):
            part = slice(begin, begin + ROWS_AT_A_TIME)
            squares: NDArray[np.float32] = np.hstack(
                [nearest[part], squared_distances(flat[part], others)]
            )
            nearest[part] = np.partition(squares, rank, axis=1)[:, : rank + 1]
    return np.asarray(np.sqrt(nearest[:, rank].astype(np.float64) / flat.shape[1]))


def _flat(images: NDArray[Any]) -> NDArray[np.float32]:
    return images.reshape(len(images), -1).astype(np.float32)


def share_of_copies(reference: Array, sample: Array) -> float:
    """The share of distances to the nearest training image (M,) up to the 1% quantile of those of
    real images (N,), 0 to 1; about 0.01 for other real images.
    """
    return float((sample <= np.quantile(reference, NEAREST)).mean())


# ---- classes -------------------------------------------------------------------------------------


def joint(parts: list[Array]) -> Array:
    """Probabilities of independent parts (N, K₁), (N, K₂), … → probabilities of joint classes (N,
    K₁ K₂ …); the first part is the most significant.
    """
    whole = parts[0] / parts[0].sum(axis=1, keepdims=True)
    for part in parts[1:]:
        shares = part / part.sum(axis=1, keepdims=True)
        whole = (whole[:, :, np.newaxis] * shares[:, np.newaxis, :]).reshape(len(whole), -1)
    return whole


def classifier_score(probabilities: Array) -> float:
    """exp of the mean over images of Σ_c p(c | x) ln(p(c | x) / p(c)); 1 to K.

    Salimans et al. 2016, arXiv:1606.03498, section 4; p(c) is the mean of p(c | x).
    """
    tiny = np.finfo(np.float64).tiny
    logarithms = np.log(np.maximum(probabilities, tiny))
    marginal = np.log(np.maximum(probabilities.mean(axis=0), tiny))
    return float(np.exp((probabilities * (logarithms - marginal)).sum(axis=1).mean()))


def share_of_sure(probabilities: Array, least: float = SURE) -> float:
    """The share of images whose most probable class has at least this probability, 0 to 1."""
    return float((probabilities.max(axis=1) >= least).mean())


def class_shares(probabilities: Array) -> Array:
    """The share of images by their most probable class, (K,)."""
    classes = probabilities.shape[1]
    return np.bincount(probabilities.argmax(axis=1), minlength=classes) / len(probabilities)


def class_distance(first: Array, second: Array) -> float:
    """½ Σ_c |h₁(c) - h₂(c)| of the shares of the most probable classes: total variation, 0 to 1."""
    return float(np.abs(class_shares(first) - class_shares(second)).sum() / 2.0)


def rarest_class(first: Array, second: Array, seed: int) -> ScoreEstimate:
    """min_c h₂(c) / h₁(c) of the shares of the most probable classes, over the classes of at least
    FEWEST_OF_CLASS real images; NaN without one. 0: a class is missing.
    """
    is_common = class_shares(first) * len(first) >= FEWEST_OF_CLASS
    if not is_common.any():
        return ScoreEstimate(math.nan, math.nan)

    def least(rows: Rows, sample_rows: Rows) -> Numbers:
        real, generated = class_shares(first[rows]), class_shares(second[sample_rows])
        return {"rarest_class": float((generated[is_common] / real[is_common]).min())}

    sizes = len(first), len(second)
    return estimates(least, least(*map(np.arange, sizes)), sizes, seed)["rarest_class"]


def classes_present(probabilities: Array) -> int:
    """The number of classes that are the most probable class of some image, 1 to K (Metz et al.
    2017, arXiv:1611.02163, section 3.3.1).
    """
    return int(np.count_nonzero(class_shares(probabilities)))
