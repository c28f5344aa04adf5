"""The PyTorch peer: the same networks and step, in the style of PyTorch's DCGAN tutorial.

Eager mode on all cores, channels last, autocast for bfloat16, Adam(1e-4). A step updates D, then G
with a second pass of D over the same generated images, as is usual in PyTorch. The images are
random and stay in memory; the loop waits for every step. Needs requirements-bench.txt.

python -m benchmarks.torch_loop --precision mixed_bfloat16 --batch 256 --steps 20
                                                                      prints one JSON line
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.step_timer import arguments, serve_or_print

LATENT_SIZE = 100
LEAKY_SLOPE = 0.2
DROPOUT = 0.3
LEARNING_RATE = 1e-4


def networks() -> tuple[nn.Module, nn.Module]:
    """Generator (B, 100) → (B, 1, 28, 28) in [-1, 1]; discriminator (B, 1, 28, 28) → logits
    (B, 1).
    """
    generator = nn.Sequential(
        nn.Linear(LATENT_SIZE, 256 * 7 * 7, bias=False),
        nn.BatchNorm1d(256 * 7 * 7),
        nn.LeakyReLU(LEAKY_SLOPE),
        nn.Unflatten(1, (256, 7, 7)),
        nn.ConvTranspose2d(256, 128, 5, padding=2, bias=False),  # 128 × 7 × 7
        nn.BatchNorm2d(128),
        nn.LeakyReLU(LEAKY_SLOPE),
        # 64 × 14 × 14
        nn.ConvTranspose2d(128, 64, 5, stride=2, padding=2, output_padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.LeakyReLU(LEAKY_SLOPE),
        # 1 × 28 × 28
        nn.ConvTranspose2d(64, 1, 5, stride=2, padding=2, output_padding=1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, 64, 5, stride=2, padding=2),  # 64 × 14 × 14
        nn.LeakyReLU(LEAKY_SLOPE),
        nn.Dropout(DROPOUT),
        nn.Conv2d(64, 128, 5, stride=2, padding=2),  # 128 × 7 × 7
        nn.LeakyReLU(LEAKY_SLOPE),
        nn.Dropout(DROPOUT),
        nn.Flatten(),
        nn.Linear(128 * 7 * 7, 1),
    )
    layout = torch.channels_last
    return generator.to(memory_format=layout), discriminator.to(memory_format=layout)


def make_step(precision: str, batch: int) -> Callable[[], float]:
    """A call that trains one step on `batch` images, waits until it is done, and returns the
    generator's loss.
    """
    torch.set_num_threads(os.cpu_count() or 1)
    generator, discriminator = networks()
    optimizers = [
        torch.optim.Adam(network.parameters(), LEARNING_RATE)
        for network in (generator, discriminator)
    ]
    images = (torch.rand(batch, 1, 28, 28) * 2.0 - 1.0).contiguous(
        memory_format=torch.channels_last
    )
    ones, zeros = torch.ones(batch, 1), torch.zeros(batch, 1)

    def autocast() -> Any:
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "mixed_bfloat16")

    def loss_of(inputs: Any, target: Any) -> Any:
        return functional.binary_cross_entropy_with_logits(discriminator(inputs).float(), target)

    def update(optimizer: Any, loss: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def train_step() -> float:
        with autocast():
            fake_images = generator(torch.randn(batch, LATENT_SIZE))
            loss_discriminator = loss_of(images, ones) + loss_of(fake_images.detach(), zeros)
        update(optimizers[1], loss_discriminator)
        with autocast():
            loss_generator = loss_of(fake_images, ones)
        update(optimizers[0], loss_generator)
        return float(loss_generator.item())

    return train_step


if __name__ == "__main__":
    options = arguments("Times a PyTorch DCGAN loop.").parse_args()
    serve_or_print(options, make_step(options.precision, options.batch))
