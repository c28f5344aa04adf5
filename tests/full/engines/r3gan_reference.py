"""Generates r3gan_reference.json: one step of R3GAN's objective with differentiable augmentation in
PyTorch, to which test_modern_objective.py compares both engines.

    python -m venv /tmp/torch
    /tmp/torch/bin/pip install torch==2.13.0 numpy pydantic
    /tmp/torch/bin/python -m tests.full.engines.r3gan_reference

    L_D = E[softplus(D(Tg) - D(Tx))] + γ1/2 E|∇D(Tx)|² + γ2/2 E|∇D(Tg)|²,  g = G(z)
    L_G = E[softplus(D(Tx) - D(Tg))]    (Huang et al. 2024, arXiv:2501.05441, section 2)

T follows DiffAugment_pytorch.py of Zhao et al. 2020, arXiv:2006.10738, for given draws. The
networks are those of tests/support/engines/tiny_gan.py, the noise is that of same_noise.py; NumPy
draws the weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.engines import same_noise

FIGURES = Path(__file__).with_name("r3gan_reference.json")
SEED, BATCH, ROWS, SIDE, DROPOUT, LEAK, BATCH_NORM_EPSILON = 3, 8, 40, 8, 0.3, 0.2, 1e-3
R1_WEIGHT, R2_WEIGHT = 2.0, 0.5
SHAPES = {
    "generator/generator/dense/kernel": (6, 128),
    "generator/generator/norm/gamma": (128,),
    "generator/generator/norm/beta": (128,),
    "generator/generator/up/kernel": (5, 5, 1, 8),
    "discriminator/discriminator/conv/kernel": (5, 5, 1, 8),
    "discriminator/discriminator/conv/bias": (8,),
    "discriminator/discriminator/logit/kernel": (128, 1),
    "discriminator/discriminator/logit/bias": (1,),
}


def weights() -> dict[str, np.ndarray]:
    """Returns the initial weights of both networks, float32 by name."""
    random = np.random.RandomState(11)
    drawn = {name: random.standard_normal(shape) * 0.2 for name, shape in SHAPES.items()}
    drawn["generator/generator/norm/gamma"] += 1.0
    return {name: values.astype(np.float32) for name, values in drawn.items()}


def images() -> np.ndarray:
    """Returns the whole data set, uint8 (40, 8, 8, 1)."""
    return np.random.RandomState(12).randint(0, 256, (ROWS, SIDE, SIDE, 1)).astype(np.uint8)


def direction(name: str) -> np.ndarray:
    """Returns random numbers for the dot product with a gradient."""
    return np.random.RandomState(len(name)).standard_normal(SHAPES[name])


def summary(gradients: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Returns the norm of each gradient and its dot product with `direction`."""
    return {
        name: [
            float(np.linalg.norm(gradients[name])),
            float((gradients[name] * direction(name)).sum()),
        ]
        for name in SHAPES
    }


def augmented(torch: Any, values: Any, draws: Any) -> Any:
    """Returns images (B, 1, 8, 8) after color, translation and cutout, as in the authors' code."""
    pad = torch.nn.functional.pad
    count, _, height, width = values.shape
    values = values + (draws[:, 0].reshape(-1, 1, 1, 1) - 0.5)
    mean = values.mean(dim=1, keepdim=True)
    values = (values - mean) * (draws[:, 1].reshape(-1, 1, 1, 1) * 2) + mean
    mean = values.mean(dim=[1, 2, 3], keepdim=True)
    values = (values - mean) * (draws[:, 2].reshape(-1, 1, 1, 1) + 0.5) + mean

    most = int(height * 0.125 + 0.5)
    shifts = (draws[:, 3:5] * (2 * most + 1)).floor().long() - most
    batch, rows, columns = torch.meshgrid(
        torch.arange(count), torch.arange(height), torch.arange(width), indexing="ij"
    )
    rows = torch.clamp(rows - shifts[:, 0].reshape(-1, 1, 1) + 1, 0, height + 1)
    columns = torch.clamp(columns - shifts[:, 1].reshape(-1, 1, 1) + 1, 0, width + 1)
    padded = pad(values, [1, 1, 1, 1]).permute(0, 2, 3, 1)
    values = padded[batch, rows, columns].permute(0, 3, 1, 2)

    size = int(height * 0.5 + 0.5)
    middles = (draws[:, 5:7] * (height + 1 - size % 2)).floor().long()
    batch, rows, columns = torch.meshgrid(
        torch.arange(count), torch.arange(size), torch.arange(size), indexing="ij"
    )
    rows = torch.clamp(rows + middles[:, 0].reshape(-1, 1, 1) - size // 2, 0, height - 1)
    columns = torch.clamp(columns + middles[:, 1].reshape(-1, 1, 1) - size // 2, 0, width - 1)
    mask = torch.ones(count, height, width)
    mask[batch, rows, columns] = 0
    return values * mask.unsqueeze(1)


def generated(torch: Any, own: dict[str, Any], latents: Any) -> Any:
    """Returns images (B, 1, 8, 8); "same" of a transposed convolution cuts 1 before and 2 after."""
    place, functional = "generator/generator/", torch.nn.functional
    values = latents @ own[f"{place}dense/kernel"]
    mean, variance = values.mean(dim=0), values.var(dim=0, unbiased=False)
    values = (values - mean) / torch.sqrt(variance + BATCH_NORM_EPSILON)
    values = values * own[f"{place}norm/gamma"] + own[f"{place}norm/beta"]
    values = functional.leaky_relu(values, LEAK).reshape(-1, 4, 4, 8).permute(0, 3, 1, 2)
    kernel = own[f"{place}up/kernel"].permute(3, 2, 0, 1)
    whole = functional.conv_transpose2d(values, kernel, stride=2)
    return torch.tanh(whole[:, :, 1 : SIDE + 1, 1 : SIDE + 1])


def logits(torch: Any, own: dict[str, Any], values: Any, kept: Any = None) -> Any:
    """Returns logits (B, 1); `kept`: units (B, 4, 4, 8) that dropout keeps, None for all without
    scaling.
    """
    place, functional = "discriminator/discriminator/", torch.nn.functional
    kernel = own[f"{place}conv/kernel"].permute(3, 2, 0, 1)
    values = functional.conv2d(functional.pad(values, [1, 2, 1, 2]), kernel, stride=2)
    values = values + own[f"{place}conv/bias"].reshape(1, -1, 1, 1)
    values = functional.leaky_relu(values, LEAK).permute(0, 2, 3, 1)
    if kept is not None:
        values = values * kept / (1.0 - DROPOUT)
    return values.reshape(len(values), -1) @ own[f"{place}logit/kernel"] + own[f"{place}logit/bias"]


def main() -> None:
    """Computes one step in float64, with images in the order of the first epoch."""
    import torch

    from gan_runtime.engines.inputs import epoch_order

    def tensor(values: np.ndarray) -> Any:
        return torch.tensor(np.asarray(values, np.float64))

    torch.set_default_dtype(torch.float64)
    own = {name: tensor(values).requires_grad_() for name, values in weights().items()}
    chosen = images()[epoch_order(SEED, 0, ROWS)[:BATCH]]
    real = tensor(chosen / 127.5 - 1.0).permute(0, 3, 1, 2)
    latents = tensor(same_noise.normal(SEED, 1, (6,))[0, :BATCH])
    draws = tensor(same_noise.uniform(SEED, 2, (7,))[0, :BATCH])
    masks = [
        tensor(same_noise.mask(SEED, stream, (BATCH, 4, 4, 8), DROPOUT)[0, 0]) for stream in (3, 4)
    ]
    fake = augmented(torch, generated(torch, own, latents), draws)
    real = augmented(torch, real, draws)
    of_fake, of_real = (
        logits(torch, own, values, kept) for values, kept in zip((fake, real), masks, strict=True)
    )
    penalties = []
    for values in (real, fake):
        point = values.detach().requires_grad_()
        [slope] = torch.autograd.grad(logits(torch, own, point).sum(), point, create_graph=True)
        penalties.append(slope.square().sum(dim=[1, 2, 3]).mean() / 2)
    softplus = torch.nn.functional.softplus
    loss_d = softplus(of_fake - of_real).mean()
    loss_d = loss_d + R1_WEIGHT * penalties[0] + R2_WEIGHT * penalties[1]
    loss_g = softplus(of_real - of_fake).mean()
    gradients = {}
    for loss, network in ((loss_g, "generator"), (loss_d, "discriminator")):
        names = [name for name in SHAPES if name.startswith(network)]
        found = torch.autograd.grad(loss, [own[name] for name in names], retain_graph=True)
        gradients |= {name: value.numpy() for name, value in zip(names, found, strict=True)}
    numbers = {
        "loss_discriminator": loss_d,
        "loss_generator": loss_g,
        "r1_penalty": penalties[0],
        "r2_penalty": penalties[1],
        "d_real": torch.sigmoid(of_real - of_fake).mean(),
        "d_fake": torch.sigmoid(of_fake - of_real).mean(),
    }
    figures = {
        "torch": torch.__version__.partition("+")[0],
        "numbers": {name: value.item() for name, value in numbers.items()},
        "gradients": summary(gradients),
    }
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
