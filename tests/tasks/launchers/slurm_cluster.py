"""A real Slurm of one node: munged, slurmctld and slurmd started by hand, with folders, key and ports of their own.

Nothing of it touches a Slurm that this machine may belong to: clients find it by SLURM_CONF alone.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from tasks.servers.processes import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol", "squeue", "sinfo")
SECONDS = 30
"""What a daemon has to start or to end."""
CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
# the second number is also what a requeued job waits before it may start again: 120 s unless told, 5 at least
AuthInfo=socket={folder}/munge.socket,cred_expire=5
AuthType=auth/munge
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=20
# what a client waits for a controller that is down
MessageTimeout=5
SlurmdParameters=config_overrides
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=1000 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=tests Nodes=ALL Default=YES MaxTime=INFINITE State=UP GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def missing() -> str | None:
    """Why a cluster cannot be started here; None where it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "Slurm's daemons start as root, on Linux"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (Debian: apt-get install slurm-wlm munge)" if absent else None


class Cluster:
    """Runs while it is entered; `configuration` is what SLURM_CONF has to say."""

    def __enter__(self) -> Self:
        # a socket's path may have a hundred characters: not pytest's folder
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0],
                folder=self.folder,
                controller_port=free_port(),
                node_port=free_port(),
            ),
            encoding="utf-8",
        )
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        try:
            self._start_munge(key)
            self.start_controller()
            self._start("slurmd", "-D", "-f", str(self.configuration))
            self._wait(self._idle, "the node to be idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if "slurmctld" in self._daemons:
            self._ask("scancel", "--user=root", "--signal=KILL", "--full")
            self._ask("scancel", "--user=root")
            deadline = time.monotonic() + SECONDS
            while self._ask("squeue", "--noheader") and time.monotonic() < deadline:
                time.sleep(0.05)
        for name in ("slurmd", "slurmctld", "munged"):
            self._end(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_controller(self) -> None:
        """Start slurmctld, with whatever it knew when it was stopped."""
        self._start("slurmctld", "-D", "-f", str(self.configuration))

    def stop_controller(self) -> None:
        """End slurmctld: jobs go on, and no client gets an answer."""
        self._end("slurmctld")

    def _start_munge(self, key: Path) -> None:
        paths = {
            "--socket": self.folder / "munge.socket",
            "--key-file": key,
            "--pid-file": self.folder / "munged.pid",
            "--log-file": self.folder / "munged.log",
            "--seed-file": self.folder / "munge.seed",
        }
        self._start("munged", "--foreground", "--force", *(f"{option}={path}" for option, path in paths.items()))
        self._wait((self.folder / "munge.socket").exists, "munged's socket")

    def _start(self, name: str, *arguments: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [name, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "SLURM_CONF": str(self.configuration)},
                start_new_session=True,
            )

    def _end(self, name: str) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon is None:
            return
        daemon.terminate()
        try:
            daemon.wait(SECONDS)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _idle(self) -> bool:
        return self._ask("sinfo", "--noheader", "--format=%t").strip() == "idle"

    def _ask(self, *command: str) -> str:
        environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS).stdout

    def _wait(self, reached: object, what: str) -> None:
        assert callable(reached)
        deadline = time.monotonic() + SECONDS
        while not reached():
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in self._daemons.values()):
                said = {path.name: path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.out")}
                raise RuntimeError(f"waited in vain for {what}: {said}")
            time.sleep(0.05)
