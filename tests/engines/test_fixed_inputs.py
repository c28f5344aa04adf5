"""The inputs of sample grids. Stored grids are compared with new ones, so these numbers must never
change.
"""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.data.contract import picture_set
from gan_runtime.engines.inputs import chunks, digest, fixed_inputs
from gan_runtime.workloads import dcgan_mnist, mlp_gan
from gan_runtime.workloads.contract import Workload

BLACK = picture_set("black", np.zeros((3, 28, 28, 1), np.uint8), "test")
pytestmark = pytest.mark.usefixtures("cores")  # the workloads load Keras


def latents_of(workload: Workload, **count: int) -> np.ndarray:
    return fixed_inputs(workload, None, BLACK, **count)["latents"]


def test_fixed_latents_never_change() -> None:
    latents = latents_of(dcgan_mnist.WORKLOAD)
    assert (latents.shape, latents.dtype) == ((64, 100), np.float32)
    assert list(latents[0, :3]) == pytest.approx([1.7640524, 0.4001572, 0.9787380], abs=1e-7)
    assert list(latents[-1, -3:]) == pytest.approx([0.3426540, -0.0979672, -0.2402446], abs=1e-7)


def test_fixed_latents_are_standard_normal_and_distinct() -> None:
    latents = latents_of(mlp_gan.WORKLOAD)
    assert abs(latents.mean()) < 0.05
    assert abs(latents.std() - 1) < 0.05
    assert len({row.tobytes() for row in latents}) == 64


def test_larger_counts_start_with_the_same_latents() -> None:
    assert np.array_equal(
        latents_of(mlp_gan.WORKLOAD, count=256)[:64], latents_of(mlp_gan.WORKLOAD, count=64)
    )


def test_digest_is_equal_only_for_equal_inputs() -> None:
    latents, labels = np.zeros((4, 3), np.float32), np.arange(4, dtype=np.int32)
    expected = digest({"latents": latents, "labels": labels}, ("cat", "dog"))
    assert expected == digest({"labels": labels.copy(), "latents": latents}, ("cat", "dog"))
    differing = [
        digest({"latents": latents}),
        digest({"latents": latents[:2], "labels": labels}, ("cat", "dog")),
        digest({"latents": latents.reshape(3, 4), "labels": labels}, ("cat", "dog")),
        digest({"latents": latents + 1, "labels": labels}, ("cat", "dog")),
        digest({"latents": latents, "labels": labels.astype(np.float32)}, ("cat", "dog")),
        digest({"latents": latents, "labels": labels}, ("dog", "cat")),
    ]
    assert len({expected, *differing}) == 7
    assert len(expected) == 16


def test_chunks_have_equal_size_with_the_last_one_padded() -> None:
    pieces = list(chunks({"latents": np.arange(5)}, 2))
    assert [(piece["latents"].tolist(), size) for piece, size in pieces] == [
        ([0, 1], 2),
        ([2, 3], 2),
        ([4, 4], 1),
    ]
