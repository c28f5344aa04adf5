"""What KIT measured when it trained Pix2Pix on a simulated flow: a table by device and batch size. Nothing here was measured with this program."""

from __future__ import annotations

from gan_runtime.catalog.published import PublishedTimes, TrainingTime

SOURCE = "R. Lehmann, P. Schaarschmidt, W. Karl, PARS-Mitteilungen 2024 (dl.gi.de, 20.500.12116/44645), and the talk of 15 September 2023"
SETTING = (
    "Average training time over 45 epochs, PyTorch with XLA, data parallel over the cores of a TPU. How many frames an epoch has is not "
    "published, so that these times cannot be turned into images per second."
)


TIMES = tuple(
    TrainingTime(device, batch_size, seconds)
    for device, by_batch in (
        ("A6000 GPU", {8: 3451.0, 16: 3385.0, 32: 3133.0, 64: 2790.0}),
        ("TPU v2-8", {8: 2518.0, 16: 1525.0}),
        ("TPU v3-8", {8: 2383.0, 16: 1438.0}),
        ("TPU v4-8", {8: 2130.0, 16: 1369.0, 32: 1092.0, 64: 1077.0}),
    )
    for batch_size, seconds in by_batch.items()
)
KIT = PublishedTimes(
    title="KIT, Pix2Pix on flow: training time in seconds by batch size",
    source="KIT, Pix2Pix flow simulation (Lehmann et al. 2024), average training time over 45 epochs",
    setting=SETTING,
    times=TIMES,
)
