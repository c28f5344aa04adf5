"""An OpenSSH server on loopback, and an `ssh` command that reaches it as "login"."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gan_runtime.base.cluster import free_addresses

HOST = "login"
_SSHD = "/usr/sbin/sshd"


def missing() -> str:
    """Why no server can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "it needs root"
    return "" if Path(_SSHD).exists() and shutil.which("ssh") else "openssh-server is not installed"


class SshServer:
    """A server for the user of this process. `environment`: variables of its sessions. `commands`:
    a folder with the `ssh` command, for PATH.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        # Its key must not be writable or readable for others, nor the folders above it.
        self._folder = Path(tempfile.mkdtemp(prefix="ssh-server-", dir="/root"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_addresses(1)[0].rpartition(":")[2]
        self.commands = self._folder / "bin"
        self._write_files(environment)

    def start(self) -> None:
        """Starts the server."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        words = [_SSHD, "-D", "-e", "-f", str(self._folder / "sshd_config")]
        with (self._folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def stop(self) -> None:
        """Ends the server and its connections."""
        if self._process is not None:
            subprocess.run(["pkill", "-P", str(self._process.pid)], check=False)
            self._process.kill()
            self._process.wait()

    def remove(self) -> None:
        """Ends it for good."""
        self.stop()
        shutil.rmtree(self._folder)

    def _write_files(self, environment: Mapping[str, str]) -> None:
        for key in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / key)],
                check=True,
            )
        settings = [f"SetEnv {name}={value}\n" for name, value in environment.items()]
        (self._folder / "sshd_config").write_text(
            f"Port {self._port}\nListenAddress 127.0.0.1\nHostKey {self._folder}/host\n"
            f"AuthorizedKeysFile {self._folder}/user.pub\nPidFile none\nPermitRootLogin yes\n"
            f"UsePAM no\nPasswordAuthentication no\n{''.join(settings)}",
            encoding="utf-8",
        )
        (self._folder / "config").write_text(
            f"Host {HOST}\n HostName 127.0.0.1\n Port {self._port}\n User root\n"
            f" IdentityFile {self._folder}/user\n IdentitiesOnly yes\n"
            " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n",
            encoding="utf-8",
        )
        self.commands.mkdir()
        command = self.commands / "ssh"
        command.write_text(
            f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self._folder}/config "$@"\n',
            encoding="utf-8",
        )
        command.chmod(0o755)
