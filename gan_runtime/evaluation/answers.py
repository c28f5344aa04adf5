"""The answers in the journals of a run's folder, those that earlier versions wrote as records of their own kinds with them."""

from __future__ import annotations

from gan_runtime.records import journal, standing
from gan_runtime.records.answer import Answer
from gan_runtime.records.earlier_kinds import Earlier, answer_of
from gan_runtime.records.run_folder import RunDir


def answers_of(run: RunDir, evaluation: str) -> list[Answer]:
    """Of one evaluation, the newest last. Raises as `journal.chunks`."""
    measured = [path for path in run.journals() if standing.is_of_evaluations(path.name)]
    measured.sort(key=lambda path: path.name == standing.EVALUATIONS)  # it is newer than the others
    records = [record for path in measured for record in journal.read_all(path)]
    answers = (answer_of(record) if isinstance(record, Earlier) else record for record in records)
    return [answer for answer in answers if isinstance(answer, Answer) and answer.evaluation == evaluation]
