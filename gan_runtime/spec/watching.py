"""What is watched while a run trains, what happens on an alarm, and which checkpoints stay."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime.base.options import option

AlarmAction = Literal["note", "stop", "roll_back"]
StillAction = Literal["note", "stop", "restart"]


class WatchingOptions(BaseModel):
    """Read by the training loop and by the owner of the home; see training/alarms.py for what
    each alarm means.
    """

    alarm_action: AlarmAction = option(
        "note",
        label="On an alarm",
        group="Watching",
        choices=get_args(AlarmAction),
        help=(
            "'note' writes it down, 'stop' saves and ends, 'roll_back' returns to the last good"
            " checkpoint with half the rates."
        ),
        source="",
        error="pick one of the listed actions.",
    )
    collapse_share: float = option(
        0.1,
        label="Collapse alarm below",
        group="Watching",
        unit="of the data's spread",
        ge=0,
        lt=1,
        help=(
            "Alarm when generated rows vary less than this share of what the real ones do: one is"
            " made again and again. 0 never."
        ),
        source="rule of thumb of this project",
        error="use 0, or about 0.1.",
    )
    d_wins_score: float = option(
        0.01,
        label="Judge-wins alarm below",
        group="Watching",
        unit="mean score",
        ge=0,
        lt=0.5,
        help=(
            "Alarm when the judging network's mean score of generated rows is below this, and that"
            " of real ones above 1 minus it. 0 never."
        ),
        source="rule of thumb of this project",
        error="use 0, or about 0.01.",
    )
    still_action: StillAction = option(
        "note",
        label="When it stands still",
        group="Watching",
        choices=get_args(StillAction),
        help=(
            "A trainer that lives and writes nothing for 20 usual calls and at least 2 min: 'note'"
            " says so, 'stop' ends it, 'restart' kills it and goes on from its last checkpoint."
        ),
        source="",
        error="pick one of the listed actions.",
    )
    resume_lost: Literal["no", "yes"] = option(
        "no",
        label="Resume when lost",
        group="Watching",
        choices=("no", "yes"),
        help=(
            "A run whose process was killed, or whose machine was restarted, goes on by itself: at"
            " most 3 times, after 10 s, 1 min and 5 min."
        ),
        source="",
        error="use yes or no.",
    )
    keep_checkpoints: int = option(
        3,
        label="Checkpoints kept",
        group="Watching",
        unit="newest",
        ge=1,
        le=1000,
        help="One is written at the end of each epoch; the newest so many stay, and the best one.",
        source="",
        error="use a whole number from 1.",
    )
    pictures_every: int = option(
        1,
        label="Pictures every",
        group="Watching",
        unit="epochs",
        ge=1,
        le=1000,
        help=(
            "Pictures are drawn and kept after the first epoch, every so many epochs, and the last"
            " one. 1: after each."
        ),
        source="",
        error="use a whole number from 1.",
    )


class MeasuringOptions(BaseModel):
    """Read by the training loop."""

    profile_steps: int = option(
        0,
        label="Profile steps",
        group="Run",
        unit="steps",
        ge=0,
        le=100,
        help=(
            "So many steps run once under the profiler, to tell where a step's time goes. They"
            " train as all others but count in no time. 0: none."
        ),
        source="CERN's 3DGAN on TPUs: 38 % forward, 61 % backward, 0.7 % idle",
        error="use 0, or a few steps such as 5.",
    )
    weight_snapshots: Literal["no", "yes"] = option(
        "no",
        label="Weight snapshots",
        group="Run",
        choices=("no", "yes"),
        help=(
            "Keeps the weights of all networks after each epoch, in half precision, so that the"
            " descent on the loss surface can be drawn: about 5 MB an epoch for the DCGAN."
        ),
        source="paper, Fig. 11",
        error="use no or yes.",
    )
    count_kernels: Literal["no", "yes"] = option(
        "no",
        label="Count kernels",
        group="Run",
        choices=("no", "yes"),
        help=(
            "With XLA jit: kernels and fusions of a step, before and after XLA's optimizing."
            " Compiles once more at the start: that counts in no time, but in the memory."
        ),
        source="TensorFlow: experimental_get_compiler_ir",
        error="use no or yes.",
    )
