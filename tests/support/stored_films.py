"""A prepared data set with two held-out flows of waves that move with the stream: each frame is the
previous one, shifted by a pixel.
"""

from __future__ import annotations

import numpy as np

from gan_runtime.base.fields import SOURCE, TARGET, Fields, pair_fields
from gan_runtime.data import prepared
from gan_runtime.data.prepared import FieldRecord, Manifest
from gan_runtime.data.sharded import FieldWriter
from gan_runtime.domains.flows.fields import (
    LATTICE_STEP,
    OBSTACLE_SHIFT,
    OBSTACLE_WIDTH,
    REYNOLDS,
    flow_fields,
)
from gan_runtime.records.home import Home
from gan_runtime.records.record import now

HEIGHT, WIDTH, PERIOD, SOLVER_STEPS = 32, 48, 12, 24
TRAINED, HELD_OUT = {100.0: 3}, {120.0: 40, 200.0: 6}


def frame(step: int, reynolds: float) -> np.ndarray:
    """float16 (32, 48, 3): waves of 12 pixels across the stream; their height depends on the
    Reynolds number.
    """
    x, y = np.arange(WIDTH), np.arange(HEIGHT)[:, np.newaxis]
    wave = np.sin(2.0 * np.pi * (x - step) / PERIOD) * np.cos(np.pi * y / HEIGHT / 4)
    return (np.stack([0.2 * wave, 0.5 * wave, 0.8 * wave], axis=-1) * reynolds / 200.0).astype(
        np.float16
    )


def obstacle() -> np.ndarray:
    """float16 (32, 48, 1), 1 in four pixels."""
    mask = np.zeros((HEIGHT, WIDTH, 1), np.float16)
    mask[15:17, 8:10] = 1.0
    return mask


def flow_rows() -> dict[str, np.ndarray]:
    """All rows, training rows first."""
    rows = [
        (reynolds, step)
        for flows in (TRAINED, HELD_OUT)
        for reynolds, count in flows.items()
        for step in range(count)
    ]
    return {
        SOURCE: np.stack(
            [np.concatenate([frame(step, re), obstacle()], axis=-1) for re, step in rows]
        ),
        TARGET: np.stack([frame(step + 1, re) for re, step in rows]),
        REYNOLDS: np.array([re for re, _ in rows], np.float32),
        LATTICE_STEP: np.array([4_000 + SOLVER_STEPS * step for _, step in rows], np.int32),
        OBSTACLE_WIDTH: np.full(len(rows), 10.0, np.float32),
        OBSTACLE_SHIFT: np.zeros(len(rows), np.float32),
    }


def stored_flows(home: Home, name: str = "street") -> None:
    """Stores the flows in the home, like a preparation."""
    _stored(home, name, flow_fields(HEIGHT, WIDTH), flow_rows(), sum(HELD_OUT.values()))


def stored_pairs(
    home: Home, name: str = "edges", target_channels: int = 1, pairs: int = 6, held_out: int = 2
) -> None:
    """Stores pairs of a gray image and its negative, which has `target_channels` equal channels;
    the last `held_out` pairs are held out.
    """
    source = np.random.default_rng(0).integers(0, 256, (pairs, 16, 16, 1), dtype=np.uint8)
    target = np.repeat(255 - source, target_channels, axis=-1)
    fields = pair_fields(16, 16, 1, target_channels)
    _stored(home, name, fields, {SOURCE: source, TARGET: target}, held_out)


def _stored(
    home: Home, name: str, fields: Fields, rows: dict[str, np.ndarray], held_out: int
) -> None:
    folder, shards = prepared.folder(home, name), {}
    folder.mkdir(parents=True)
    for field, record in fields.items():
        with FieldWriter(folder, field, record) as writer:
            writer.append(rows[field])
        shards[field] = tuple(writer.shards)
    manifest = Manifest(
        name=name,
        preparation="test",
        source="by hand",
        options={},
        content="0123456789abcdef01",
        fields={field: FieldRecord.of(record) for field, record in fields.items()},
        shards=shards,
        held_out=held_out,
        prepared_at=now(),
    )
    prepared.write_manifest(folder, manifest)
