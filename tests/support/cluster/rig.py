"""A real Slurm with two hosts on this machine, for tests and fault scenarios. Needs root and the
packages slurm-wlm and munge.

Each host is a network namespace with an address on a bridge, and namespaces for its name, its
mounts and its processes, so that resolvers, gRPC, Gloo and Slurm behave as on a cluster. Their
files are those of this machine: a shared file system. All traffic stays on the bridge.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from gan_runtime.records.home import REPOSITORY

HOSTS = ("n1", "n2")
COMMANDS = ("slurmctld", "slurmd", "sbatch", "munged", "ip", "nsenter", "unshare")
PYTHON = REPOSITORY / ".venv" / "bin" / "python"
_START_SECONDS, _END_SECONDS = 30.0, 10.0
_CONFIGURATION = """
ClusterName=gan{number}
SlurmctldHost={controller}({net}.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=2000
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=20
MinJobAge=60
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE DefaultTime=30 State=UP PriorityTier=1 GraceTime=20
PartitionName=high Nodes=n1,n2 MaxTime=INFINITE DefaultTime=30 State=UP PriorityTier=10
"""  # noqa: E501


def missing() -> str:
    """Why no rig can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "it needs root"
    absent = [command for command in COMMANDS if shutil.which(command) is None]
    return f"not installed: {', '.join(absent)} (slurm-wlm, munge, iproute2)" if absent else ""


class Rig:
    """The cluster between `up` and `down`. `number`: rigs with different numbers can run at the
    same time.
    """

    def __init__(self, number: int = 0) -> None:
        # Not in a private folder, since munge wants its socket where all users can reach it.
        folder = Path(tempfile.mkdtemp(prefix=self._prefix(number), dir="/tmp"))
        self._folder, self._number = folder, number
        self._net, self._bridge = f"10.96.{number}", f"brgan{number}"
        self._hosts: dict[str, subprocess.Popen[bytes]] = {}
        self.configuration = folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """For commands of Slurm."""
        return {**os.environ, "SLURM_CONF": str(self.configuration)}

    # ---- start and end ---------------------------------------------------------------------------

    def up(self) -> None:
        """Starts the network, the controller and the hosts, and waits until these are idle."""
        self._remove_remains()
        self._write_files()
        munge = self._folder / "munge"
        _run(
            "munged",
            *(f"--{name}={munge / file}" for name, file in _MUNGE_FILES.items()),
        )
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{self._net}.254/24", "dev", self._bridge)
        _run("ip", "link", "set", self._bridge, "up")
        for place, host in enumerate(HOSTS, 1):
            self._add_network(host, f"{self._net}.{place}/24")
        self.start_controller()
        for host in HOSTS:
            self.start_host(host)
        self.wait(lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2", "up")

    def down(self) -> None:
        """Ends everything and removes the network."""
        for host in list(self._hosts):
            self.end_host(host)
        self.stop_controller()
        self._remove_network()
        _end(self._folder / "munge" / "pid")
        shutil.rmtree(self._folder)

    def start_controller(self) -> None:
        """Starts the controller with its stored state."""
        _run("slurmctld", environment=self.environment)

    def stop_controller(self) -> None:
        """Ends the controller; jobs run on."""
        _end(self._folder / "slurmctld.pid")

    def start_host(self, host: str) -> None:
        """Starts the daemon of a host, in namespaces of that host."""
        names = self._folder / "hosts"
        enter = f"hostname {host}; mount --bind {names} /etc/hosts; exec slurmd -D -N {host}"
        apart = ("unshare", "-u", "-m", "-p", "--fork", "--mount-proc")
        with (self._folder / f"{host}.out").open("ab") as output:
            self._hosts[host] = subprocess.Popen(
                [*self._inside(host), *apart, "sh", "-c", enter],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
            )

    def end_host(self, host: str) -> None:
        """Kills a host with all its processes, as a power cut does."""
        outer = self._hosts.pop(host)
        for inner in psutil.Process(outer.pid).children():  # pid 1 of the host
            inner.send_signal(signal.SIGKILL)
        outer.kill()
        outer.wait()

    def cut(self, host: str) -> None:
        """Disconnects a host from the network."""
        _run("ip", "link", "set", self._link(host), "down")

    def connect(self, host: str) -> None:
        """Connects it again."""
        _run("ip", "link", "set", self._link(host), "up")

    # ---- jobs ------------------------------------------------------------------------------------

    def run(self, *words: str, seconds: float = 60.0) -> str:
        """The output of a command of Slurm, run outside of the hosts, as on a login node."""
        return _run(*words, environment=self.environment, seconds=seconds)

    def sbatch(self, script: str, *words: str) -> int:
        """Submits a script; returns the job's id."""
        path = self._folder / f"job-{time.monotonic_ns()}.sh"
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        output = f"--output={self._folder}/job-%j.out"
        return int(self.run("sbatch", "--parsable", output, *words, str(path)))

    def output(self, job: int) -> str:
        """What a job has printed."""
        path = self._folder / f"job-{job}.out"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def state(self, job: int) -> str:
        """The state of a job, such as RUNNING."""
        shown = self.run("scontrol", "show", "job", str(job))
        match = re.search(r"JobState=(\w+)", shown)
        assert match, shown
        return match[1]

    def start_now(self, job: int) -> None:
        """Lets a requeued job start, for which Slurm itself waits two minutes. A job that does not
        start is shown with its hosts.
        """
        self.wait(lambda: self.state(job) == "PENDING", "the job is in the queue again")
        self.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        try:
            self.wait(lambda: self.state(job) != "PENDING", "the job has started again", 180.0)
        except AssertionError as error:
            said = self.run("scontrol", "show", "job", str(job)), self.run("sinfo", "-lN")
            raise AssertionError("\n".join((str(error), *said))) from None

    def on_host(
        self, host: str, *words: str, environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """The command that runs `words` on a host, as a user who has signed in there."""
        inner = psutil.Process(self._hosts[host].pid).children()[0].pid
        variables = {"PYTHONPATH": str(REPOSITORY), **(environment or {})}
        settings = [f"{name}={value}" for name, value in variables.items()]
        return ["nsenter", "--target", str(inner), "-n", "-u", "-m", "-p", "env", *settings, *words]

    def wait(self, condition: Callable[[], Any], awaited: str, seconds: float = 60.0) -> None:
        """Waits until `condition()` is true."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {awaited}"
            time.sleep(0.1)

    # ---- parts -----------------------------------------------------------------------------------

    @staticmethod
    def _prefix(number: int) -> str:
        return f"slurm-rig-{number}-"

    def _remove_remains(self) -> None:
        """Removes what a rig of this number has left when its session was killed."""
        for process in psutil.process_iter(["name"]):
            if process.info["name"] in ("munged", "slurmctld", "slurmd", "slurmstepd"):
                with contextlib.suppress(psutil.Error):
                    words = [*process.cmdline(), process.environ().get("SLURM_CONF", "")]
                    if any(self._prefix(self._number) in word for word in words):
                        process.kill()
        self._remove_network()

    def _remove_network(self) -> None:
        """The links too: without a namespace they stay until its last process has ended."""
        for link in (*map(self._link, HOSTS), self._bridge):
            if Path("/sys/class/net", link).exists():
                subprocess.run(["ip", "link", "del", link], check=False)
        for host in HOSTS:
            if Path("/run/netns", self._namespace(host)).exists():
                _run("ip", "netns", "del", self._namespace(host))

    def _write_files(self) -> None:
        for folder in (self._folder, self._folder / "munge"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
        (self._folder / "state").mkdir(mode=0o700)
        (self._folder / "munge" / "key").write_bytes(os.urandom(128))
        (self._folder / "munge" / "key").chmod(0o600)
        controller, first = platform.node(), 18_720 + 100 * self._number
        text = _CONFIGURATION.format(
            number=self._number,
            controller=controller,
            net=self._net,
            folder=self._folder,
            port=first,
        )
        names = ["127.0.0.1 localhost", f"{self._net}.254 {controller}"]
        for place, host in enumerate(HOSTS, 1):
            address = f"{self._net}.{place}"
            names.append(f"{address} {host}")
            text += (
                f"NodeName={host} NodeHostname={host} NodeAddr={address} Port={first + place}"
                " CPUs=2 RealMemory=8000 State=UNKNOWN\n"
            )
        self.configuration.write_text(text, encoding="utf-8")
        (self._folder / "hosts").write_text("\n".join(names) + "\n", encoding="utf-8")

    def _add_network(self, host: str, address: str) -> None:
        namespace, link = self._namespace(host), self._link(host)
        _run("ip", "netns", "add", namespace)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", namespace)
        _run("ip", "link", "add", link, *peer)
        _run("ip", "link", "set", link, "master", self._bridge, "up")
        _run("ip", "-n", namespace, "addr", "add", address, "dev", "eth0")
        _run("ip", "-n", namespace, "link", "set", "eth0", "up")
        _run("ip", "-n", namespace, "link", "set", "lo", "up")

    def _inside(self, host: str) -> list[str]:
        # Not `ip netns exec`, which mounts /sys anew, so that slurmd finds no cgroup.
        return ["nsenter", f"--net=/run/netns/{self._namespace(host)}"]

    def _namespace(self, host: str) -> str:
        return f"gan{self._number}{host}"

    def _link(self, host: str) -> str:
        return f"vgan{self._number}{host}"


_MUNGE_FILES = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def _run(
    *words: str, environment: Mapping[str, str] | None = None, seconds: float = _START_SECONDS
) -> str:
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def _end(pid_file: Path) -> None:
    """Ends the daemon with this pid file and waits for its exit."""
    if not pid_file.exists():
        return
    try:
        process = psutil.Process(int(pid_file.read_text(encoding="ascii")))
        process.terminate()
        process.wait(_END_SECONDS)
    except psutil.NoSuchProcess:
        return
