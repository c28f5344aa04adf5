"""The settings of targets, and the batch script and query made from them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import SpecError, TargetSettingError
from gan_runtime.commands import Commands
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.supervision.admission import admit
from gan_runtime.targets import configuration, slurm
from gan_runtime.targets.configuration import SlurmTarget, SshTarget
from gan_runtime.targets.slurm import Slurm
from gan_runtime.targets.target import NoAnswerError, TargetJob
from gan_runtime.targets.transport import Done, Here, Ssh
from tests.support import command_line

JOB = TargetJob("gan-run-0001-1-abc", Path("/shared/a b/runs/run-0001"), 1, "gpu", 2, 4)

HOME = Home(Path("/shared/a b"))


class Answers:
    """Answers every command alike, and remembers the last one."""

    def __init__(self, code: int, output: str, errors: str = "") -> None:
        self.done, self.words = Done(code, output, errors), [""]

    def run(self, words: Any, stdin: str = "", seconds: float = 30.0) -> Done:  # noqa: ARG002
        self.words = list(words)
        return self.done


def test_settings_survive_writing_and_reading(home: Home) -> None:
    target = SlurmTarget(
        host="login.example.org",
        python="/opt/gan/bin/python",
        accelerator="gpu",
        prelude=("module load cuda", 'export A="b c"'),
        extra=("--gres=gpu:a100:1",),
        requeue=False,
        poll_seconds=60.0,
    )
    configuration.add(home, "atlas", target)
    configuration.add(home, "second", SlurmTarget())
    assert configuration.targets_of(home) == {"atlas": target, "second": SlurmTarget()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[atlas", "is not TOML"),
        ("[Atlas]", "allowed are 1 to 40 of a-z, 0-9 and '-'"),
        ('[atlas]\nkind = "pbs"', "target atlas: kind is 'pbs', but allowed are slurm, ssh"),
        ("[atlas]\npartitoin = 'gpu'", "target atlas: partitoin: extra inputs are not permitted"),
        ('[atlas]\nprelude = ["a\\nb"]', "prelude.0"),
        ("[atlas]\npartition = 'a b'", "partition"),
        ("atlas = 3", "target atlas: its table"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(home: Home, text: str, message: str) -> None:
    home.targets.write_text(text, encoding="utf-8")
    with pytest.raises(TargetSettingError) as refusal:
        configuration.targets_of(home)
    assert message in str(refusal.value)


def test_the_batch_script_is_valid_and_quotes_its_folder() -> None:
    options = SlurmTarget(
        python="/opt/python", project="/opt/gan", partition="gpu", time_limit="08:00:00"
    )
    script = slurm.script(JOB, options)
    lines = script.splitlines()
    for setting in ("ntasks=2", "gpus-per-task=4", "partition=gpu", "time=08:00:00"):
        assert f"#SBATCH --{setting}" in lines
    assert not any("--account" in line or "--mem" in line for line in lines)
    assert "#SBATCH --requeue" in lines
    assert "/opt/python -P -m gan_runtime.worker '/shared/a b/runs/run-0001' 1 gpu &" in script
    bash = shutil.which("bash")
    assert bash
    subprocess.run([bash, "-n"], input=script, text=True, check=True)


def test_options_of_a_run_follow_those_of_its_target() -> None:
    job = replace(JOB, options=("--time=00:20:00", "--qos=short"))
    script = slurm.script(job, SlurmTarget(time_limit="08:00:00", extra=("--time=09:00:00",)))
    given = [
        line for line in script.splitlines() if line.startswith(("#SBATCH --time", "#SBATCH --qos"))
    ]
    times = ["08:00:00", "09:00:00", "00:20:00"]
    assert given == [*(f"#SBATCH --time={time}" for time in times), "#SBATCH --qos=short"]


def test_a_target_without_sbatch_refuses_options_of_sbatch(home: Home, host: Host) -> None:
    configuration.add(home, "box", SshTarget(kind="ssh", host="box", home="runs"))
    with pytest.raises(SpecError, match="'--time=02:00:00', but box has no sbatch: leave it empty"):
        admit(RunSpec.parse({"target": "box", "job_options": "--time=02:00:00"}), host, home)


def test_a_cpu_job_asks_for_no_gpu() -> None:
    job = TargetJob(JOB.token, JOB.folder, 1, "cpu", 1, 0)
    assert "gpus" not in slurm.script(job, SlurmTarget())


def test_answers_of_squeue_are_read_by_column_and_the_newest_job_of_a_name_counts() -> None:
    rows = [
        ("7", "gan-a", "FAILED", "NonZeroExitCode", "2026-11-29T10:00:00", "N/A", "n1", "0"),
        (
            "9",
            "gan-a",
            "RUNNING",
            "None",
            "2026-11-29T10:00:00",
            "2026-11-29T18:00:00",
            "n[1-2]",
            "1",
        ),
        ("8", "gan-b", "PENDING", "Resources", "N/A", "N/A", "", "0"),
    ]
    columns = (40, 200, 40, 120, 40, 40, 200, 20)
    output = "\n".join(
        "".join(word.ljust(width) for word, width in zip(row, columns, strict=True)) for row in rows
    )
    seen = Slurm(SlurmTarget(), Answers(0, output), HOME).observe(["gan-a", "gan-b"])
    assert (seen["gan-a"].stage, seen["gan-a"].job, seen["gan-a"].restarts) == ("running", "9", 1)
    assert seen["gan-a"].nodes == "n[1-2]"
    assert seen["gan-a"].ends_at is not None
    assert (seen["gan-b"].stage, seen["gan-b"].reason) == ("waiting", "waits for free nodes")
    assert seen["gan-b"].starts_at is None


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv", False),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit", False),
        ("sbatch: error: invalid partition specified: gpuu", True),
    ],
)
def test_only_a_clear_refusal_of_sbatch_is_one(message: str, is_refused: bool) -> None:
    class Refuses(Answers):
        def run(self, words: Any, stdin: str = "", seconds: float = 30.0) -> Done:
            return Done(0, "", "") if "squeue" in words else super().run(words, stdin, seconds)

    target = Slurm(SlurmTarget(), Refuses(1, "", message), HOME)
    if is_refused:
        assert target.submit(JOB).refusal == message
    else:
        with pytest.raises(NoAnswerError):
            target.submit(JOB)


def test_a_failed_query_is_no_answer() -> None:
    answer = Answers(1, "", "slurm_load_jobs error: Unable to contact\n")
    silent = Slurm(SlurmTarget(), answer, HOME)
    with pytest.raises(NoAnswerError, match="Unable to contact"):
        silent.observe(["gan-a"])
    assert "Unable to contact" in silent.offer().refusal


def test_accounting_says_how_a_job_ended_that_squeue_no_longer_lists() -> None:
    class Forgets(Answers):
        def run(self, words: Any, stdin: str = "", seconds: float = 30.0) -> Done:
            return super().run(words, stdin, seconds) if "sacct" in words else Done(0, "", "")

    lines = (
        *("gan-a|7|NODE_FAIL|n1", "gan-a|7|OUT_OF_MEMORY|n2"),
        *("gan-b|8|CANCELLED by 1000|None assigned", "gan-c|9|RUNNING|n1", "torn|li"),
    )
    seen = Slurm(SlurmTarget(), Forgets(0, "\n".join(lines)), HOME).observe(
        ["gan-a", "gan-b", "gan-c"]
    )
    assert set(seen) == {"gan-a", "gan-b"}, "a running job is listed again soon"
    assert (seen["gan-a"].state, seen["gan-a"].restarts, seen["gan-a"].job) == (
        "OUT_OF_MEMORY",
        1,
        "7",
    )
    assert (seen["gan-b"].stage, seen["gan-b"].state) == ("ended", "CANCELLED")
    without = Forgets(1, "", "Slurm accounting storage is disabled")
    assert Slurm(SlurmTarget(), without, HOME).observe(["gan-a"]) == {}


class LoginNode(Here):
    """This host, with the partitions of a cluster."""

    def run(self, words: Any, stdin: str = "", seconds: float = 30.0) -> Done:
        if words[0] == "sinfo":
            return Done(0, "main*|up|1:00:00|2|4|(null)\n", "")
        return super().run(words, stdin, seconds)


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({}, ""),
        ({"prelude": ("no-such-module-command load cuda",)}, ""),
        ({"python": "/nowhere/python"}, "/nowhere/python cannot run this project there"),
        ({"project": "/nowhere", "python": "/usr/bin/python3"}, "No module named 'gan_runtime'"),
    ],
)
def test_a_check_tries_the_python_of_a_cluster(
    home: Home, settings: dict[str, Any], refusal: str
) -> None:
    offer = Slurm(SlurmTarget(**settings), LoginNode(), home).check()
    assert refusal in offer.refusal
    assert bool(offer.lines) is not bool(refusal)


def test_a_check_tells_another_version_and_a_home_that_the_cluster_does_not_see(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Home(tmp_path / "elsewhere")
    refusal = Slurm(SlurmTarget(), LoginNode(), elsewhere).check().refusal
    assert f"it does not see {elsewhere.runs}" in refusal
    monkeypatch.setattr("gan_runtime.targets.slurm.__version__", "0.0.1")
    assert "it has version" in Slurm(SlurmTarget(), LoginNode(), home).check().refusal


def test_a_cluster_apart_needs_a_login_node(home: Home) -> None:
    commands = Commands(home, operator("test"))
    with pytest.raises(TargetSettingError, match="needs a login node: name its host"):
        commands.add_target("atlas", {"kind": "slurm"}, is_apart=True)
    commands.add_target("atlas", {"kind": "slurm", "host": "login"}, is_apart=True)
    added = configuration.target(home, "atlas")
    assert isinstance(added, SlurmTarget)
    assert added.home.startswith("gan-dashboard-runs/")


def test_the_script_for_a_cluster_apart_names_no_folder_of_this_host() -> None:
    options = SlurmTarget.model_validate({"host": "login", "home": "~/runs of gan"})
    assert options.interpreter == "gan-dashboard/.venv/bin/python"
    script = slurm.script(JOB, options)
    assert "/shared" not in script
    assert sys.executable not in script
    assert '#SBATCH --output="runs of gan/runs/run-0001/log.txt"' in script
    assert """"$HOME"/gan-dashboard/.venv/bin/python -P -m gan_runtime.worker""" in script
    assert """run="$HOME"/'runs of gan/runs/run-0001'""" in script


def test_a_missing_command_and_an_unknown_host_are_no_answers() -> None:
    with pytest.raises(NoAnswerError, match="cannot be run"):
        Here().run(["no-such-command-of-slurm"])
    with pytest.raises(NoAnswerError, match=r"nowhere\.invalid cannot be reached with ssh"):
        Ssh("nowhere.invalid").run(["true"])


def test_commands_run_without_the_job_of_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    shown = Here().run(["env"]).output
    assert "SLURM_JOB_ID" not in shown
    assert "SLURM_CONF=/etc/slurm.conf" in shown


def test_a_run_is_admitted_for_its_target_and_not_for_this_host(home: Home, host: Host) -> None:
    configuration.add(home, "atlas", SlurmTarget(accelerator="gpu"))
    admission = admit(RunSpec.parse({"target": "atlas", "replicas": 4}), host, home)
    assert (admission.accelerator, admission.spec.accelerator) == ("gpu", "gpu")
    assert admission.spec.engine == "tensorflow"
    with pytest.raises(SpecError, match="this home has no such target: use atlas, or here"):
        admit(RunSpec.parse({"target": "cms"}), host, home)


def test_the_list_of_runs_says_where_each_trains(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    new_run("far-0001", target="atlas", workers=2)
    new_run("near-0001")
    shown = command_line.run("runs", "--home", str(home.path)).output
    assert "2 × cpu on atlas" in shown
    assert shown.count("on atlas") == 1


def test_the_script_of_a_job_is_printed_before_it_is_submitted(
    home: Home, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    configuration.add(home, "atlas", SlurmTarget(partition="long"))
    words = ["train", "--preset", "quick", "--script", "--home", str(home.path)]
    printed = command_line.run(*words, "--on", "atlas")
    assert printed.exit_code == 0
    assert printed.output.startswith("#!/bin/bash\n#SBATCH --job-name=gan-NAME-1\n")
    assert "#SBATCH --partition=long" in printed.output
    assert printed.output.endswith("exit $code\n")
    assert list(home.runs.iterdir()) == []
    refused = command_line.run(*words)
    assert refused.exit_code == 2
    assert "add --on NAME" in refused.output


def test_targets_are_added_listed_and_checked_on_the_command_line(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # without Slurm
    place = ["--home", str(home.path)]
    assert "No targets" in command_line.run("targets", "list", *place).output
    added = command_line.run("targets", "add", "atlas", "--partition", "gpu", *place)
    assert "targets check atlas" in added.output
    assert "atlas" in command_line.run("targets", "list", *place).output
    checked = command_line.run("targets", "check", "atlas", *place)
    assert checked.exit_code == 2
    assert "atlas cannot be used: `sinfo` cannot be run" in checked.output
    wrong = command_line.run("targets", "add", "atlas", "--accelerator", "tpu", *place)
    assert wrong.exit_code == 2
