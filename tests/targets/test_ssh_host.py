"""A target without a shared home, over a transport that ends at this machine. Its trainers are
lines of shell; tests/full/targets has a real ssh and a real trainer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import pytest

from gan_runtime import __version__
from gan_runtime.base.errors import RoleError, RunStateError, SpecError, TargetSettingError
from gan_runtime.commands import Commands
from gan_runtime.data import loading
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.record import Actor, operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.supervision.admission import admit
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget, SshTarget
from gan_runtime.targets.ssh_host import SshHost
from gan_runtime.targets.target import NoAnswerError, Seen, TargetJob, run_id_of, token_of
from gan_runtime.targets.transport import Done, Here
from tests.support import command_line, drawn_pairs

LINE = b'{"kind":"scalars","step":%d}\n'


@dataclass
class Loopback:
    """Runs the commands of a target here. `cut`: bytes of an answer before it breaks off.
    `banner`: what the start files of the shell there print.
    """

    cut: int | None = None
    banner: str = ""
    calls: list[str] = field(default_factory=list)

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        self.calls.append(" ".join(words))
        done = Here().run(words, stdin, seconds)
        return Done(done.code, self.banner + done.output[: self.cut], done.errors)

    def stream(self, words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        self.calls.append(" ".join(words))
        sink.write(self.banner.encode())
        sink.flush()
        return Here().stream(words, source, sink)


class Place:
    """Another host with a home at `folder`, whose trainers run `script`."""

    def __init__(self, home: Home, folder: Path, script: str) -> None:
        options = SshTarget(
            kind="ssh",
            host="box",
            project=str(REPOSITORY),
            python=sys.executable,
            home=str(folder),
            prelude=(script,),
        )
        self.transport = Loopback()
        self.target = SshHost(options, self.transport, home)
        self.run = RunDir(home.runs / "far-0001")
        self.run.path.mkdir(parents=True)
        self.run.spec_path.write_text(RunSpec.parse({"target": "box"}).model_dump_json())
        self.there = folder / "runs" / "far-0001"
        self.job = TargetJob(token_of("far-0001", 1), self.run.path, 1, "cpu", 1, 0)

    def begin(self) -> str:
        return self.target.submit(self.job).job

    def seen(self) -> Seen:
        return self.target.observe([self.job.token])[self.job.token]

    def until_ended(self, wait_until: Callable[..., Any]) -> Seen:
        return wait_until(lambda: seen if (seen := self.seen()).stage == "ended" else None, "ended")


@pytest.fixture
def place(home: Home, tmp_path: Path) -> Callable[[str], Place]:
    return lambda script: Place(home, tmp_path / "there", script)


def second_run(box: Place) -> TargetJob:
    """The job of another run there."""
    job = replace(box.job, token=token_of("far-0002", 1), folder=box.run.path.parent / "far-0002")
    shutil.copytree(box.run.path, job.folder)
    assert box.target.submit(job).job
    return job


def ended(place: Callable[[str], Place], wait_until: Callable[..., Any]) -> Place:
    """A host whose only job has ended; tests then write its files."""
    box = place("exit 0")
    box.begin()
    box.until_ended(wait_until)
    return box


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_run_of_a_token_is_known() -> None:
    assert run_id_of(token_of("my-run-0007", 12)) == "my-run-0007"


def test_a_job_starts_once_and_ends_as_its_trainer_did(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = place("echo began; exit 0")
    assert box.target.observe([box.job.token]) == {}, "unknown before it is submitted"
    assert box.begin() == box.begin() == box.begin()
    seen = box.until_ended(wait_until)
    assert (seen.state, seen.job) == ("COMPLETED", box.begin())
    assert box.run.log_tail() == "began"


def test_lines_of_a_login_are_no_part_of_the_answer(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = place("exit 0")
    box.transport.banner = "Welcome to box!\n{}\n"
    box.begin()
    assert box.until_ended(wait_until).state == "COMPLETED"
    (box.there / "checkpoints").mkdir()
    (box.there / "checkpoints" / "step-00000900.safetensors").write_bytes(b"c" * 9_000_000)
    assert box.until_ended(wait_until).state == "COMPLETED"
    [checkpoint] = box.run.checkpoints.iterdir()
    assert digest(checkpoint) == digest(box.there / "checkpoints" / checkpoint.name)


@pytest.mark.parametrize(
    ("script", "state"), [("exit 3", "FAILED"), ("kill -9 $$", "KILLED"), ("exit 0", "COMPLETED")]
)
def test_the_end_of_a_trainer_is_told_apart(
    place: Callable[[str], Place], wait_until: Callable[..., Any], script: str, state: str
) -> None:
    box = place(script)
    box.begin()
    assert box.until_ended(wait_until).state == state


def test_a_cancelled_job_ends_with_all_its_processes(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = place("sleep 600 & echo ready; wait")
    box.begin()
    wait_until(lambda: (box.seen(), box.run.log_tail())[1], "it runs")
    box.target.cancel(box.job.token)
    assert box.until_ended(wait_until).state == "CANCELLED"


def test_another_version_there_trains_nothing(
    place: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = place("exit 0")
    monkeypatch.setattr("gan_runtime.targets.far_home.__version__", "0.0.1")
    assert "and the dashboard 0.0.1: update it there" in box.target.submit(box.job).refusal
    assert not box.there.exists()


def test_a_canceled_job_does_not_begin_later(place: Callable[[str], Place]) -> None:
    box = place("exit 0")
    box.target.cancel(box.job.token)
    assert box.target.submit(box.job).refusal == "it was canceled before it began"


def test_a_deleted_run_still_has_the_state_of_its_job(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = place("sleep 600")
    box.begin()
    shutil.rmtree(box.run.path)
    assert box.seen().stage == "running"
    box.target.cancel(box.job.token)
    assert box.until_ended(wait_until).state == "CANCELLED"


def test_a_run_does_not_continue_where_its_files_are_missing(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = place("echo 1; exit 0")
    box.begin()
    box.until_ended(wait_until)
    box.run.checkpoints.mkdir()
    (box.run.checkpoints / "step-00000100.safetensors").write_bytes(b"the only copy")
    shutil.rmtree(box.there)
    second = replace(box.job, token=token_of("far-0001", 2), attempt=2)
    assert "are not on" in box.target.submit(second).refusal
    assert box.target.observe([second.token]) == {}
    assert box.run.has_checkpoint


def test_files_that_were_removed_there_silence_no_other_run(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    other = second_run(box)
    shutil.rmtree(box.there)
    assert set(box.target.observe([box.job.token, other.token])) == {other.token}


def test_a_full_disk_there_ends_the_job_as_failed(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    [code] = (box.there.parent.parent / "jobs").glob("*.code")
    code.write_text("")
    assert box.seen().state == "FAILED"


def test_bytes_are_appended_only_where_this_process_has_seen_the_end(
    place: Callable[[str], Place], wait_until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = ended(place, wait_until)
    journal = box.there / "journal-0.jsonl"
    journal.write_bytes(LINE % 1)

    def after_another_owner(words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        done = Here().run(words, stdin, seconds)
        box.run.trainer_journal().write_bytes(LINE % 1)
        return done

    monkeypatch.setattr(box.transport, "run", after_another_owner)
    box.seen()
    assert digest(box.run.trainer_journal()) == digest(journal)


def test_many_files_come_in_few_calls_and_before_the_journal(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    (box.there / "samples").mkdir()
    for number in range(25):
        (box.there / "samples" / f"fixed-{number:05d}.png").write_bytes(b"p" * 1_000_000)
    (box.there / "journal-0.jsonl").write_bytes(LINE % 1)
    box.transport.calls.clear()
    assert box.seen().stage == "running"
    assert not box.run.trainer_journal().exists()
    assert box.until_ended(wait_until).stage == "ended"
    assert digest(box.run.trainer_journal()) == digest(box.there / "journal-0.jsonl")
    assert len(list(box.run.samples.iterdir())) == 25
    assert len(box.transport.calls) == 4


def test_a_stop_here_becomes_a_stop_there(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = place("cd RUN; until [ -e STOP ]; do sleep 0.05; done; cat STOP; exit 0")
    box = relocated(box)
    box.begin()
    assert box.seen().state == "RUNNING"
    box.run.request_stop("user")
    assert box.until_ended(wait_until).state == "COMPLETED"
    assert box.run.log_tail() == "user"


def relocated(box: Place) -> Place:
    """RUN in the script is the run's folder there."""
    script = box.target.options.prelude[0].replace("RUN", str(box.there))
    options = box.target.options.model_copy(update={"prelude": (script,)})
    box.target = SshHost(options, box.transport, box.target.home)
    return box


def test_everything_arrives_once_through_a_connection_that_breaks(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    journal = box.there / "journal-0.jsonl"
    (box.there / "samples").mkdir()
    (box.there / "checkpoints").mkdir()
    (box.there / "checkpoints" / "step-00000900.safetensors").write_bytes(b"c" * 9_000_000)
    box.run.checkpoints.mkdir()
    (box.run.checkpoints / "step-00000100.safetensors").write_bytes(b"an earlier one")
    written = b"".join(LINE % step for step in range(30_000))
    for part in range(3):
        # The last line is cut: the trainer is writing it.
        journal.write_bytes(written[: (part + 1) * len(written) // 3])
        (box.there / "samples" / f"fixed-0000{part}.png").write_bytes(b"p" * (part + 1))
        box.transport.cut = 10_000
        before = box.run.journal_stats()
        with pytest.raises(NoAnswerError):
            box.seen()
        assert box.run.journal_stats() == before, "an answer counts whole or not at all"
        box.transport.cut = None
        box.seen()
        assert digest(box.run.trainer_journal()) == digest(journal)
    assert len(list(box.run.samples.iterdir())) == 3
    assert [path.name for path in box.run.checkpoints.iterdir()] == ["step-00000900.safetensors"]
    fetched = sum(" file " in call for call in box.transport.calls)
    box.seen()
    assert sum(" file " in call for call in box.transport.calls) == fetched == 1


def test_no_line_is_here_before_the_sample_that_it_names(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    (box.there / "samples").mkdir()
    (box.there / "samples" / "fixed-00001.png").write_bytes(b"p")
    (box.there / "journal-0.jsonl").write_bytes(LINE % 1)

    box.run.samples.touch()  # no folder can have this name now
    with pytest.raises(NoAnswerError, match="far-0001 cannot be copied"):
        box.seen()
    assert not box.run.trainer_journal().exists()


def test_files_of_the_owner_and_outside_of_the_run_are_not_taken(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    for name in ("journal-supervisor.jsonl", "journal-evaluations.jsonl", "spec.json", "STOP"):
        (box.there / name).write_text("of another owner")
    here = box.run.spec_path.read_text()
    box.seen()
    assert box.run.spec_path.read_text() == here
    assert sorted(path.name for path in box.run.path.iterdir()) == ["spec.json"]


def test_a_prepared_set_is_sent_once(
    place: Callable[[str], Place], home: Home, tmp_path: Path
) -> None:
    drawn_pairs.prepare(home, tmp_path / "pictures")
    name = drawn_pairs.NAME
    box = place("exit 0")
    content = loading.content_of(name, home)
    assert content
    for attempt in (1, 2):
        job = TargetJob(
            token_of("far-0001", attempt), box.run.path, attempt, "cpu", 1, 0, name, content
        )
        assert box.target.submit(job).job
    files = [path for path in (home.data / name).rglob("*") if path.is_file()]
    assert sum(f" data {name} " in call for call in box.transport.calls) == len(files)
    there = tmp_path / "there" / "data"
    assert loading.content_of(name, Home(tmp_path / "there")) == content
    for path in files:
        assert digest(path) == digest(there / path.relative_to(home.data))
    assert {path.name for path in there.iterdir() if path.is_dir()} == {name, ".parts"}
    assert list((there / ".parts").iterdir()) == []


def test_the_offer_says_what_is_there_or_what_to_do(
    place: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = place("exit 0")
    monkeypatch.setattr("gan_runtime.targets.far_home.__version__", "0.0.1")
    assert f"it has version {__version__}" in box.target.offer().refusal
    options = box.target.options.model_copy(update={"python": "/nowhere/python"})
    missing = SshHost(options, box.transport, box.target.home).offer().refusal
    assert "must be a clone of this project, set up with `make setup`" in missing


def test_weights_to_start_from_must_be_on_the_target(
    home: Home, host: Host, new_run: Callable[..., RunDir]
) -> None:
    configuration.add(home, "box", SshTarget(kind="ssh", host="box", home="runs-of-mine"))
    new_run("near-0001")
    with pytest.raises(SpecError, match="box does not have the weights of near-0001"):
        admit(RunSpec.parse({"target": "box", "start_from": "near-0001"}), host, home, "near-0001")
    far = new_run("far-0001", target="box")
    admit(RunSpec.parse({"target": "box", "start_from": far.run_id}), host, home, far.run_id)


def test_an_ssh_target_is_added_with_a_home_for_this_dashboard(home: Home) -> None:
    place = ["--home", str(home.path)]
    words = ["targets", "add", "box", "--kind", "ssh", "--host", "box.example.org", *place]
    assert "targets check box" in command_line.run(*words).output
    first = configuration.target(home, "box")
    assert isinstance(first, SshTarget)
    assert first.home.startswith("gan-dashboard-runs/")
    command_line.run(*words, "--command", "ssh -i key box.example.org")
    second = configuration.target(home, "box")
    assert isinstance(second, SshTarget)
    assert (second.home, second.command) == (first.home, ("ssh", "-i", "key", "box.example.org"))
    wrong = command_line.run(*words, "--partition", "gpu")
    assert "partition" in wrong.output
    assert wrong.exit_code == 2


def test_paths_of_the_user_and_of_any_script_are_read_back(home: Home) -> None:
    values = {"kind": "ssh", "host": "box", "project": "~/Прoject 🎲", "home": "~/runs"}
    Commands(home, operator("test")).add_target("box", values)
    target = configuration.target(home, "box")
    assert isinstance(target, SshTarget)
    assert (target.project, target.home) == ("Прoject 🎲", "runs")


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "a b", "box;true", "$(true)"])
def test_no_host_is_an_option_or_a_command(home: Home, host: str) -> None:
    with pytest.raises(TargetSettingError, match="target box: host"):
        Commands(home, operator("test")).add_target("box", {"kind": "ssh", "host": host})
    assert configuration.targets_of(home) == {}


def test_a_viewer_adds_no_target(home: Home) -> None:
    with pytest.raises(RoleError):
        Commands(home, Actor("test")).add_target("box", {"kind": "ssh", "host": "box"})


@pytest.mark.parametrize("share", [0.3, 0.999])
def test_a_set_that_arrives_in_part_is_no_set_and_goes_on_where_it_was_cut(
    place: Callable[[str], Place],
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
) -> None:
    drawn_pairs.prepare(home, tmp_path / "pictures")
    name = drawn_pairs.NAME
    box = place("exit 0")
    job = replace(box.job, dataset=name, content=loading.content_of(name, home))
    whole, sent = box.transport.stream, []

    def cut(words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        content = source.read()
        part = tmp_path / "part"
        part.write_bytes(content[: int(len(content) * share)])
        sent.append(part.stat().st_size)
        with part.open("rb") as file:
            whole(words, file, sink)
        raise NoAnswerError("the connection is closed")

    def counted(words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        sent.append(os.fstat(source.fileno()).st_size - os.lseek(source.fileno(), 0, os.SEEK_CUR))
        return whole(words, source, sink)

    monkeypatch.setattr(box.transport, "stream", cut)
    for _ in range(2):
        with pytest.raises(NoAnswerError):
            box.target.submit(job)
    there = tmp_path / "there" / "data"
    assert list(there.glob("[!.]*")) == []
    monkeypatch.setattr(box.transport, "stream", counted)
    assert box.target.submit(job).job
    sizes = {
        path.relative_to(home.data): path.stat().st_size
        for path in (home.data / name).rglob("*")
        if path.is_file()
    }
    assert sum(sent) == sum(sizes.values()), "no byte is sent twice"
    assert {path: (there / path).stat().st_size for path in sizes} == sizes


def test_a_large_file_goes_on_where_the_connection_was_cut(
    place: Callable[[str], Place], wait_until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = ended(place, wait_until)
    folder = box.there / "checkpoints"
    folder.mkdir()
    content = bytes(range(256)) * 40_000
    (folder / "step-00000900.safetensors").write_bytes(content)
    whole = box.transport.stream

    def cut(words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        begin = sink.tell()
        whole(words, source, sink)
        sink.truncate(begin + 6_000_000)
        raise NoAnswerError("the connection is closed")

    monkeypatch.setattr(box.transport, "stream", cut)
    with pytest.raises(NoAnswerError):
        box.seen()
    assert list(box.run.checkpoints.glob("[!.]*")) == []
    offsets = [call.split(" ")[-2] for call in box.transport.calls if " file " in call]
    monkeypatch.setattr(box.transport, "stream", whole)
    assert box.until_ended(wait_until).state == "COMPLETED"
    offsets += [call.split(" ")[-2] for call in box.transport.calls if " file " in call][1:]
    assert offsets[0] == "0"
    assert 5_000_000 < int(offsets[1]) < 6_000_000
    [arrived] = box.run.checkpoints.iterdir()
    assert arrived.read_bytes() == content


def test_a_large_file_of_an_ended_job_comes_in_pieces(
    place: Callable[[str], Place], wait_until: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.targets.far_home.PIECE_BYTES", 4_000_000)
    box = ended(place, wait_until)
    folder = box.there / "checkpoints"
    folder.mkdir()
    content = bytes(range(256)) * 40_000
    (folder / "step-00000900.safetensors").write_bytes(content)
    assert box.until_ended(wait_until).state == "COMPLETED"
    offsets = [call.split(" ")[-2] for call in box.transport.calls if " file " in call]
    assert offsets == ["0", "4000000", "8000000"]
    [arrived] = box.run.checkpoints.iterdir()
    assert arrived.read_bytes() == content


def test_weights_of_single_epochs_come_at_the_end(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = relocated(
        place("cd RUN; mkdir snapshots; echo w >snapshots/epoch-00001.safetensors; exit 0")
    )
    box.begin()
    box.until_ended(wait_until)
    assert [path.name for path in box.run.snapshots.iterdir()] == ["epoch-00001.safetensors"]


def test_checkpoints_of_a_running_job_come_once_they_are_asked_for(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = relocated(place("cd RUN; until [ -e STOP ]; do sleep 0.05; done; exit 0"))
    box.begin()
    (box.there / "checkpoints").mkdir()
    (box.there / "checkpoints" / "step-00000100.safetensors").write_bytes(b"weights")
    box.seen()
    assert not box.run.checkpoints.exists()
    box.run.fetch_file.touch()
    assert box.seen().state == "RUNNING"
    assert [path.name for path in box.run.checkpoints.iterdir()] == ["step-00000100.safetensors"]
    (box.there / "checkpoints" / "step-00000200.safetensors").write_bytes(b"later weights")
    box.seen()
    assert len(list(box.run.checkpoints.iterdir())) == 1, "once for each request"
    box.run.request_stop("user")
    box.until_ended(wait_until)
    assert len(list(box.run.checkpoints.iterdir())) == 2


def test_a_request_for_checkpoints_ends_when_all_of_them_are_here(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = relocated(place("cd RUN; until [ -e STOP ]; do sleep 0.05; done; exit 0"))
    box.begin()
    (box.there / "checkpoints").mkdir()
    for step in (1, 2, 3):  # more than one answer holds
        path = box.there / "checkpoints" / f"step-0000000{step}.safetensors"
        path.write_bytes(b"w" * 3_000_000)
    box.run.checkpoints.mkdir()
    earlier = box.run.checkpoints / "step-00000000.safetensors"
    earlier.write_bytes(b"an earlier one")
    box.run.fetch_file.touch()
    box.seen()
    assert earlier.exists()
    assert box.run.fetch_file.exists()
    box.seen()
    assert len(list(box.run.checkpoints.iterdir())) == 3
    assert not box.run.fetch_file.exists()
    box.run.request_stop("user")
    box.until_ended(wait_until)


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_large_file_that_changes_before_it_is_read_comes_with_the_next_answer(
    place: Callable[[str], Place],
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    is_removed: bool,
) -> None:
    box = ended(place, wait_until)
    (box.there / "checkpoints").mkdir()
    path = box.there / "checkpoints" / "best.safetensors"
    path.write_bytes(b"a" * 9_000_000)
    whole = box.transport.stream

    def after_a_change(words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        if is_removed:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(b"b" * 9_000_000)
            os.utime(path, (1.0, 1.0))
        return whole(words, source, sink)

    monkeypatch.setattr(box.transport, "stream", after_a_change)
    assert box.seen().stage == "running"
    assert list(box.run.checkpoints.iterdir()) == []
    monkeypatch.setattr(box.transport, "stream", whole)
    assert box.until_ended(wait_until).state == "COMPLETED"
    arrived = [file.read_bytes()[:1] for file in box.run.checkpoints.iterdir()]
    assert arrived == ([] if is_removed else [b"b"])


def test_a_run_that_cannot_be_copied_holds_up_no_other(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    other = second_run(box)
    for name in ("far-0001", "far-0002"):
        (box.there.parent / name / "samples").mkdir()
        (box.there.parent / name / "samples" / "fixed-00001.png").write_bytes(b"p")
    box.run.samples.touch()  # no folder can have this name now
    seen = box.target.observe([box.job.token, other.token])
    assert seen[box.job.token].stage == "running", "not all is here"
    assert (other.folder / "samples" / "fixed-00001.png").exists()


def test_a_set_that_was_prepared_again_is_not_sent(
    place: Callable[[str], Place], home: Home, tmp_path: Path
) -> None:
    drawn_pairs.prepare(home, tmp_path / "pictures")
    box = place("exit 0")
    job = replace(box.job, dataset=drawn_pairs.NAME, content="the digest at the submission")
    assert "has changed since" in box.target.submit(job).refusal
    assert not (tmp_path / "there" / "data").exists()


def test_checkpoints_are_asked_for_only_where_they_are_not_here(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    configuration.add(home, "atlas", SlurmTarget())
    configuration.add(home, "box", SshTarget(kind="ssh", host="box", home="runs-of-mine"))
    commands = Commands(home, operator("test"))
    for run in (new_run("near-0001"), new_run("far-0002", target="atlas")):
        with pytest.raises(RunStateError, match=f"the checkpoints of {run.run_id} are here"):
            commands.fetch_checkpoints(run.run_id)
        assert not run.fetch_file.exists()
    far = new_run("far-0003", target="box")
    commands.fetch_checkpoints("far-0003")
    assert far.fetch_file.exists()


def test_the_log_of_each_worker_comes(
    place: Callable[[str], Place], wait_until: Callable[..., Any]
) -> None:
    box = ended(place, wait_until)
    (box.there / "log-1.txt").write_text("of rank 1")
    (box.there / "log-x.txt").write_text("of no rank")
    box.seen()
    assert box.run.worker_log(1).read_text() == "of rank 1"
    assert not (box.run.path / "log-x.txt").exists()
