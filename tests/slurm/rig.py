#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs a program in a Slurm cluster of its own: rig.py [--nodes 2] PROGRAM [ARGUMENT...]

Starts slurmctld and one slurmd a node, all on this machine, in a scratch directory and on free ports; runs the
program by salloc on all nodes; ends what it has started. Exit code: the program's; 77 with a line "[skipped] ..." where
that can't be."""

import argparse
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds until all nodes are idle, or the controller has ended
SBIN = "/usr/sbin:/sbin"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)


def missing():
    """Why there can be no cluster here; empty: there can."""
    path = os.environ["PATH"]
    packages = {"slurmctld": "slurmctld", "slurmd": "slurmd", "salloc": "slurm-client", "scontrol": "slurm-client"}
    for tool, package in packages.items():
        if not shutil.which(tool, path=path):
            return f"{tool} is missing: Debian packages slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins " \
                   f"({package})"
    if os.geteuid() != 0:
        return "only root starts steps of other users, so slurmd needs it"
    return ""


def free_ports(count):
    """Ports that nobody listens on now."""
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Cluster:
    """Daemons that are children of this process; their files are in `place`."""

    def __init__(self, place, nodes):
        self.place = place
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.config = os.path.join(place, "slurm.conf")
        self.environment = {**os.environ, "SLURM_CONF": self.config}
        self.daemons = []

    def write_config(self):
        host = socket.gethostname().split(".")[0]
        controller, *ports = free_ports(1 + len(self.nodes))
        for name in ["state", *self.nodes]:
            os.makedirs(os.path.join(self.place, name))
        settings = {
            "ClusterName": "cohort",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": controller,
            "SlurmUser": "root",
            "SlurmdUser": "root",
            "AuthType": "auth/none",
            "CredType": "cred/none",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU",
            "MpiDefault": "none",
            "ReturnToService": 2,
            "SlurmdParameters": "config_overrides",
            "KillWait": 5,
            "SlurmdTimeout": 20,
            "SlurmctldTimeout": 20,
            "StateSaveLocation": os.path.join(self.place, "state"),
            "SlurmdSpoolDir": os.path.join(self.place, "%n"),
            "SlurmctldPidFile": os.path.join(self.place, "slurmctld.pid"),
            "SlurmdPidFile": os.path.join(self.place, "%n.pid"),
            "SlurmctldLogFile": os.path.join(self.place, "slurmctld.log"),
            "SlurmdLogFile": os.path.join(self.place, "%n.log"),
        }
        with open(self.config, "w", encoding="utf-8") as out:
            for name, value in settings.items():
                out.write(f"{name}={value}\n")
            for node, port in zip(self.nodes, ports):
                out.write(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 "
                          "Sockets=16 CoresPerSocket=1 ThreadsPerCore=1 State=UNKNOWN\n")
            out.write(f"PartitionName=all Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP "
                      "OverSubscribe=FORCE:4\n")

    def start(self):
        """Returns why it did not; empty: all nodes are idle."""
        self.write_config()
        self.run_daemon("slurmctld", "-D", "-c")
        for node in self.nodes:
            self.run_daemon("slurmd", "-D", "-N", node)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    return f"{daemon.args[0]} has ended: {self.last_words()}"
            states = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], env=self.environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.split()
            if states == ["idle"] * len(self.nodes):
                return ""
            time.sleep(0.1)  # the controller tells nobody
        return f"its nodes are not idle after {PATIENCE} s: {self.last_words()}"

    def run_daemon(self, *command):
        log = open(os.path.join(self.place, "daemons.log"), "ab")
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=log, start_new_session=True,
                                             preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)))
        log.close()

    def last_words(self):
        lines = []
        for name in sorted(os.listdir(self.place)):
            if name.endswith(".log"):
                with open(os.path.join(self.place, name), encoding="utf-8", errors="replace") as log:
                    lines += [f"{name}: {line}" for line in log.read().splitlines()[-10:]]
        return "\n".join(lines)

    def stop(self):
        """Ends all jobs, then the daemons."""
        subprocess.run(["scancel", "--user=root", "--signal=KILL"], env=self.environment, check=False, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def reap():
    """The children that slurmd has left: this process is their next parent."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def left(place):
    """The processes whose environment or words name the scratch directory."""
    reap()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as words:
                line = words.read()
                if int(pid) != os.getpid() and place.encode() in environ.read() + line:
                    found.append(f"{pid}: {line.replace(bytes(1), b' ').decode(errors='replace')}")
        except OSError:
            pass
    return found


def main():
    parser = argparse.ArgumentParser(description="Runs a program in a Slurm cluster of its own.")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    os.environ["PATH"] += ":" + SBIN
    if why := missing():
        print(f"[skipped] slurm: {why}")
        return 77
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SALLOC_", "SRUN_"))]:
        del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    place = tempfile.mkdtemp(prefix="slurm-of-cohort-")
    cluster = Cluster(place, asked.nodes)
    try:
        if why := cluster.start():
            print(f"slurm: {why}", file=sys.stderr)
            code = 1
        else:
            allocate = ["salloc", "-Q", f"--nodes={asked.nodes}", "--ntasks-per-node=1", "--no-kill"]
            code = subprocess.run([*allocate, *asked.command], env=cluster.environment, check=False).returncode
            if code != 0:
                print(cluster.last_words(), file=sys.stderr)
    finally:
        cluster.stop()
        until = time.monotonic() + PATIENCE
        while (rest := left(place)) and time.monotonic() < until:
            time.sleep(0.1)  # slurmstepd ends after its daemon
        shutil.rmtree(place, ignore_errors=True)
    if rest:
        print("slurm: left over:\n" + "\n".join(rest), file=sys.stderr)
    return code or len(rest)


if __name__ == "__main__":
    sys.exit(main())
