"""3DGAN and Pix2Pix as a user of PyTorch would write them, layer by layer as in docs/3dgan.md and
docs/pix2pix.md. Channels first, PyTorch's initial weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from gan_runtime.domains.flows.entry import plan as unet_plan
from gan_runtime.domains.flows.options import DROPPED_BLOCKS, KERNEL, Pix2pixOptions
from gan_runtime.domains.showers.layer_tables import POOL, ConvolutionPlan, LayerPlan

LATENT_SIZE = 256


def _padding(layer: ConvolutionPlan) -> nn.Module:
    """Zero padding before and after each axis; PyTorch lists the last axis first."""
    return nn.ConstantPad3d([cells for around in reversed(layer.around) for cells in around], 0.0)


def _cropped(values: torch.Tensor, cut: Sequence[tuple[int, int]]) -> torch.Tensor:
    slices = [slice(before, -after or None) for before, after in cut]
    return values[(..., *slices)]


class ShowerGenerator(nn.Module):  # type: ignore[misc]
    """Latents (B, 256) → non-negative showers (B, 1, X, Y, Z)."""

    def __init__(self, plan: LayerPlan) -> None:
        super().__init__()
        self._plan = plan
        self.dense = nn.Linear(LATENT_SIZE, math.prod(plan.cells) * plan.cell_channels)
        first, *middle, last = plan.generator
        channels = [plan.cell_channels, *(layer.filters for layer in plan.generator)]
        self.first = nn.Sequential(
            _padding(first),
            nn.Upsample(scale_factor=tuple(map(float, plan.factors))),
            nn.Conv3d(channels[0], first.filters, first.kernel),
            nn.ReLU(),
        )
        layers: list[nn.Module] = [nn.BatchNorm3d(first.filters, eps=1e-6)]
        for index, layer in enumerate(middle, start=1):
            layers += [
                _padding(layer),
                nn.Conv3d(channels[index], layer.filters, layer.kernel),
                nn.ReLU(),
            ]
            if index < len(middle):
                layers.append(nn.BatchNorm3d(layer.filters, eps=1e-6))
        layers += [_padding(last), nn.Conv3d(channels[-2], last.filters, last.kernel), nn.ReLU()]
        self.rest = nn.Sequential(*layers)

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        """(B, 256) → (B, 1, X, Y, Z)."""
        cells = self.dense(latents).reshape(-1, self._plan.cell_channels, *self._plan.cells)
        showers: torch.Tensor = self.rest(
            _cropped(self.first(cells), self._plan.generator[0].cut)
        ).float()
        return showers


class ShowerDiscriminator(nn.Module):  # type: ignore[misc]
    """Showers (B, 1, X, Y, Z) → logits and energies, (B, 1) each."""

    def __init__(self, plan: LayerPlan) -> None:
        super().__init__()
        channels = [1, *(layer.filters for layer in plan.discriminator)]
        layers: list[nn.Module] = []
        for index, layer in enumerate(plan.discriminator):
            layers += [
                _padding(layer),
                nn.Conv3d(channels[index], layer.filters, layer.kernel),
                nn.LeakyReLU(0.3),
            ]
            if index:
                layers.append(nn.BatchNorm3d(layer.filters, eps=1e-6))
            layers.append(nn.Dropout(0.2))
        self.features = nn.Sequential(*layers, nn.AvgPool3d(POOL), nn.Flatten())
        width = math.prod(plan.pooled) * channels[-1]
        self.logit, self.energy = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, showers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, 1, X, Y, Z) → (B, 1), (B, 1)."""
        features = self.features(showers)
        return self.logit(features).float(), self.energy(features).float()


def measured_angle(cells: torch.Tensor) -> torch.Tensor:
    """Angles in rad, (B,), from cells (B, X, Y, Z), as in domains/showers/networks.py."""
    layer_sums, total = cells.sum((1, 2)), cells.sum((1, 2, 3))
    x, y, z = (torch.arange(size, device=cells.device) + 0.5 for size in cells.shape[1:])
    x_of_layers = _ratio_or_zero(torch.einsum("bxyz,x->bz", cells, x), layer_sums)
    y_of_layers = _ratio_or_zero(torch.einsum("bxyz,y->bz", cells, y), layer_sums)
    center = [
        _ratio_or_zero(torch.einsum(f"bxyz,{axis}->b", cells, places), total)[:, None]
        for axis, places in zip("xyz", (x, y, z), strict=True)
    ]
    distance = ((x_of_layers - center[0]) ** 2 + (z - center[2]) ** 2).clamp(min=1e-7).sqrt()
    slope = torch.where(z < center[2], -1.0, 1.0) * (y_of_layers - center[1]) / distance
    weight = torch.where(layer_sums > 1e-6, z, 0.0)
    angle = _ratio_or_zero((weight * (math.pi / 2 - slope.atan())).sum(1), weight.sum(1))
    return torch.where(total > 1e-6, angle, 100.0)


def _ratio_or_zero(numerator: torch.Tensor, denominator: torch.Tensor) -> torch.Tensor:
    return torch.where(
        denominator > 1e-6, numerator / torch.where(denominator > 1e-6, denominator, 1.0), 0.0
    )


class UnetGenerator(nn.Module):  # type: ignore[misc]
    """Sources (B, channels, tile, tile) → images (B, channels, tile, tile) in [-1, 1]."""

    def __init__(self, options: Pix2pixOptions, source: int, target: int) -> None:
        super().__init__()
        widths = unet_plan(options).encoder
        self._rate = options.dropout
        self.down = nn.ModuleList([nn.Conv2d(source, widths[0], KERNEL, 2, 1)])
        for index, width in enumerate(widths[1:], start=1):
            last = index == len(widths) - 1
            convolution = nn.Conv2d(widths[index - 1], width, KERNEL, 2, 1, bias=last)
            self.down.append(
                convolution if last else nn.Sequential(convolution, nn.BatchNorm2d(width))
            )
        self.up = nn.ModuleList()
        inputs = widths[-1]
        for width in reversed(widths[:-1]):
            self.up.append(
                nn.Sequential(
                    nn.ConvTranspose2d(inputs, width, KERNEL, 2, 1, bias=False),
                    nn.BatchNorm2d(width),
                )
            )
            inputs = 2 * width
        self.image = nn.ConvTranspose2d(inputs, target, KERNEL, 2, 1)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """(B, channels, tile, tile) → (B, channels, tile, tile)."""
        skips = [self.down[0](pixels)]
        for block in self.down[1:]:
            skips.append(block(functional.leaky_relu(skips[-1], 0.2)))
        values = skips.pop()
        for index, block in enumerate(self.up, start=1):
            values = block(functional.relu(values))
            if index <= DROPPED_BLOCKS:
                values = functional.dropout(values, self._rate)
            values = torch.cat([values, skips.pop()], 1)
        return torch.tanh(self.image(functional.relu(values)).float())


def patch_discriminator(options: Pix2pixOptions, source: int, target: int) -> nn.Module:
    """(B, source + target channels, tile, tile) → logits of patches (B, 1, rows, columns)."""
    *halved, last = unet_plan(options).patches
    layers: list[nn.Module] = []
    inputs = source + target
    for index, width in enumerate(halved):
        layers.append(nn.Conv2d(inputs, width, KERNEL, 2, 1, bias=index == 0))
        layers += [nn.BatchNorm2d(width)] if index else []
        layers.append(nn.LeakyReLU(0.2))
        inputs = width
    layers += [
        nn.ZeroPad2d(1),
        nn.Conv2d(inputs, last, KERNEL, bias=False),
        nn.BatchNorm2d(last),
        nn.LeakyReLU(0.2),
        nn.ZeroPad2d(1),
        nn.Conv2d(last, 1, KERNEL),
    ]
    return nn.Sequential(*layers)
