# SPDX-License-Identifier: BSL-1.0
"""Calls to warm workers, beside a pair of sockets, Python's ProcessPoolExecutor, loky and a process for each."""

import os
import statistics
import subprocess
import sys

import measure
import sharing

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pool_peer.py")
EXECUTOR = "ProcessPoolExecutor"
WORKERS, IN_FLIGHT = 4, 64


def run(bench, facts, rounds, quick):
    python, has_loky = interpreter()
    if not has_loky:
        print("\nloky is left out: install the Debian package python3-joblib")
    peers = {EXECUTOR: "pool"} | ({"loky": "loky"} if has_loky else {})
    round_trips(bench, facts, rounds, quick, python, peers)
    rate(bench, facts, rounds, quick, python, peers)
    large_values(bench, facts, rounds, quick)
    late(bench, facts, rounds, quick)
    crashes(bench, facts, rounds, quick)
    idle(bench, facts)


def interpreter():
    """One for all pools of Python, and whether it has loky."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import joblib"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python, True
    return sys.executable, False


def compare(facts, what, mine, theirs):
    """As for queues: when two processes share a core, they answer each other several times as fast."""
    facts["pool", what] = measure.ratio(mine, theirs, "us")
    facts["lowest of pool", what] = min(one["us"] for one in mine) / min(one["us"] for one in theirs)


def print_times(title, results, beside, *names):
    rows = [row + [measure.median(results[row[0]], name) for name in names]
            for row in sharing.rows_of(results, "us", beside)]
    measure.print_table(title, ["", "median", "lowest", "highest"] + [f"/{name}" for name in beside]
                        + ["99 %" for _ in names], rows)


def round_trips(bench, facts, rounds, quick, python, peers):
    count = 2_000 if quick else 10_000

    def trip(peer, count=count):
        return lambda: bench.measure("round_trip", peer=peer, trips=count)

    def theirs(peer):
        return lambda: measure.json_of([python, PYTHON, "trips", peer, 64, count])

    results = sharing.in_turn({"socket pair": trip("pool_raw")} | {name: theirs(peer) for name, peer in peers.items()}
                              | {"a process for each": trip("process", count // 20), "cohort": trip("pool")},
                              3 * rounds)
    print_times(f"us for a call with 64 bytes and back, one worker ({count:,} calls in a round)", results,
                [name for name in results if name != "cohort"], "p99_us")
    facts["pool", "us"] = measure.median(results["cohort"], "us")
    facts["pool", "99 %"] = measure.median(results["cohort"], "p99_us")
    for peer in results:
        if peer != "cohort":
            compare(facts, f"call / {peer}", results["cohort"], results[peer])


def rate(bench, facts, rounds, quick, python, peers):
    count = 5_000 if quick else 20_000

    def theirs(peer):
        return lambda: measure.json_of([python, PYTHON, "rate", peer, WORKERS, IN_FLIGHT, count])

    results = sharing.in_turn({name: theirs(peer) for name, peer in peers.items()} | {
        "cohort": lambda: bench.measure("pool_rate", workers=WORKERS, in_flight=IN_FLIGHT, calls=5 * count)}, rounds)
    print_times(f"us for each call, {WORKERS} workers, {IN_FLIGHT} calls in flight ({count:,} calls in a round, five"
                " times that of cohort's)", results, list(peers))
    facts["pool", "us each"] = measure.median(results["cohort"], "us")
    for peer in peers:
        compare(facts, f"us each / {peer}", results["cohort"], results[peer])


def large_values(bench, facts, rounds, quick):
    count = 100 if quick else 500
    results = sharing.in_turn({
        "memory file": lambda: bench.measure("round_trip", peer="pool_raw", bytes=1_000_000, trips=count),
        "cohort": lambda: bench.measure("round_trip", peer="pool", bytes=1_000_000, trips=count),
    }, rounds)
    print_times(f"us for a call with 1 MB and back ({count:,} calls in a round)", results, ["memory file"], "p99_us")
    compare(facts, "1 MB", results["cohort"], results["memory file"])


def late(bench, facts, rounds, quick):
    words = {"pauses": bench.program("pauses"), "bytes": 100_000_000}
    joins = 100 if quick else 300
    load = words | {"peer": "cohort", "joins": 1_000_000}
    results = sharing.in_turn({
        "cohort": lambda: bench.measure("pool_late", peer="cohort", joins=joins, **words),
        "(no pool)": lambda: bench.measure_beside(load, "pool_late", "pool_late", peer="nothing", joins=joins, **words),
    }, rounds)
    rows = [spread(peer, mine, "late_us") for peer, mine in results.items()]
    measure.print_table("us that join(10 ms) is late beside calls with 100 MB, of another process in the last line",
                        ["", "median", "99 %", "worst"], rows)
    facts["pool", "late"], facts["pool", "late, no pool"] = rows[0][2], rows[1][2]


def crashes(bench, facts, rounds, quick):
    runs = 10 if quick else 30
    for signal, name in ((9, "SIGKILL"), (11, "SIGSEGV")):
        results = sharing.in_turn({
            "groups": lambda: bench.measure("pool_crash", peer="group", runs=runs, signal=signal),
            "cohort": lambda: bench.measure("pool_crash", peer="pool", runs=runs, signal=signal),
        }, rounds)
        rows = []
        for which, title in (("told_us", "to the exception"), ("next_us", "to the next call")):
            theirs, mine = (spread(f"{peer}: {title}", results[peer], which) for peer in results)
            rows += [theirs, mine]
            facts["pool", f"{name}, {which}"] = mine[1] / theirs[1]
        measure.print_table(f"us from a worker's death by {name} ({runs * rounds} runs)",
                            ["", "median", "99 %", "worst"], rows)


def spread(title, results, name):
    us = [one for result in results for one in result[name]]
    return [title, statistics.median(us), statistics.quantiles(us, n=100, method="inclusive")[-1], max(us)]


def idle(bench, facts):
    used = bench.measure("pool_idle", workers=WORKERS, idle_ms=2000)
    measure.print_table(f"A pool of {WORKERS} idle workers for 2 s", ["", "wake-ups", "CPU ms"],
                        [["cohort", used["wakes"], f"{used['cpu_ms']:.3f}"]])
    facts["pool", "wakes"], facts["pool", "CPU"] = used["wakes"], used["cpu_ms"]
