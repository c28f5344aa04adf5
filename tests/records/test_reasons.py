"""Reasons: codes, their sentences, and the meaning of sentences in journals without codes."""

from __future__ import annotations

import json
import re
import string
import time
from pathlib import Path

import pytest

from gan_runtime.records import journal
from gan_runtime.records.journal import SkippedLine, StatusChange
from gan_runtime.records.record import MAX_TEXT
from gan_runtime.records.states import SENTENCES, WITH_CODE, Cause, Reason, cause, cause_of

# Messages of errors, and of workers about each other: they begin with a detail, and no decision
# depends on them.
OF_ERRORS = {reason for reason, sentence in SENTENCES.items() if sentence.startswith(("{", "[{"))}


def of_sentence(sentence: str) -> dict[str, str | int]:
    """A detail for each field of a sentence: a number for the fields in `numbers`, else text."""
    numbers = {
        "percent",
        "steps",
        "step",
        "epochs",
        "workers",
        "seconds",
        "free_mb",
        "least_mb",
        "signal",
    }
    names = [name for _, name, _, _ in string.Formatter().parse(sentence) if name]
    return {name: 1_234 if name in numbers else f"some {name}" for name in names}


def test_every_code_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Reason)


@pytest.mark.parametrize("reason", sorted(set(Reason) - OF_ERRORS - WITH_CODE))
def test_a_sentence_without_a_code_maps_to_its_cause(reason: Reason) -> None:
    """As in a journal of version 0.2.0."""
    why = Cause(reason, of_sentence(SENTENCES[reason]))
    assert cause_of(why.sentence) == why


@pytest.mark.parametrize(
    "reason", [Reason.STALLED, Reason.TRAINER_EXITED, Reason.RESUMED, Reason.ENDED_UNSAVED]
)
def test_an_empty_detail_leaves_no_brackets(reason: Reason) -> None:
    sentence = cause(reason, how="", changes="").sentence
    assert not re.search(r"\(\)|\[|,\)|  | :", sentence)
    assert (parsed := cause_of(sentence)) is not None
    assert parsed.code is reason


@pytest.mark.parametrize(
    ("sentence", "code"),
    [
        ("waiting for the accelerator", Reason.WAITS_FOR_DEVICE),
        ("moved in the queue", Reason.MOVED),
        ("resumed: waiting for the accelerator", Reason.RESUMED),
        ("waiting for GPU 0 (NVIDIA A100) (run quick-0001 of another home)", Reason.DEVICES_TAKEN),
        ("starts when run quick-0001 has finished", Reason.WAITS_FOR_FINISH),
        (
            (
                "the trainer was killed (it stood still, killed by signal 9); resume goes on from"
                " its last checkpoint"
            ),
            Reason.STALLED,
        ),
        (
            (
                "the trainer process is gone without a word (killed by signal 9); resume goes on"
                " from its last checkpoint"
            ),
            Reason.TRAINER_EXITED,
        ),
        ("stopped on request after step 12 of 400; saved, can be resumed", Reason.STOP_ON_REQUEST),
    ],
)
def test_sentences_of_earlier_versions_map_to_codes(sentence: str, code: Reason) -> None:
    """Literal sentences: the templates can change, but these journals do not."""
    change = StatusChange(status="queued", reason=sentence)
    assert (change.code, change.reason) == (code, sentence)


def test_an_error_message_has_no_code() -> None:
    assert (
        StatusChange(status="failed", reason="data set photos is gone: prepare it again.").code
        is None
    )


def line(**fields: object) -> bytes:
    fixed = '{"kind":"status","status":"lost",'
    return (fixed + json.dumps(fields)[1:] + "\n").encode()


def read(path: Path, *lines: bytes) -> list[journal.Record | SkippedLine]:
    path.write_bytes(b"".join(lines))
    (chunk,) = journal.chunks(path)
    return [*chunk.records, *chunk.skipped]


def test_code_and_details_survive_a_journal(tmp_path: Path) -> None:
    path, change = (
        tmp_path / "journal-supervisor.jsonl",
        StatusChange.of("lost", cause(Reason.STALLED, how="")),
    )
    journal.append(path, 2, change)
    (record,) = journal.read_all(path)
    assert isinstance(record, StatusChange)
    assert (record.cause, record.reason) == (change.cause, change.reason)


def test_a_line_with_only_a_code_gets_its_sentence(tmp_path: Path) -> None:
    (record,) = read(tmp_path / "a", line(code="starting", details={"devices": "cpu"}))
    assert isinstance(record, StatusChange)
    assert record.reason == "starting a trainer on cpu"


def test_an_unknown_code_keeps_its_sentence(tmp_path: Path) -> None:
    (record,) = read(tmp_path / "a", line(code="eaten_by_a_whale", reason="a whale ate it"))
    assert isinstance(record, StatusChange)
    assert (record.code, record.reason) == (None, "a whale ate it")


@pytest.mark.parametrize(
    "fields",
    [
        {"code": "starting"},
        {"code": "starting", "details": ["cpu"]},
        {
            "code": "low_disk",
            "details": {"folder": "/", "free_mb": "much", "least_mb": 1, "step": 1, "steps": 2},
        },
        {"reason": "x", "details": {"a": {"b": 1}}},
        {"reason": 5},
    ],
)
def test_a_line_with_invalid_details_is_skipped(tmp_path: Path, fields: dict[str, object]) -> None:
    (skipped,) = read(tmp_path / "a", line(**fields))
    assert isinstance(skipped, SkippedLine)


def test_a_non_text_code_is_ignored(tmp_path: Path) -> None:
    (record,) = read(tmp_path / "a", line(code=["stalled"], reason="x"))
    assert isinstance(record, StatusChange)
    assert record.code is None


@pytest.mark.parametrize(
    "reason", sorted(reason for reason in Reason if SENTENCES[reason].count("{") > 1)
)
def test_a_forged_sentence_takes_no_power_of_its_length(reason: Reason) -> None:
    """The words between two details, again and again, as if each could end the first."""
    parts = re.split(r"\{[^}]*\}", re.sub(r"[\[\]]", "", SENTENCES[reason]))
    begun = time.process_time()
    for first in range(1, len(parts)):
        for last in range(first + 1, len(parts) + 1):
            again = "1".join((*parts[first:last], ""))
            sentence = "1".join((*parts[:first], "")) + again * (MAX_TEXT // len(again))
            StatusChange(status="lost", reason=f"{sentence} and more" * 10)
    assert time.process_time() - begun < 4.0


def test_a_forged_number_of_thousands_of_digits_stays_text(tmp_path: Path) -> None:
    digits = "1" * 9_000
    (record,) = read(tmp_path / "a", line(reason=f"all {digits} epochs done"))
    assert isinstance(record, StatusChange)
    assert (record.code, record.details) == (Reason.EPOCHS_DONE, {"epochs": digits})
