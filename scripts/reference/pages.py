"""The four pages of docs/reference/, generated from the declarations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import typer

from gan_runtime import catalog
from gan_runtime.base import options as option_records
from gan_runtime.base.metrics import FAMILIES, Metric
from gan_runtime.base.options import GROUPS, Option
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.cli.app import app
from gan_runtime.records.earlier_records import EARLIER
from gan_runtime.records.home import REPOSITORY
from gan_runtime.records.kinds import RECORDS
from gan_runtime.spec import RunSpec
from gan_runtime.store.store import Store
from scripts.reference import definitions
from scripts.reference.columns import VIEWS, View
from scripts.reference.definitions import Definition

FOLDER = REPOSITORY / "docs" / "reference"
NOTICE = "Written by `make docs` from the program; do not edit.\n"
COMMON = {"home", "as_json", "help"}  # options of every command
MIN_SHARING = 3  # commands, for an option to be listed once for all


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    return {
        "options.md": options(),
        "metrics.md": metrics(),
        "sql.md": sql(),
        "commands.md": commands(),
    }


# ---- options -------------------------------------------------------------------------------------


def options() -> str:
    """Options of all runs by group, then those of each workload."""
    shared = RunSpec.options()
    parts = [
        "# Options of a run",
        NOTICE,
        "`--set NAME=VALUE` on the command line, the form on the page Launch, or `spec.json`."
        " Sources and effects: [how a run trains](../training.md).\n",
    ]
    for group in GROUPS:
        members = [option for option in shared.values() if option.group == group]
        if members:
            parts += [f"## {group}\n", _options_list(members)]
    headings: dict[tuple[str, str], str] = {}
    for record in dict.fromkeys(entry.options for entry in catalog.WORKLOADS.values()):
        names = ", ".join(f"`{n}`" for n, e in catalog.WORKLOADS.items() if e.options is record)
        own_options = [
            option for option in option_records.of(record).values() if _key(option) not in headings
        ]
        inherited = {
            headings[_key(option)]
            for option in option_records.of(record).values()
            if _key(option) in headings
        }
        parts.append(f"## {names}\n")
        parts += [f"The options of {heading}, and:\n" for heading in sorted(inherited)]
        parts.append(_options_list(own_options))
        headings |= {_key(option): names for option in own_options}
    parts.append("Options of an evaluation: `evaluate NAME --help`.\n")
    parts.append("Next: [metrics](metrics.md) · [commands](commands.md).\n")
    return "\n".join(parts)


def _options_list(members: Iterable[Option]) -> str:
    return "".join(
        f"- `{option.name}`{_values(option)}: {_meaning(option)}\n" for option in members
    )


def _key(option: Option) -> tuple[str, str]:
    return option.name, f"{_values(option)}: {option.help}"


def _values(option: Option) -> str:
    """The allowed values, the default in bold: " (off, **jit**)", " (1 to 64, **8**)"."""
    default = f"**{option.default}**" if option.default != "" else ""
    if option.choices:
        words = [default if choice == option.default else choice for choice in option.choices]
    else:
        allowed = option.allowed if option.kind is not str else ""
        limits = re.sub(r"^(?:a whole number from|at least) ", "", allowed)
        value_range = limits.replace(" and at most ", " to ").replace(" and below ", " to below ")
        words = [value_range, default]
    return f" ({', '.join(filter(None, words))})" if any(words) else ""


def _meaning(option: Option) -> str:
    """The help of an option; without choices, only its first sentence."""
    return " ".join(option.help.split()) if option.choices else first_sentence(option.help)


def first_sentence(text: str) -> str:
    """The first sentence of a help text."""
    plain = " ".join(text.split())
    return re.split(r"(?<!et al[.])(?<=[a-z0-9)'`][.]) (?=[A-Z'])", plain)[0]


# ---- metrics -------------------------------------------------------------------------------------


def metrics() -> str:
    """The declared metrics of workloads, grouped where equal, of networks, and of evaluations."""
    parts = [
        "# Metrics",
        NOTICE,
        "Name, title, unit, role, and which way is better. A name links to the table with formula,"
        " range and source.\n",
    ]
    declared: dict[tuple[Metric, ...], list[str]] = {}
    for name, entry in catalog.WORKLOADS.items():
        declared.setdefault(tuple(entry.metrics), []).append(f"`{name}`")
    defined = definitions.of_workloads()
    for numbers, names in declared.items():
        own = defined[names[0].strip("`")]
        parts += [f"## {', '.join(names)}\n", _metrics_list(numbers, own)]
    shared = next(iter(defined.values()))
    parts += ["## Every network\n", _metrics_list(map(_of_network, FAMILIES.values()), shared)]
    of_workloads = {metric for numbers in declared for metric in numbers}
    for evaluation in evaluations().values():
        own_scores = [metric for metric in evaluation.scores if metric not in of_workloads]
        if own_scores:
            parts += [f"## Evaluation `{evaluation.name}`\n", _metrics_list(own_scores, shared)]
    parts.append("Next: [definitions](../metrics.md) · [SQL](sql.md).\n")
    return "\n".join(parts)


def _of_network(family: Metric) -> Metric:
    title = family.title.format("network")
    return replace(family, name=f"{family.name}_<network>", title=title, axis=title)


def _metrics_list(numbers: Iterable[Metric], defined: list[Definition]) -> str:
    lines = []
    for metric in numbers:
        role = metric.role.replace("_", " ")
        unit = "" if metric.unit in metric.title else metric.unit
        facts = ", ".join(filter(None, (metric.title, unit, role, metric.better)))
        definition = definitions.of_metric(metric.name, defined)
        name = f"[`{metric.name}`](../{definition.address})" if definition else f"`{metric.name}`"
        lines.append(f"- {name}: {facts}\n")
    return "".join(lines)


# ---- SQL -----------------------------------------------------------------------------------------


def sql() -> str:
    """Every public view with its columns, and the kinds of journal records."""
    parts = ["# SQL views", NOTICE, "[How to query them](../schema.md).\n"]
    columns = view_columns()
    for name, view in VIEWS.items():
        parts += [f"## {name}\n", _view(view, columns[name])]
    records = [
        f"- `{kind}`: {', '.join(f'`{field}`' for field in fields)}\n"
        for kind, fields in record_fields().items()
    ]
    parts += [
        "## Journal records\n",
        "Every record has `kind`, `attempt` and `at` (UTC).\n",
        "".join(records),
        "Next: [how to query](../schema.md) · [metrics](metrics.md).\n",
    ]
    return "\n".join(parts)


def view_columns() -> dict[str, dict[str, str]]:
    """View → column → type, for the schema `main`."""
    columns: dict[str, dict[str, str]] = {}
    store = Store()
    rows = store.rows(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'main' ORDER BY table_name, ordinal_position"
    )
    store.close()
    for view, column, kind in rows:
        columns.setdefault(view, {})[column] = kind.replace(
            "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"
        )
    return columns


def record_fields() -> dict[str, list[str]]:
    """The fields of each kind of record that this version writes."""
    return {
        kind.model_fields["kind"].default: [
            name for name in kind.model_fields if name not in ("kind", "attempt", "at")
        ]
        for kind in RECORDS
        if kind not in EARLIER
    }


def _view(view: View, columns: dict[str, str]) -> str:
    explained = {column for names in view.meanings for column in names.split()}
    plain: dict[str, list[str]] = {}
    for name, kind in columns.items():
        if name not in explained:
            plain.setdefault(kind, []).append(f"`{name}`")
    lines = [f"- {', '.join(names)} ({kind})\n" for kind, names in plain.items()]
    for names, meaning in view.meanings.items():
        kinds = ", ".join(dict.fromkeys(columns[name] for name in names.split()))
        named = ", ".join(f"`{name}`" for name in names.split())
        lines.append(f"- {named} ({kinds}): {meaning}\n")
    return f"{view.rows}\n\n{''.join(lines)}"


# ---- commands ------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments and options; shared options come first."""
    all_commands = dict(_commands(typer.main.get_command(app), ""))
    lines = Counter(line for command in all_commands.values() for line in _options(command))
    shared = [line for line, count in lines.items() if count >= MIN_SHARING]
    parts = [
        "# Commands",
        NOTICE,
        "`python -m gan_runtime COMMAND`, or `gan-dashboard COMMAND` where it is installed. Every"
        " command takes `--home DIR` and `--json`. Exit codes: 0 success, 1 a run failed or was"
        " lost, 2 the request is invalid. Options of several commands:\n",
        "".join(shared),
        *(_command(name, command, shared) for name, command in sorted(all_commands.items())),
        "Next: [options for --set](options.md) · [SQL views](sql.md).\n",
    ]
    return "\n".join(parts)


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def _command(name: str, command: Any, shared: list[str]) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    usage = " ".join([name, *(_argument(argument) for argument in arguments)])
    summary = first_sentence((command.help or "").partition("\f")[0])
    options = _options(command)
    shared_names = ", ".join(
        f"`{line.split('`')[1].split()[0]}`" for line in options if line in shared
    )
    text = f"## {usage}\n\n{summary}{f' Also {shared_names}.' if shared_names else ''}\n"
    own_lines = "".join(line for line in options if line not in shared)
    return text + (f"\n{own_lines}" if own_lines else "")


def _options(command: Any) -> list[str]:
    named = [p for p in command.params if p.param_type_name == "option" and p.name not in COMMON]
    return [f"- `{_names(option)}`: {first_sentence(option.help or '')}\n" for option in named]


def _argument(argument: Any) -> str:
    word = (argument.metavar or str(argument.name).upper()).strip("[]")
    return word if argument.required else f"[{word}]"


def _names(option: Any) -> str:
    word = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return f"{option.opts[-1]}{word}"
