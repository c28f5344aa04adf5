"""The rules of docs/architecture.md, checked against the imports of every file.

Part of `make check`, so it stays fast.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from gan_runtime import catalog
from gan_runtime.base import options
from gan_runtime.base.options import GROUPS, OF_WORKLOAD, Option
from gan_runtime.catalog import declarations
from gan_runtime.catalog.domain import MODULES
from gan_runtime.pictures import RENDERERS
from gan_runtime.records.journal import Sample
from gan_runtime.spec import RunSpec
from tests.support.sources import (
    imported,
    imported_on_loading,
    loaded_with,
    nodes,
    packages,
    python_files,
    text,
)

FRAMEWORKS = {"tensorflow", "keras", "jax", "torch"}


# ---- imports -------------------------------------------------------------------------------------


def test_only_the_store_package_imports_duckdb() -> None:
    importers = {
        path
        for path in python_files()
        if "duckdb" in text(path) and "duckdb" in packages(imported(path))
    }
    assert importers, "nothing imports duckdb: this rule looks in the wrong place"
    outsiders = {
        str(path)
        for path in importers
        if not path.is_relative_to("gan_runtime/store") and path.parts[0] != "tests"
    }
    assert outsiders == set()


CAST = re.compile(r"(?<!TRY_)CAST\((?P<what>(?:[^()]|\([^()]*\))*)\)", re.IGNORECASE)


def casts_of_json(sql: str) -> list[str]:
    """The casts of a part of a JSON document that end a query if another program wrote it."""
    casts = [match["what"] for match in CAST.finditer(sql)]
    return [what for what in casts if "->" in what and not what.upper().endswith(" AS VARCHAR")]


def test_no_query_fails_by_the_types_in_a_document_of_others() -> None:
    assert casts_of_json("CAST(coalesce(facts->>'a', '1') AS INTEGER)")
    assert not casts_of_json("TRY_CAST(a->>'b' AS INTEGER), CAST(a->'b' AS VARCHAR)")
    files = [*python_files("gan_runtime", "dashboard"), *Path("gan_runtime").rglob("*.sql")]
    assert len(files) > 300, "this rule looks in the wrong place"
    assert {str(path): casts for path in files if (casts := casts_of_json(text(path)))} == {}


def test_the_runtime_does_not_import_the_dashboard() -> None:
    of_the_dashboard = {"streamlit", "altair", "dashboard", "pages", "app"}
    imports = {
        str(path): packages(imported(path)) & of_the_dashboard
        for path in python_files("gan_runtime")
    }
    assert len(imports) > 200, "this rule looks in the wrong place"
    assert {path: names for path, names in imports.items() if names} == {}


def test_the_dashboard_imports_no_framework() -> None:
    files = python_files("app.py", "pages", "dashboard")
    assert {
        str(path): packages(imported(path)) & FRAMEWORKS
        for path in files
        if packages(imported(path)) & FRAMEWORKS
    } == {}


def test_the_dashboard_does_not_load_a_framework_indirectly() -> None:
    loaded = loaded_with(
        [*python_files("app.py", "pages", "dashboard"), Path("gan_runtime/commands/runtime.py")]
    )
    assert "duckdb" in loaded, "the imports were not followed"
    assert {name: path for name, path in loaded.items() if name in {*FRAMEWORKS, "sklearn"}} == {}


def test_chart_modules_do_not_load_streamlit() -> None:
    files = [path for path in python_files("dashboard") if path.stem.endswith("charts")]
    assert len(files) >= 4
    assert "streamlit" not in loaded_with(files)


OF_WORKLOADS = [
    *python_files("gan_runtime/workloads"),
    *(
        path
        for path in python_files("gan_runtime/domains")
        if "keras" in packages(imported_on_loading(path))
    ),
]


@pytest.mark.parametrize("path", OF_WORKLOADS, ids=str)
def test_a_workload_imports_only_keras_numpy_and_declarations(path: Path) -> None:
    """Fields and options are declared without a framework; NumPy computes on the host."""
    modules = imported(path)
    strangers = packages(modules) - {"keras", "numpy", "gan_runtime", *sys.stdlib_module_names}
    allowed = (
        "gan_runtime.workloads",
        "gan_runtime.base.fields",
        "gan_runtime.catalog",
        f"gan_runtime.domains.{path.parent.name}",
    )
    imports = {
        module
        for module in modules
        if module.startswith("gan_runtime") and not module.startswith(allowed)
    }
    assert (strangers, imports) == (set(), set())


@pytest.mark.parametrize("path", ["loop.py", "recorder.py", "checkpoints.py"])
def test_the_training_loop_imports_no_workload_or_framework(path: str) -> None:
    loaded = loaded_with([Path("gan_runtime/training") / path])
    assert loaded.keys() & FRAMEWORKS == set()
    assert not [
        name
        for name in imported(Path("gan_runtime/training") / path)
        if name.startswith("gan_runtime.workloads")
    ]
    assert not [
        name
        for name in imported(Path("gan_runtime/training") / path)
        if name.startswith("gan_runtime.engines.tf")
    ]


@pytest.mark.parametrize("path", python_files("gan_runtime/pictures"), ids=str)
def test_pictures_import_only_numpy_and_pillow(path: Path) -> None:
    modules = imported(path)
    assert packages(modules) - {"numpy", "PIL", "gan_runtime", *sys.stdlib_module_names} == set()
    ours = {module for module in modules if module.startswith("gan_runtime.")}
    # The catalog lists renderers of domains; gan_runtime.base writes whole files.
    allowed = (
        "gan_runtime.pictures",
        "gan_runtime.catalog.domain",
        "gan_runtime.catalog.entries",
        "gan_runtime.catalog",
        "gan_runtime.base",
    )
    assert {module for module in ours if not module.startswith(allowed)} == set()


@pytest.mark.parametrize(
    "path",
    [
        "catalog/__init__.py",
        *(f"{module.removeprefix('gan_runtime.').replace('.', '/')}.py" for module in MODULES),
        "base/fields.py",
        "base/metrics.py",
        "spec/run_spec.py",
        "spec/rules.py",
        "base/options.py",
        "spec/presets.py",
        "records/journal.py",
        "records/kinds.py",
        "records/measured.py",
        "base/errors.py",
    ],
)
def test_shared_modules_load_no_heavy_library(path: str) -> None:
    heavy = {*FRAMEWORKS, "sklearn", "duckdb", "pandas", "numpy"}
    assert loaded_with([Path("gan_runtime") / path]).keys() & heavy == set()


# ---- names ---------------------------------------------------------------------------------------

# Names of networks, losses and scores can be literals here: the Paper page compares with one
# paper's pair of networks.
NAMED_AS_IN_THE_PAPER = ("dashboard/paper",)


def names_of_the_catalog() -> set[str]:
    """The stored names of every network, number and score histogram that a workload declares."""
    declaration = declarations.together(catalog.WORKLOADS)
    return {
        *(network.name for network in declaration.networks),
        *declaration.table(),
        *declaration.histograms,
    }


def literals(path: Path) -> set[str]:
    """The lowercase words of all strings of a file, except docstrings: "The loss_a of B" gives the,
    loss_a, of, b.
    """
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(node, scopes) and node.body and isinstance(node.body[0], ast.Expr)
    }
    texts = [
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]
    return {word for text in texts for word in re.findall(r"[a-z0-9_/@]+", text.lower())}


def test_names_of_networks_losses_and_scores_are_declared_once() -> None:
    """Engines, training, store and dashboard read them from the catalog, so a new GAN needs no
    change there.
    """
    names = names_of_the_catalog()
    assert {"generator", "loss_generator", "update_ratio_discriminator", "score/real"} <= names
    rooms = ("engines", "training", "store", "pictures", "jobs", "evaluation", "cli", "commands")
    assert all(Path("gan_runtime", room).is_dir() for room in rooms)
    files = python_files(*(f"gan_runtime/{room}" for room in rooms), "dashboard", "pages")
    read = [
        path
        for path in files
        if not any(path.is_relative_to(place) for place in NAMED_AS_IN_THE_PAPER)
    ]
    assert len(read) > 100, "this rule looks in the wrong place"
    assert {
        str(path): sorted(names_in_file)
        for path in read
        if (names_in_file := literals(path) & names)
    } == {}


def test_literals_include_names_within_longer_strings() -> None:
    names = literals(Path("gan_runtime/catalog/pairs.py"))
    assert {"generator", "r1_penalty", "d_real"} <= names
    assert "options" not in names, "docstrings are no literals"


# ---- options and catalog -------------------------------------------------------------------------


EVERY_OPTION = {
    f"{workload}.{name}": option
    for workload in catalog.WORKLOADS
    for name, option in RunSpec.options(workload).items()
}


@pytest.mark.parametrize("option", EVERY_OPTION.values(), ids=list(EVERY_OPTION))
def test_every_option_has_a_label_and_help(option: Option) -> None:
    assert option.group in GROUPS
    assert option.label[0].isupper()
    assert option.help.endswith(".")
    assert option.error.endswith(".")
    assert option.allowed


def test_the_reference_explains_every_option() -> None:
    page = text(Path("docs/reference/options.md"))
    names = {option.name for option in EVERY_OPTION.values()}
    assert len(names) > 50
    assert [name for name in sorted(names) if f"- `{name}`" not in page] == []


@pytest.mark.parametrize("name", catalog.WORKLOADS)
def test_every_workload_picture_has_a_renderer_and_a_valid_file_name(
    name: str,
) -> None:
    pictures = catalog.WORKLOADS[name].pictures
    assert len({picture.name for picture in pictures}) == len(pictures) > 0
    for picture in pictures:
        assert len(picture.arrays) == len(RENDERERS[picture.renderer].takes)
        Sample(epoch=1, step=1, sample_kind=picture.name, file="", meta={})


def test_every_form_group_contains_an_option() -> None:
    for workload in catalog.WORKLOADS:
        assert {option.group for option in RunSpec.options(workload).values()} == set(GROUPS)


@pytest.mark.parametrize("workload", catalog.WORKLOADS)
def test_workload_option_names_differ_from_shared_ones(
    workload: str,
) -> None:
    """Only then are a flat spec, as in the database, and a nested one equivalent."""
    own_options = set(options.of(catalog.WORKLOADS[workload].options))
    assert own_options.isdisjoint({*RunSpec.options(), *catalog.WORKLOADS, "of_workload"})
    assert {RunSpec.options(workload)[name].group for name in own_options} == {OF_WORKLOAD}


@pytest.mark.parametrize("workload", catalog.WORKLOADS)
def test_every_network_has_its_own_learning_rate(workload: str) -> None:
    spec = RunSpec.parse({"workload": workload})
    assert [spec.learning_rate(network.name) for network in spec.entry.networks] == [
        spec.value(name) for name in spec.entry.rates
    ]


@pytest.mark.parametrize(
    "module", [entry.module for entry in (*catalog.WORKLOADS.values(), *catalog.ENGINES.values())]
)
def test_a_catalog_entry_names_an_existing_module(module: str) -> None:
    assert importlib.util.find_spec(module) is not None
