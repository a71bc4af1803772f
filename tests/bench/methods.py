# SPDX-License-Identifier: BSL-1.0
"""From the request to the inside of a function, by start method, beside Python's multiprocessing with the same."""

import json
import os
import statistics
import subprocess
import sys

import measure

METHODS = ["spawn", "fork", "forkserver"]
PARENTS = {"1 MiB": 1, "4 GiB": 4096}
PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "multiprocessing_peer.py")


def run(bench, facts, rounds, quick):
    for parent, memory in PARENTS.items():
        for workers in (1, 64):
            runs = max(1, (20 if workers == 1 else 2) // (4 if memory > 1 or quick else 1))
            compare(bench, facts, (parent, workers), memory, runs, rounds)


def compare(bench, facts, case, memory, runs, rounds):
    parent, workers = case
    mine, theirs = {method: [] for method in METHODS}, {method: [] for method in METHODS}
    for _ in range(rounds):
        for method in METHODS:
            mine[method] += bench.measure("methods", peer=method, workers=workers, runs=runs, memory=memory)["us"]
            theirs[method] += python(method, workers, max(1, runs // 4), memory)
    rows = []
    for method in METHODS:
        ours, other = statistics.median(mine[method]), statistics.median(theirs[method])
        rows.append([method, ours, min(mine[method]), max(mine[method]), other, f"{ours / other:.3f}"])
        facts["inside", method, case] = ours
    measure.print_table(f"us from request to inside, per worker, {workers} at a time, parent: {parent}",
                        ["", "cohort", "lowest", "highest", "Python", "cohort/Python"], rows)


def python(method, workers, runs, memory):
    done = subprocess.run([sys.executable, PYTHON, method, str(workers), str(runs), str(memory)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["us"]
