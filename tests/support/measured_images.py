"""Answers of the evaluation `quality` without a job."""

from __future__ import annotations

from gan_runtime.records.answer import Answer, Curve, CurveSeries, Score


def answer(
    epoch: int, fcd: float = 4.0, warning: str = "", coverage: float = 0.5, kcd: float = 0.5
) -> Answer:
    """FCD with an interval of ±1, KCD with one of ±0.2, coverage, and the shares of two classes."""
    return Answer(
        evaluation="quality",
        key=f"epoch {epoch}",
        epoch=epoch,
        step=10 * epoch,
        checkpoint=f"epoch {epoch}",
        facts={
            "samples": 898,
            "reference": "training images",
            "seed": 0,
            "protocol": 1,
            "features": "classifier",
            "classifier": "ce7f46d27d5b3506",
            "accuracy": 0.994,
            "warning": warning,
        },
        metric_prefix="quality_",
        scores=[
            Score(
                name="fcd",
                value=fcd,
                error=0.5,
                low=fcd - 1.0,
                high=fcd + 1.0,
                floor=1.0,
                floor_error=0.1,
                ceiling=90.0,
                samples=898,
            ),
            Score(
                name="kcd",
                value=kcd,
                error=0.1,
                low=kcd - 0.2,
                high=kcd + 0.2,
                floor=0.001,
                samples=898,
            ),
            Score(
                name="coverage",
                value=coverage,
                error=0.02,
                low=coverage - 0.04,
                high=coverage + 0.04,
                floor=0.97,
                samples=898,
            ),
        ],
        curves=[
            Curve(
                name="share of images by class",
                x=[0.0, 1.0],
                series=[
                    CurveSeries(name="real", values=[0.5, 0.5]),
                    CurveSeries(name="generated", values=[0.9, 0.1]),
                ],
            )
        ],
    )
