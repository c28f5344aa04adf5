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
from gan_runtime.records import image_files, journal
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.journal import EpochDone
from gan_runtime.records.run_folder import RunDir, answers_of

WAY = "map_reduce"
HEADS = (
    "",
    "Minutes",
    "RMSE, first period",
    "Replay",
    "Copy",
    "Replay ÷ model",
    "SSIM (replay)",
    "RMSE, all frames (replay)",
    "Error of the Strouhal number (replay)",
    "Frame (ms), solver's",
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
    """A line for each run and flow."""
    return markdown.table(HEADS, [_line(run, flow) for run in runs for flow in rollouts(run)])


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


def _line(run: RunDir, flow: Answer) -> list[str]:
    epochs = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, EpochDone)
    ]
    minutes = sum(record.seconds for record in epochs) / 60.0
    scores = {score.name: score for score in flow.scores}
    period = scores["rmse_period"]
    return [
        f"seed {run.spec().seed}, {flow.facts['film']}",
        f"{minutes:.1f}",
        f"{period.value:.3f}",
        f"{period.baselines['replay']:.3f}",
        f"{period.baselines['reference']:.3f}",
        f"{period.baselines['replay'] / period.value:.1f}",
        _with_replay(scores["ssim_period"], ".2f"),
        _with_replay(scores["rmse"], ".3f"),
        _with_replay(scores["strouhal_error"], ".1%"),
        f"{scores['ms_frame'].value:.1f} ({scores['ms_frame'].baselines['reference']:.1f})",
    ]


def _with_replay(score: Score, style: str) -> str:
    return f"{score.value:{style}} ({score.baselines.get('replay', math.nan):{style}})"


if __name__ == "__main__":
    main()
