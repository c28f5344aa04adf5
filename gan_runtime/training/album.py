"""The pictures of a run: which arrays of the engine become which files, as the workload's
catalog entry declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog, pictures
from gan_runtime.catalog.entries import Picture
from gan_runtime.records.journal import Sample
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec

Shown = Mapping[str, NDArray[np.generic]]  # what the engine gives, by name


@dataclass(frozen=True)
class Album:
    """`kinds`: of pictures, in the order in which pages list them.

    `classes`: the names of the data's labels, if it has any.

    `inputs`: a digest of what the generator is asked with, so that pages know which runs can be
    compared image by image.
    """

    kinds: tuple[Picture, ...]
    classes: tuple[str, ...] = ()
    inputs: str = ""

    @classmethod
    def of(cls, spec: RunSpec, classes: tuple[str, ...] = (), inputs: str = "") -> Album:
        """The album that a run's workload declares."""
        return cls(catalog.WORKLOADS[spec.workload].pictures, classes, inputs)

    def drawn(self, shown: Shown) -> list[Picture]:
        """The kinds whose arrays are all there: which ones a workload shows may depend on its
        options and its data.

        Raises:
            ValueError: kinds are declared, but none can be drawn.
        """
        kinds = [kind for kind in self.kinds if all(name in shown for name in kind.arrays)]
        if self.kinds and not kinds:
            wanted = "; ".join(f"{kind.name}: {', '.join(kind.arrays)}" for kind in self.kinds)
            raise ValueError(
                f"the workload shows {', '.join(shown) or 'nothing'}, but its pictures are drawn"
                f" from ({wanted}): let `show` give the arrays that its catalog entry names."
            )
        return kinds

    def write(self, shown: Shown, run: RunDir, epoch: int) -> None:
        """One file for each kind: samples/NAME-00001.png.

        Raises:
            ValueError: arrays of another shape than their renderer draws.
        """
        for kind in self.drawn(shown):
            drawn = pictures.render(
                kind.renderer, tuple(shown[name] for name in kind.arrays), self.classes
            )
            pictures.save(drawn, run.sample_file(kind.name, epoch))

    def records(self, shown: Shown, run: RunDir, epoch: int, step: int) -> list[Sample]:
        """What the journal says of these files."""
        return [
            Sample(
                epoch=epoch,
                step=step,
                sample_kind=kind.name,
                file=str(run.sample_file(kind.name, epoch).relative_to(run.path)),
                meta={"inputs": self.inputs, "renderer": kind.renderer},
            )
            for kind in self.drawn(shown)
        ]
