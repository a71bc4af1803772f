# SPDX-License-Identifier: BSL-1.0
"""Many commands, eight at a time: beside xargs -P, GNU parallel and a loop over Boost.Process."""

import os
import shutil
import subprocess
import time

import measure

AT_ONCE = 8


def run(bench, facts, rounds, quick):
    for commands in (300, 2_000 if quick else 10_000):
        one_size(bench, facts, rounds, commands)


def one_size(bench, facts, rounds, commands):
    def own(peer):
        return lambda: bench.measure("batch", peer=peer, program="/bin/true", commands=commands, at_once=AT_ONCE)

    peers = {"cohort": own("cohort"), "Boost.Process": own("boost"),
             "xargs -P8": lambda: other(["xargs", "-P", str(AT_ONCE), "-n", "1", "/bin/true"], commands)}
    if shutil.which("parallel"):
        peers["GNU parallel"] = lambda: other(["parallel", "--will-cite", "-j", str(AT_ONCE), "-n", "0", "/bin/true"],
                                              commands)
    results = {peer: [] for peer in peers}
    for _ in range(rounds):
        for peer, measured in peers.items():
            if peer == "GNU parallel" and len(results[peer]) == 3:
                continue  # it takes minutes
            results[peer].append(measured())
    rows = []
    for peer, all_rounds in results.items():
        ratio = measure.ratio(results["cohort"], all_rounds, "wall_s")
        rows.append([peer, f"{measure.median(all_rounds, 'wall_s'):.2f}", f"{measure.median(all_rounds, 'cpu_s'):.2f}",
                     f"{measure.median(all_rounds, 'kib') / 1024:.1f}", f"{ratio:.2f}"])
        facts["batch", f"wall / {peer}"] = ratio  # of the larger one in the end
        facts["batch", f"CPU / {peer}"] = measure.ratio(results["cohort"], all_rounds, "cpu_s")
    measure.print_table(f"{commands:,} times /bin/true, {AT_ONCE} at a time",
                        ["", "wall s", "CPU s", "MiB", "cohort/"], rows)


def other(command, commands):
    """Runs a program that reads one line for each command. The CPU time is its own and its children's."""
    begun = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    child.stdin.write(b"x\n" * commands)
    child.stdin.close()
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        raise RuntimeError(f"{command[0]}: status {status}")
    child.returncode = 0
    return {"wall_s": time.monotonic() - begun, "cpu_s": used.ru_utime + used.ru_stime, "kib": used.ru_maxrss}
