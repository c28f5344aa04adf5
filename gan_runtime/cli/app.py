"""The program: its commands, and those that need no run.

`python -m gan_runtime COMMAND --help`

Exit codes: 0 done; 1 a followed run failed or was lost; 2 the request is wrong, with one sentence
on stderr. Reading commands (runs, show, sql, export) read the journals into memory, so they work
next to a dashboard and without a usable results.duckdb, and change nothing.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gan_runtime.base import channels, disk, formats, web_access
from gan_runtime.base.errors import ExportError, NotifyError, PortError
from gan_runtime.base.web_access import hash_of, is_loopback, is_wildcard
from gan_runtime.cli import (
    CHANGEABLE,
    SETTABLE,
    HomeOption,
    JsonOption,
    OverwriteOption,
    RunsArgument,
    VersionOption,
    data_sets,
    evaluating,
    gpu_checks,
    output,
    runs,
    storage,
    targets,
    tpu_checks,
    training,
)
from gan_runtime.cli.output import OneSentence
from gan_runtime.hardware import hosts
from gan_runtime.records import processes
from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY, Home
from gan_runtime.supervision import notifications

LOOPBACK = "127.0.0.1"

app = typer.Typer(
    cls=OneSentence,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # `report` and `generate` of earlier versions had --out.
    context_settings={"token_normalize_func": lambda name: "to" if name == "out" else name},
)


@app.callback()
def program(version: VersionOption = False) -> None:
    """Launch, watch and compare GAN training from a terminal."""


def devices(home: HomeOption = None, as_json: JsonOption = False) -> None:  # noqa: ARG001  (every command takes --home)
    """Show the devices of this host, and why others cannot be used. Takes a few seconds."""
    host = hosts.probe()
    if as_json:
        return output.print_json(host.model_dump())
    output.say(
        f"{host.cpu_model}, {host.cores} cores, {formats.size(host.memory_bytes)}; TensorFlow"
        f" {host.tensorflow}"
    )
    table = output.table("accelerator", "usable", "devices", "engines", "name")
    for name, device in host.devices.items():
        usable, engines = device.available, ", ".join(device.engines) if device.available else ""
        detail = device.name or device.reason
        table.add_row(name, "yes" if usable else "no", str(device.count), engines, detail)
    return output.answers().print(table)


@dataclass(frozen=True)
class ServerAddress:
    """Where the dashboard listens; with a certificate and its key at https."""

    address: str
    port: int
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        return web_access.url(self.address, self.port, self.tls_cert is not None, wildcard=LOOPBACK)

    def options(self) -> list[str]:
        """Options of Streamlit."""
        words = ["--server.address", self.address, "--server.port", str(self.port)]
        if self.tls_cert and self.tls_key:
            words += ["--server.sslCertFile", str(self.tls_cert)]
            words += ["--server.sslKeyFile", str(self.tls_key)]
        return words


def serve(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port to listen on.")] = 8501,
    address: Annotated[
        str,
        typer.Option(
            help=(
                "The address to listen on. 127.0.0.1: only this machine; 0.0.0.0: everyone can see"
                " all pages (docs/sharing.md)."
            )
        ),
    ] = LOOPBACK,
    tls_cert: Annotated[
        Path | None, typer.Option(help="A certificate in PEM: the dashboard then uses https.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the dashboard. Ctrl-C ends it; runs continue to train."""
    folder, server = Home.choose(home), ServerAddress(address, port, tls_cert, tls_key)
    check_certificate(server)
    check_port(address, port)
    folder.prepare()
    if as_json:
        output.print_json({"url": server.url, "home": folder.path}, indent=None)
    else:
        output.say(f"The dashboard is at {server.url}")
    if warning := exposure(server):
        output.note(warning)
    become_dashboard(folder, server, stdout_to_stderr=as_json)


def check_certificate(server: ServerAddress) -> None:
    """Raises PortError when the certificate or its key is missing, or they do not match."""
    if server.tls_cert is None and server.tls_key is None:
        return
    if server.tls_cert is None or server.tls_key is None:
        raise PortError("a certificate needs its key: use both --tls-cert and --tls-key.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            server.tls_cert, server.tls_key, password=_no_password
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise PortError(
            f"certificate {server.tls_cert} with key {server.tls_key} cannot be used"
            f" ({getattr(error, 'strerror', None) or error}): use a certificate in PEM and its key"
            " without a password."
        ) from None


def _no_password() -> str:
    raise ValueError("the key has a password")


def check_port(address: str, port: int) -> None:
    """Raises PortError when no process can listen there now."""
    try:
        family, kind, protocol, _, socket_address = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            # As servers do: a port that was just closed is free.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(socket_address)
            listener.listen()
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise PortError(
                f"port {port} is in use, perhaps by a dashboard that is open at"
                f" {ServerAddress(address, port).url}: choose another with `make run"
                f" PORT={port % 65_535 + 1}` or --port {port % 65_535 + 1}."
            ) from None
        raise PortError(
            f"the dashboard cannot listen on address {address} with port {port} "
            f"({getattr(error, 'strerror', None) or 'it is not a host name'}): "
            "use --address 127.0.0.1 and a --port from 1024 to 65535."
        ) from None


def exposure(server: ServerAddress) -> str:
    """Who can see the dashboard; empty for an address that only this machine reaches."""
    if is_loopback(server.address):
        return ""
    elsewhere = (
        f" at {server.url.partition(':')[0]}://{platform.node()}:{server.port} or another name of"
        " this machine"
        if is_wildcard(server.address)
        else ""
    )
    return (
        f"Everyone who reaches this machine{elsewhere} can see all runs. Pages change nothing until"
        f" sign-in is set up (docs/sharing.md). Use --address {LOOPBACK} to keep them to this"
        " machine."
    )


def become_dashboard(home: Home, server: ServerAddress, stdout_to_stderr: bool) -> NoReturn:
    """Replaces this process by Streamlit, so that Ctrl-C and signals reach it directly."""
    command = processes.command("dashboard.frame.process", str(REPOSITORY / "app.py"))
    command += [*server.options(), "--server.headless", "true"]
    # Streamlit's welcome asks another host for this machine's address; `serve` prints the address.
    command += ["--logger.hideWelcomeMessage", "true"]
    sys.stdout.flush()
    if stdout_to_stderr:
        os.dup2(2, 1)
    environment = processes.environment({**os.environ, HOME_VARIABLE: str(home.path)})
    os.execve(sys.executable, command, environment)


def report(
    run: RunsArgument,
    to: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")],
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write runs into one HTML file that needs no network: numbers, curves, samples, options.

    Also scores with their intervals, and the statistics of a study.
    """
    folder = Home.choose(home)
    run_ids = [folder.run_dir(run_id).run_id for run_id in dict.fromkeys(run)]
    disk.check_targets([to], overwrite)
    content = _page_about(folder, run_ids)
    try:
        disk.write_target(to, content, overwrite)
    except OSError as error:
        raise ExportError(
            f"{to} cannot be written ({error.strerror}): choose another file with --to."
        ) from None
    if as_json:
        return output.print_json({"file": to, "bytes": len(content)})
    return output.say(
        f"{to} holds {formats.quantity(len(run_ids), 'run')}, {formats.size(len(content))}."
    )


def _page_about(home: Home, run_ids: list[str]) -> bytes:
    """The report, which the dashboard's charts and words are in. Raises ExportError."""
    words = {HOME_VARIABLE: str(home.path), "STREAMLIT_LOGGER_LEVEL": "error"}
    process = subprocess.run(
        processes.command("dashboard.compare.report", *run_ids),
        env=processes.environment({**os.environ, **words}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if process.returncode:
        lines = process.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise ExportError(lines[-1].partition("Error: ")[2] or lines[-1])
    return process.stdout


def operator_password(
    home: HomeOption = None,  # noqa: ARG001 (every command takes it; this one touches no home)
    as_json: JsonOption = False,
) -> None:
    """Ask for a password for the operators of a shared dashboard, and print its hash.

    Copy the two lines into .streamlit/secrets.toml.
    """
    password = typer.prompt(
        "Operator password", hide_input=True, confirmation_prompt=True, err=True
    )
    hashed = hash_of(password)
    if as_json:
        output.print_json({"password": hashed})
    else:
        output.say(f'[operators]\npassword = "{hashed}"')


def notify(
    test: Annotated[
        bool, typer.Option("--test", help="Send a test by each channel, and say what happened.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where notifications of ended, failed and collapsed runs go, or try it.

    Shows no secrets.
    """
    folder = Home.choose(home)
    settings = channels.settings(folder.path)
    rows, failure = [], ""
    for channel in settings.channels:
        result = "not tried"
        if test:
            try:
                channel.send(notifications.trial_notice())
                result = "accepted"
            except NotifyError as error:
                result = failure = str(error)
        rows.append({"channel": channel.name, "to": channel.target, "test": result})
    if as_json:
        output.print_json({"events": settings.events, "channels": rows})
    elif not rows:
        output.say(
            f"No notifications: write {folder.path / channels.FILE} (docs/notifications.md)."
        )
    else:
        table = output.table("channel", "to", "test")
        for row in rows:
            table.add_row(*row.values())
        output.answers().print(table)
        output.say(f"Events: {', '.join(settings.events)}.")
    if failure:
        raise NotifyError(f"the test failed: {failure} Check the settings.")


COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Train": {"train": training.train, "study": training.study, "resume": training.resume},
    "Watch": {"runs": runs.runs, "show": runs.show, "stop": runs.stop, "sql": storage.sql},
    "Use trained runs": {
        "generate": evaluating.generate,
        "evaluate": evaluating.evaluate,
        "best": storage.best,
        "export-model": evaluating.export_model,
    },
    "Store and share": {
        "mark": storage.mark,
        "export": storage.export,
        "report": report,
        "bundle": storage.bundle,
        "import": storage.import_,
        "delete": storage.delete,
        "bin": storage.bin_,
        "restore": storage.restore,
        "space": storage.space,
        "rebuild": storage.rebuild,
    },
    "Devices and dashboard": {
        "devices": devices,
        "tpu-check": tpu_checks.tpu_check,
        "gpu-check": gpu_checks.gpu_check,
        "serve": serve,
        "operator-password": operator_password,
        "notify": notify,
    },
}
EPILOGS = {
    **dict.fromkeys(("train", "study", "tpu-check", "gpu-check"), SETTABLE),
    "resume": CHANGEABLE,
    "evaluate": evaluating.SETTABLE,
}
for panel, members in COMMANDS.items():
    for name, command in members.items():
        app.command(name, epilog=EPILOGS.get(name), rich_help_panel=panel)(command)
app.add_typer(runs.queue_app, name="queue", rich_help_panel="Watch")
app.add_typer(data_sets.app, name="data", rich_help_panel="Train")
app.add_typer(targets.app, name="targets", rich_help_panel="Train")
