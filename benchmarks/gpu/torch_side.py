"""Compiled PyTorch as a side: the same networks and losses, as a user would write them.

torch.compile on both networks, channels last, autocast for bfloat16, cuDNN autotuning, fused
optimizers, random rows in GPU memory. The whole step is captured as a CUDA graph; where that fails,
the compiled networks run without one, and `mode` says so.
D is updated first, then G with a second pass of D, as is usual in PyTorch.

python -m benchmarks.gpu.torch_side dcgan_mnist 256 mixed_bfloat16        serves (side.py)
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks import torch_loop
from benchmarks.gpu import torch_networks
from benchmarks.gpu.cases import Case
from benchmarks.gpu.side import Facts, serve
from gan_runtime.domains.flows.options import Pix2pixOptions
from gan_runtime.domains.showers.entry import AUTHORS_GRID
from gan_runtime.domains.showers.layer_tables import plan

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WARM_UP_STEPS = 3
CELL_POWER, LABEL_FLIP_RATE = 0.85, 0.05
REAL_WEIGHT, ENERGY_WEIGHT, ANGLE_WEIGHT, DEPOSIT_WEIGHT = 3.0, 0.1, 25.0, 0.1
L1_WEIGHT, D_WEIGHT = 100.0, 0.5
FLOW_CHANNELS = (4, 3)  # of a frame with its obstacle, and of the next frame
Step = Callable[[], None]
Autocast = Callable[[], Any]


class TorchStep:
    """Compiled PyTorch as a `side.CompiledStep`."""

    def __init__(self, case: Case) -> None:
        torch.backends.cudnn.benchmark = True
        torch.set_float32_matmul_precision("high")  # as XLA's float32 on a GPU: TF32
        autocast = _autocast(case.precision)
        self._step = STEPS[case.workload](case.batch, autocast)
        self._mode, self._steps = "torch.compile", case.steps_per_call
        for _ in range(WARM_UP_STEPS):
            self._step()
        if DEVICE == "cuda":
            self._capture()

    def _capture(self) -> None:
        """Captures the step as a CUDA graph, if that works."""
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(WARM_UP_STEPS):
                    self._step()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._step()
            graph.replay()
            torch.cuda.synchronize()
        except RuntimeError as error:
            self._mode = f"torch.compile (no CUDA graph: {str(error).splitlines()[0][:80]})"
            gc.collect()
            torch.cuda.empty_cache()
        else:
            self._step, self._mode = graph.replay, "torch.compile, CUDA graph"

    def call(self) -> int:
        """Starts the steps of a call without waiting for them."""
        for _ in range(self._steps):
            self._step()
        return self._steps

    def wait(self) -> None:
        """Waits for the GPU."""
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    def facts(self) -> Facts:
        """Peak bytes, the execution mode, and PyTorch's version."""
        peak = torch.cuda.max_memory_allocated() if DEVICE == "cuda" else None
        return {"peak_bytes": peak, "mode": self._mode, "torch": torch.__version__}


def _autocast(precision: str) -> Autocast:
    is_bfloat16 = precision == "mixed_bfloat16"
    # A cached cast would be outside the captured graph.
    return lambda: torch.autocast(
        DEVICE, dtype=torch.bfloat16, enabled=is_bfloat16, cache_enabled=False
    )


def _adam(network: nn.Module, **options: Any) -> torch.optim.Optimizer:
    further = {"fused": True, "capturable": True} if DEVICE == "cuda" else {}
    return torch.optim.Adam(network.parameters(), **options, **further)


def _rmsprop(network: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(network.parameters(), 1e-3, capturable=DEVICE == "cuda")


def _update(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def _cross_entropy(logits: torch.Tensor, target: float) -> torch.Tensor:
    return functional.binary_cross_entropy_with_logits(
        logits.float(), torch.full_like(logits, target, dtype=torch.float32)
    )


def dcgan_step(batch: int, autocast: Autocast) -> Step:
    """A step of Table 1 on images (B, 1, 28, 28)."""
    generator, discriminator = (network.to(DEVICE) for network in torch_loop.networks())
    optimizers = [
        _adam(network, lr=torch_loop.LEARNING_RATE) for network in (generator, discriminator)
    ]
    g, d = torch.compile(generator), torch.compile(discriminator)
    images = _random(batch, 1, 28, 28) * 2.0 - 1.0

    def step() -> None:
        with autocast():
            fake = g(torch.randn(batch, torch_loop.LATENT_SIZE, device=DEVICE))
            loss_d = _cross_entropy(d(images), 1.0) + _cross_entropy(d(fake.detach()), 0.0)
        _update(optimizers[1], loss_d)
        with autocast():
            loss_g = _cross_entropy(d(fake), 1.0)
        _update(optimizers[0], loss_g)

    return step


def pix2pix_step(batch: int, autocast: Autocast) -> Step:
    """A step of Pix2Pix on tiles of 64 pixels."""
    options = Pix2pixOptions()
    channels_last = {"memory_format": torch.channels_last}
    generator = torch_networks.UnetGenerator(options, *FLOW_CHANNELS).to(DEVICE, **channels_last)
    discriminator = torch_networks.patch_discriminator(options, *FLOW_CHANNELS).to(
        DEVICE, **channels_last
    )
    optimizers = [
        _adam(network, lr=2e-4, betas=(0.5, 0.999)) for network in (generator, discriminator)
    ]
    g, d = torch.compile(generator), torch.compile(discriminator)
    source, target = (
        _random(batch, channels, options.tile, options.tile) * 2.0 - 1.0
        for channels in FLOW_CHANNELS
    )

    def step() -> None:
        with autocast():
            image = g(source)
            real = d(torch.cat([source, target], 1))
            fake = d(torch.cat([source, image.detach()], 1))
            loss_d = D_WEIGHT * (_cross_entropy(real, 1.0) + _cross_entropy(fake, 0.0))
        _update(optimizers[1], loss_d)
        with autocast():
            loss_g = _cross_entropy(d(torch.cat([source, image], 1)), 1.0)
            loss_g = loss_g + L1_WEIGHT * functional.l1_loss(image, target)
        _update(optimizers[0], loss_g)

    return step


def shower_step(batch: int, autocast: Autocast) -> Step:
    """A step of 3DGAN at full size: D on real and on generated showers, then G twice."""
    layers = plan("full", AUTHORS_GRID)
    generator = torch_networks.ShowerGenerator(layers).to(DEVICE)
    discriminator = torch_networks.ShowerDiscriminator(layers).to(DEVICE)
    for network in (generator, discriminator):
        network.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    optimizers = [_rmsprop(network) for network in (generator, discriminator)]
    g, d = torch.compile(generator), torch.compile(discriminator)
    showers = _random(batch, 1, *AUTHORS_GRID)
    energy, angle, deposit = (_random(batch, 1) + 1.0 for _ in range(3))

    def latents() -> torch.Tensor:
        noise = torch.randn(batch, torch_networks.LATENT_SIZE - 2, device=DEVICE)
        return torch.cat([energy, angle, noise], 1)

    def percentage_error(values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return 100.0 * ((values - target) / target).abs().mean()

    def update_discriminator(values: torch.Tensor, is_real: float) -> None:
        flips = (torch.rand(batch, 1, device=DEVICE) < LABEL_FLIP_RATE).float()
        targets = (is_real - flips).abs()
        with autocast():
            logits, energies = d(values)
        real_loss = functional.binary_cross_entropy_with_logits(logits, targets)
        _update(
            optimizers[1],
            REAL_WEIGHT * real_loss + ENERGY_WEIGHT * percentage_error(energies, energy),
        )

    def update_generator() -> None:
        with autocast():
            values = g(latents())
            logits, energies = d(values)
        cells = values[:, 0].clamp(min=0.0) ** (1.0 / CELL_POWER)
        loss = REAL_WEIGHT * _cross_entropy(logits, 1.0) + ENERGY_WEIGHT * percentage_error(
            energies, energy
        )
        loss = (
            loss
            + ANGLE_WEIGHT * (torch_networks.measured_angle(cells)[:, None] - angle).abs().mean()
        )
        loss = loss + DEPOSIT_WEIGHT * percentage_error(cells.sum((1, 2, 3))[:, None], deposit)
        _update(optimizers[0], loss)

    def step() -> None:
        update_discriminator(showers, 1.0)
        with autocast(), torch.no_grad():
            fake = g(latents())
        update_discriminator(fake, 0.0)
        update_generator()
        update_generator()

    return step


def _random(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, device=DEVICE)


STEPS = {"dcgan_mnist": dcgan_step, "pix2pix": pix2pix_step, "shower_3dgan": shower_step}


if __name__ == "__main__":
    serve(TorchStep)
