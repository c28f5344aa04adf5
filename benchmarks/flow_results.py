"""Results of the example runs of the Kármán vortex street, from their bundle: the table and the
image of docs/pix2pix.md.

python -m benchmarks.flow_results                                     prints the table
python -m benchmarks.flow_results --picture docs/screenshots/karman-example.png
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from benchmarks import bundle_command, markdown
from gan_runtime.bundles.packing import example
from gan_runtime.domains.flows import pictures as flow_pictures
from gan_runtime.records import image_files
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.run_folder import RunDir, answers_of

WAY = "map_reduce"
HEADS = (
    "Flow (seeds {seeds})",
    "RMSE, first period",
    "Replay",
    "Copy",
    "Spectrum, all frames",
    "Replay",
    "Copy",
    "Divergence, times the solver's",
    "Strouhal error",
    "Replay",
)
STEPS = (0, 12, 24, 50, 100)  # of the image: the start, then half a period, one, two and four
PIXELS, MARGIN = 3, 4  # image pixels per cell of a frame; margin around each frame


def main() -> None:
    """Prints the table; draws the image on request."""
    bundle_command.run(__doc__, example("karman"), table, _picture)


def rollouts(run: RunDir) -> list[Answer]:
    """The newest map-reduce rollout of each held-out flow, in the order of the flows."""
    answers = answers_of(run, "rollout")
    newest = {
        answer.facts["trajectory"]: answer for answer in answers if answer.facts["way"] == WAY
    }
    return [newest[trajectory] for trajectory in sorted(newest)]


def table(runs: list[RunDir]) -> str:
    """A line for each flow; the cells of the model have a number for each run."""
    by_film: dict[str, list[Answer]] = {}
    for run in runs:
        for flow in rollouts(run):
            by_film.setdefault(flow.facts["film"], []).append(flow)
    seeds = ", ".join(str(run.spec().seed) for run in runs)
    heads = [head.format(seeds=seeds) for head in HEADS]
    return markdown.table(heads, [_line(film, flows) for film, flows in by_film.items()])


def image_of(run: RunDir, flow: Answer) -> Image.Image:
    """Vorticity at STEPS, one per row: simulated on the left, predicted on the right."""
    film = image_files.read_film(run, flow.arrays[0].file)
    indices = [int(np.flatnonzero(film.steps == step)[0]) for step in STEPS if step in film.steps]
    rows = []
    for index in indices:
        pair = [
            flow_pictures.frame_colors(np.concatenate([frames[index], film.mask], axis=-1))
            for frames in (film.truth, film.predicted)
        ]
        framed = [
            np.pad(image, ((MARGIN, 0), (MARGIN, 0), (0, 0)), constant_values=255) for image in pair
        ]
        rows.append(np.concatenate(framed, axis=1))
    image = Image.fromarray(np.concatenate(rows))
    return image.resize((image.width * PIXELS, image.height * PIXELS), Image.Resampling.NEAREST)


def _picture(run: RunDir) -> Image.Image:
    return image_of(run, next(flow for flow in rollouts(run) if flow.arrays))


def _line(film: str, flows: list[Answer]) -> list[str]:
    scores = [{score.name: score for score in flow.scores} for flow in flows]
    first = scores[0]
    # Replay, copied frame and solver do not depend on the model.
    divergences = [
        each["divergence"].value / each["divergence"].baselines["reference"] for each in scores
    ]
    return [
        film,
        _numbers(scores, "rmse_period", ".3f"),
        f"{first['rmse_period'].baselines['replay']:.3f}",
        f"{first['rmse_period'].baselines['reference']:.3f}",
        _numbers(scores, "spectrum", ".2f"),
        f"{first['spectrum'].baselines['replay']:.2f}",
        f"{first['spectrum'].baselines['reference']:.2f}",
        ", ".join(f"{times:.1f}" for times in divergences),
        _numbers(scores, "strouhal_error", ".1%"),
        f"{first['strouhal_error'].baselines.get('replay', math.nan):.1%}",
    ]


def _numbers(scores: list[dict[str, Score]], name: str, style: str) -> str:
    return ", ".join(f"{each[name].value:{style}}" for each in scores)


if __name__ == "__main__":
    main()
