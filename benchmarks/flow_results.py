"""What the example runs of the Kármán street reached, out of their bundle: the table and the
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

SHOWN_WAY = "map_reduce"
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
STEPS = (0, 12, 24, 50, 100)  # shown in the image: half a period, one, two, four
PIXELS, RIM = 3, 4  # image pixels per cell of a frame; margin around each frame


def main() -> None:
    """Prints the table; draws the image on request."""
    bundle_command.run(__doc__, example("karman"), table, _picture)


def iterations(run: RunDir) -> list[Answer]:
    """The newest by map-reduce of each held-out flow, the first flow first."""
    answers = answers_of(run, "rollout")
    newest = {
        answer.facts["trajectory"]: answer for answer in answers if answer.facts["way"] == SHOWN_WAY
    }
    return [newest[trajectory] for trajectory in sorted(newest)]


def table(runs: list[RunDir]) -> str:
    """A line for each run and flow."""
    return markdown.table(HEADS, [_line(run, flow) for run in runs for flow in iterations(run)])


def image_of(run: RunDir, flow: Answer) -> Image.Image:
    """The vorticity of some moments: the true flow on the left, the prediction on the right."""
    film = image_files.read_film(run, flow.arrays[0].file)
    places = [int(np.flatnonzero(film.steps == step)[0]) for step in STEPS if step in film.steps]
    rows = []
    for place in places:
        both = [
            flow_pictures.frame_colors(np.concatenate([frames[place], film.mask], axis=-1))
            for frames in (film.truth, film.predicted)
        ]
        framed = [
            np.pad(image, ((RIM, 0), (RIM, 0), (0, 0)), constant_values=255) for image in both
        ]
        rows.append(np.concatenate(framed, axis=1))
    picture = Image.fromarray(np.concatenate(rows))
    return picture.resize(
        (picture.width * PIXELS, picture.height * PIXELS), Image.Resampling.NEAREST
    )


def _picture(run: RunDir) -> Image.Image:
    return image_of(run, next(flow for flow in iterations(run) if flow.arrays))


def _line(run: RunDir, flow: Answer) -> list[str]:
    done = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, EpochDone)
    ]
    minutes = sum(record.seconds for record in done) / 60.0
    of = {score.name: score for score in flow.scores}
    period = of["rmse_period"]
    return [
        f"seed {run.spec().seed}, {flow.facts['film']}",
        f"{minutes:.1f}",
        f"{period.value:.3f}",
        f"{period.baselines['replay']:.3f}",
        f"{period.baselines['reference']:.3f}",
        f"{period.baselines['replay'] / period.value:.1f}",
        _with_replay(of["ssim_period"], ".2f"),
        _with_replay(of["rmse"], ".3f"),
        _with_replay(of["strouhal_error"], ".1%"),
        f"{of['ms_frame'].value:.1f} ({of['ms_frame'].baselines['reference']:.1f})",
    ]


def _with_replay(score: Score, style: str) -> str:
    return f"{score.value:{style}} ({score.baselines.get('replay', math.nan):{style}})"


if __name__ == "__main__":
    main()
