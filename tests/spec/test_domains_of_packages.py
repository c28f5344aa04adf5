"""An installed package brings a domain with all that the project's own domains bring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.sources import ROOT

MODULE = """
from gan_runtime import catalog
from gan_runtime.base.metrics import Metric
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog import pairs
from gan_runtime.catalog.domain import Domain
from gan_runtime.catalog.entries import Preset, Renderer, Size
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.preparation import Preparation

class NoOptions(OptionRecord):
    pass

BRIGHTNESS = Evaluation(
    "brightness", "Brightness", "How bright images are.", "Measure", NoOptions,
    lambda _entry, _options, _fields: "",
    (Metric("brightness_error", "Error of the brightness", "Error", better="lower"),),
    work="stars:measure", verdict="stars:verdict",
)
DOMAIN = Domain(
    "stars", "Stars",
    workloads={"star_gan": pairs.entry(
        title="Stars", summary="", source="", module="gan_runtime.workloads.mlp_gan",
        options=pairs.PairOptions, pictures=(), reads=pairs.reads_digits,
        size=lambda _options, _fields: Size(1, 1),
    )},
    preparations={"sky": Preparation("Sky", "Simulated stars.", maker="stars")},
    renderers={"constellation": Renderer(("images",), "stars:draw")},
    presets={"stars": Preset("Stars", "A small GAN.", {"workload": "star_gan"})},
    evaluations=("stars:BRIGHTNESS",),
)

def verdict(answer):
    from gan_runtime.training.verdict import AnswerVerdict, Finding
    return AnswerVerdict(Finding.UNLIKE, "all stars are dark", answer.epoch)
"""
POINTS = "[gan_runtime.domains]\nstars = stars:DOMAIN\n"
READ = """
import json
from gan_runtime import catalog, pictures
from gan_runtime.catalog import declarations
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.spec.presets import PRESETS
from gan_runtime.training import verdict
said = verdict.of_answer(verdict.MeasuredAnswer("brightness", 3, {}))
print(json.dumps({
    "tables": [
        name in table for name, table in (
            ("star_gan", catalog.WORKLOADS), ("sky", PREPARATIONS), ("stars", PRESETS),
            ("constellation", pictures.RENDERERS), ("brightness", evaluations()),
        )
    ],
    "number": declarations.of("star_gan").table()["brightness_error"].title,
    "verdict": said.sentence(),
}))
"""


def installed(folder: Path, name: str, module: str, points: str) -> dict[str, str]:
    """The environment of a process in which this package is installed."""
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    package = folder / f"{name}-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text(points, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def output(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )


def test_a_package_brings_a_domain(tmp_path: Path) -> None:
    environment = installed(tmp_path, "stars", MODULE, POINTS)
    assert json.loads(output(READ, environment).stdout) == {
        "tables": [True] * 5,
        "number": "Error of the brightness",
        "verdict": "Unlike the data after epoch 3: all stars are dark.",
    }


BROKEN = {
    "unloadable": "raise OSError('no sky')",
    "without_workloads": MODULE.replace("workloads={", "workloads=None, nouns={"),
    "odd_preset": MODULE.replace('Preset("Stars", "A small GAN.", {"workload": "star_gan"})', "3"),
    "without_evaluations": MODULE.replace('("stars:BRIGHTNESS",)', "None"),
}


def test_broken_domains_of_packages_are_skipped(tmp_path: Path) -> None:
    for name, module in BROKEN.items():
        points = f"[gan_runtime.domains]\n{name} = {name}:DOMAIN\n"
        environment = installed(tmp_path, name, module, points)
    process = output("from gan_runtime import catalog; print(*catalog.WORKLOADS)", environment)
    assert "shower_3dgan" in process.stdout
    assert "star_gan" not in process.stdout
    for name in BROKEN:
        of = f"gan_runtime.domains in package {name}"
        assert f"{name} of {of} is skipped" in process.stderr


def test_presets_and_preparations_have_groups_of_entry_points(tmp_path: Path) -> None:
    module = MODULE + "SKY, NIGHT = DOMAIN.preparations['sky'], DOMAIN.presets['stars']"
    points = (
        "[gan_runtime.presets]\nnight = stars:NIGHT\n[gan_runtime.preparations]\nsky = stars:SKY\n"
    )
    read = """
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.spec.presets import PRESETS
print(PRESETS["night"].title, PREPARATIONS["sky"].title)
"""
    assert output(read, installed(tmp_path, "stars", module, points)).stdout == "Stars Sky\n"


TAKEN = """
NAMES = {"star_gan": "dcgan", "sky": "pictures", "constellation": "grey_grid"}
PARTS = {
    part: {NAMES.get(name, "quick"): row for name, row in getattr(DOMAIN, part).items()}
    for part in ("workloads", "preparations", "renderers", "presets")
}
from dataclasses import replace
QUALITY = replace(BRIGHTNESS, name="quality", title="Stars")
GENERATE = replace(BRIGHTNESS, name="check_tpu", title="Stars")
DOMAIN = replace(
    DOMAIN, **PARTS, jobs=("star_jobs",),
    evaluations=("stars:QUALITY", "stars:GENERATE", "stars:NAMELESS", "stars:BRIGHTNESS"),
)
NAMELESS = replace(BRIGHTNESS, name=None)
"""
JOBS = """
from gan_runtime.jobs.job import Job
JOBS = (Job("generate", "Stars", "stars:generate"), 7, Job("twinkle", "Stars", "stars:twinkle"))
"""


def test_no_name_of_a_domain_replaces_one_of_the_project(tmp_path: Path) -> None:
    read = """
from gan_runtime import catalog, pictures
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.jobs.job import jobs
from gan_runtime.spec.presets import PRESETS
rows = (
    catalog.WORKLOADS["dcgan"], PREPARATIONS["pictures"], PRESETS["quick"],
    evaluations()["quality"], jobs()["generate"], jobs()["check_tpu"],
)
assert not any(row.title in ("Stars", "Sky") for row in rows), rows
assert pictures.RENDERERS["grey_grid"].draw != "stars:draw"
print("brightness" in evaluations(), "brightness" in jobs(), "twinkle" in jobs())
"""
    (tmp_path / "star_jobs.py").write_text(JOBS, encoding="utf-8")
    process = output(read, installed(tmp_path, "stars", MODULE + TAKEN, POINTS))
    assert process.stdout == "True True True\n", "the rest of the domain is usable"
    for name in ("dcgan", "pictures", "grey_grid", "quick", "quality", "generate", "check_tpu"):
        assert f"the name {name!r} is taken" in process.stderr
    assert "None of gan_runtime.evaluations is skipped: None is not a valid name" in process.stderr
    assert "7 is skipped: declare a Job" in process.stderr


def test_tables_that_need_each_other_do_not_wait_for_ever(tmp_path: Path) -> None:
    """One thread reads the workloads while another loads the domain, which reads them too."""
    module = "import time; from gan_runtime import catalog\ntime.sleep(0.5)\n" + MODULE
    module += "assert catalog.WORKLOADS['dcgan']\n"
    read = """
import threading
from gan_runtime import catalog
from gan_runtime.catalog.domain import DOMAINS
threads = [threading.Thread(target=list, args=(table,)) for table in (DOMAINS, catalog.WORKLOADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("star_gan" in catalog.WORKLOADS)
"""
    assert output(read, installed(tmp_path, "stars", module, POINTS)).stdout == "True\n"


def test_an_evaluation_has_one_name(tmp_path: Path) -> None:
    points = "[gan_runtime.evaluations]\nglow = stars:BRIGHTNESS\n"
    read = "from gan_runtime.catalog.evaluations import evaluations; print(*evaluations())"
    process = output(read, installed(tmp_path, "stars", MODULE, points))
    assert "glow" not in process.stdout
    assert "'glow' is declared with another name: use the same" in process.stderr


def test_broken_evaluations_of_a_package_are_skipped(tmp_path: Path) -> None:
    places = ("stars:DARKNESS", "stars:NoOptions", "moons:DARKNESS")
    module = MODULE.replace('("stars:BRIGHTNESS",)', str((*places, "stars:BRIGHTNESS")))
    process = output(READ, installed(tmp_path, "stars", module, POINTS))
    assert json.loads(process.stdout)["tables"] == [True] * 5
    for place in places:
        assert f"an evaluation of stars is skipped: {place!r}" in process.stderr


def test_the_answers_of_evaluations_whose_rules_fail_have_no_verdict(tmp_path: Path) -> None:
    rules = ("stars:missing", "moons:verdict", "builtins:len", "builtins:repr")
    module = f"""{MODULE}
from dataclasses import replace
RULES = {{f"rule_{{place}}": rule for place, rule in enumerate({rules})}}
globals().update({{
    name: replace(BRIGHTNESS, name=name, verdict=rule) for name, rule in RULES.items()
}})
DOMAIN = replace(DOMAIN, evaluations=tuple(f"stars:{{name}}" for name in RULES))
"""
    read = """
from gan_runtime.training import verdict
for place in range(4):
    print(verdict.of_answer(verdict.MeasuredAnswer(f"rule_{place}", 3, {})))
"""
    process = output(read, installed(tmp_path, "stars", module, POINTS))
    assert process.stdout == "None\n" * 4
    for place in range(4):
        assert f"the verdict of evaluation rule_{place} is left out" in process.stderr


def test_broken_jobs_and_a_broken_drawing_of_a_domain_are_skipped(tmp_path: Path) -> None:
    module = MODULE.replace(
        "evaluations=", 'jobs=("moons",), first_rows="stars:no_sky", evaluations='
    )
    read = """
import numpy as np
from gan_runtime.data import prepared
from gan_runtime.jobs.job import jobs
print("brightness" in jobs(), prepared.png_of_rows({"sky": np.zeros((1, 2, 2))}))
"""
    process = output(read, installed(tmp_path, "stars", module, POINTS))
    assert process.stdout == "True None\n"
    assert "jobs of stars are skipped: 'moons:JOBS' cannot be loaded" in process.stderr
    assert "stars:no_sky is left out" in process.stderr


def test_functions_of_a_package_that_fail_are_left_out_of_pages(tmp_path: Path) -> None:
    module = MODULE.replace('verdict="stars:verdict"', 'page="star_page:PAGE"').replace(
        "evaluations=", "describe=lambda fields: fields['sky'], evaluations="
    )
    module = module.replace('lambda _entry, _options, _fields: "",', "lambda *_: 1 / 0,")
    page = """
import streamlit as st
from dashboard.evaluation.answers import DomainPage, DomainTab
def fail(*_):
    raise OSError("no sky")
PAGE = DomainPage(
    (DomainTab("Map", fail), DomainTab("Rest", lambda *_: st.stop())), (), (), (),
    about=lambda row: exit(3), definition=lambda facts: 1 / 0, usual=fail, read=fail,
    value_words=fail,
)
"""
    (tmp_path / "star_page.py").write_text(page, encoding="utf-8")
    read = """
import tempfile
from datetime import datetime
from pathlib import Path
from dashboard import data_summary
from dashboard.evaluation.answers import cautions, page_of
from gan_runtime.base.fields import pictures
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.evaluation import jobs
from gan_runtime.records.answer import Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.store.queries import EvaluationRow
brightness = evaluation("brightness")
row = EvaluationRow("r", "brightness", "k", datetime(2026, 1, 1), 1, 1, "best", {})
print(data_summary.row({"stars": pictures(8, 8, 1)}), cautions([row]))
page = page_of(brightness)
print(page.about(row), page.definition({}) == "", page.usual([row, row]) == [row], page.read(3))
error = Metric("error", "Error", "Error", format=".2f")
print(page.value_words(error, Score(name="error", value=0.5), row))
page.tabs[0].draw(None, None)
run = RunDir(Path(tempfile.mkdtemp()) / "run-0001")
run.path.mkdir()
write_json(run.spec_path, {"workload": "mlp_gan"})
print(jobs.why_never(Home(run.path.parent), run, brightness))
"""
    process = output(read, installed(tmp_path, "stars", module, POINTS))
    assert process.stdout.splitlines() == [
        "8 × 8 stars ",
        "{'key': 'k'} True True 3",
        "0.50",
        "brightness cannot tell whether it applies: see the log.",
    ]
    assert "the description of stars is left out" in process.stderr
    assert process.stderr.count("`about` of star_page:PAGE is left out") == 1, "it is called twice"
    assert "`definition` of star_page:PAGE is left out" in process.stderr
    assert "`Map` of star_page:PAGE is left out" in process.stderr
    assert "`applies` of brightness is left out" in process.stderr


def test_functions_of_a_packages_evaluation_that_fail_refuse_only_this_evaluation(
    tmp_path: Path,
) -> None:
    module = MODULE.replace(
        'work="stars:measure"',
        'work="stars:measure", needs_checkpoint=False, usual=fail, lacking=fail, check=fail',
    ).replace("class NoOptions", "def fail(*_):\n    raise OSError('no sky')\n\nclass NoOptions")
    module += """
from dataclasses import replace
TPU = replace(BRIGHTNESS, name="check_tpu")
DOMAIN = replace(DOMAIN, evaluations=("stars:BRIGHTNESS", "stars:TPU"))
"""
    read = """
import tempfile
from pathlib import Path
from gan_runtime.base.errors import JobError
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.evaluation import jobs
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, write_json
home = Home(Path(tempfile.mkdtemp())).prepare()
run = RunDir(home.runs / "run-0001")
run.path.mkdir()
write_json(run.spec_path, {"workload": "mlp_gan"})
print([why for each, why in jobs.evaluations_of(home, run) if each.name == "brightness"])
print(jobs.why_never(home, run, evaluation("check_tpu")))
print(jobs.usual(home, run, evaluation("brightness")))
try:
    jobs.check(home, jobs.EvaluationRequest(evaluation="brightness", run_id="run-0001"))
except JobError as error:
    print(error)
"""
    process = output(read, installed(tmp_path, "stars", module, POINTS))
    assert process.stdout.splitlines() == [
        "['brightness cannot tell what it lacks: see the log.']",
        "check_tpu is also the name of another job: rename the evaluation.",
        "{}",
        "brightness cannot check this request: no sky.",
    ]


def test_a_broken_page_and_a_missing_option_of_an_evaluation_are_passed_over(
    tmp_path: Path,
) -> None:
    module = MODULE.replace(
        'verdict="stars:verdict"',
        'page="moons:PAGE", while_training=WhileTraining("brightness_every", lambda *_: {})',
    ).replace("import Evaluation\n", "import Evaluation, WhileTraining\n")
    read = """
import sys
from pathlib import Path
from dashboard.evaluation.answers import page_of
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.evaluation.training_requests import is_measured_while_training
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, write_json
run = RunDir(Path(sys.path[1]) / "run-0001")
run.path.mkdir()
write_json(run.spec_path, {"workload": "mlp_gan", "quality_every": 0})
print(page_of(evaluation("brightness")).headline)
print(is_measured_while_training(Home(run.path.parent), run))
"""
    process = output(read, installed(tmp_path, "stars", module, POINTS))
    assert process.stdout == "('brightness_error',)\nFalse\n"
    assert "the page of evaluation brightness is the usual one" in process.stderr
