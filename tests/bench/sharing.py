# SPDX-License-Identifier: BSL-1.0
"""Queues, shared arrays and barriers, beside raw sockets, Boost.Interprocess and Python's multiprocessing."""

import os
import statistics
import sys

import measure

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "simple_queue_peer.py")
MIB = 1 << 20
METHODS = ["spawn", "fork", "forkserver"]


def run(bench, facts, rounds, quick):
    round_trips(bench, facts, rounds, quick)
    large_values(bench, facts, rounds, quick)
    one_way(bench, facts, rounds, quick)
    arrays(bench, facts, rounds, quick)
    laden_start(bench, facts, rounds, quick)
    late_loop(bench, facts, rounds, quick)
    broken_barrier(bench, facts, rounds, quick)
    idle(bench, facts, rounds, quick)
    memory(bench, facts)


def in_turn(peers, rounds):
    """Each peer is a function without arguments. A list of what it said in each round, by peer."""
    results = {name: [] for name in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            results[name].append(peer())
    return results


def python(*words):
    return measure.json_of([sys.executable, PYTHON, *words])


def rows_of(results, name, beside):
    """Median, lowest and highest round of each peer, and the ratio to each of the peers `beside`."""
    return [[peer, measure.median(mine, name), min(one[name] for one in mine), max(one[name] for one in mine)]
            + [f"{measure.ratio(mine, results[other], name):.2f}" for other in beside]
            for peer, mine in results.items()]


def round_trips(bench, facts, rounds, quick):
    count = 3_000 if quick else 10_000

    def trip(peer, **words):
        return lambda: bench.measure("round_trip", peer=peer, trips=count, **words)

    results = in_turn({
        "socket pair": trip("raw"),
        "Boost.Interprocess": trip("boost"),
        "Python SimpleQueue": lambda: python("trips", 64, count),
        "cohort": trip("cohort"),
        "cohort, parent awaits": trip("parent"),
        "cohort, array of 4 KiB": trip("array", bytes=4096),
        "cohort, array of 64 MiB": trip("array", bytes=64 * MIB),
    }, 3 * rounds)
    beside = ["socket pair", "Boost.Interprocess", "Python SimpleQueue", "cohort"]
    measure.print_table(f"us for a message of 64 bytes, there and back ({count:,} trips in a round)",
                        ["", "median", "lowest", "highest"] + [f"/{name}" for name in beside],
                        rows_of(results, "us", beside))
    for peer in beside[:3]:
        compare(facts, f"round trip / {peer}", results["cohort"], results[peer])
    compare(facts, "round trip, parent awaits", results["cohort, parent awaits"], results["socket pair"])
    compare(facts, "array", results["cohort, array of 64 MiB"], results["cohort"])


def compare(facts, what, mine, theirs):
    """Two processes that answer each other are several times as fast in rounds in which they share a core."""
    facts["sharing", what] = measure.ratio(mine, theirs, "us")
    facts["lowest", what] = min(one["us"] for one in mine) / min(one["us"] for one in theirs)


def large_values(bench, facts, rounds, quick):
    for size, count in ((1, 50 if quick else 200), (64, 2 if quick else 5)):
        results = in_turn({
            "Python SimpleQueue": lambda: python("trips", size * MIB, count),
            "cohort": lambda: bench.measure("round_trip", peer="cohort", bytes=size * MIB, trips=count),
        }, rounds)
        measure.print_table(f"us for {size} MiB by value, there and back ({count:,} trips in a round)",
                            ["", "median", "lowest", "highest", "/Python SimpleQueue"],
                            rows_of(results, "us", ["Python SimpleQueue"]))
        facts["sharing", f"{size} MiB"] = measure.ratio(results["cohort"], results["Python SimpleQueue"], "us")


def one_way(bench, facts, rounds, quick):
    count = 20_000 if quick else 200_000

    def stream(peer, times=1):
        return lambda: bench.measure("one_way", peer=peer, messages=count * times)

    results = in_turn({
        "socket pair": stream("raw"),
        "Boost.Interprocess": stream("boost", 10),
        "Python SimpleQueue": lambda: python("stream", count),
        "cohort, put and get": stream("cohort"),
        "cohort, put_all and get_some": stream("batches", 10),
    }, rounds)
    beside = ["socket pair", "Boost.Interprocess", "Python SimpleQueue"]
    measure.print_table(f"Messages of 64 bytes a second, one way ({count:,} in a round; ten times that of"
                        " Boost's and of put_all)",
                        ["", "median", "lowest", "highest"] + [f"/{name}" for name in beside],
                        rows_of(results, "per_s", beside))
    theirs = results["Python SimpleQueue"]
    facts["sharing", "one way"] = measure.ratio(theirs, results["cohort, put and get"], "per_s")
    facts["sharing", "one way, batches"] = measure.ratio(theirs, results["cohort, put_all and get_some"], "per_s")


def arrays(bench, facts, rounds, quick):
    count = 1_000 if quick else 5_000

    def make(peer):
        return lambda: bench.measure("arrays", peer=peer, bytes=4096, count=count)

    results = in_turn({"memory file": make("raw"), "cohort, file_descriptor": make("file_descriptor"),
                       "cohort, file_system": make("file_system")}, rounds)
    beside = ["memory file", "cohort, file_descriptor"]
    measure.print_table("us to make, touch and drop an array of 4 KiB", ["", "median", "lowest", "highest"]
                        + [f"/{name}" for name in beside], rows_of(results, "us", beside))
    facts["sharing", "file_system"] = measure.ratio(results["cohort, file_system"],
                                                    results["cohort, file_descriptor"], "us")


def laden_start(bench, facts, rounds, quick):
    runs = 50 if quick else 200
    results = in_turn({method: lambda method=method: bench.measure("laden_start", method=method, runs=runs)
                       for method in METHODS}, rounds)
    rows = []
    for method, mine in results.items():
        ratio = statistics.median(one["laden_us"] / one["bare_us"] for one in mine)
        rows.append([method, measure.median(mine, "bare_us"), measure.median(mine, "laden_us"), f"{ratio:.3f}"])
        facts["sharing", f"start, {method}"] = ratio
    measure.print_table("us from request to inside, one worker", ["", "without", "8 arrays, 2 queues", "ratio"], rows)


def late_loop(bench, facts, rounds, quick):
    trips = 5 if quick else 20
    load = {"peer": "cohort", "bytes": 64 * MIB, "trips": 1_000_000}
    results = in_turn({
        "cohort": lambda: bench.measure("late_loop", peer="cohort", bytes=64 * MIB, trips=trips),
        "(passes nothing)": lambda: bench.measure_beside(load, "round_trip", "late_loop", peer="nothing", ms=1000),
    }, rounds)
    measure.print_table("Lateness of a 1 ms ticker on the loop, us, while values of 64 MiB pass; the last line is a"
                        " loop\nthat passes nothing while two other processes pass the same",
                        ["", "99 %", "worst"],
                        [[peer, measure.median(mine, "late_p99_us"), measure.median(mine, "late_us")]
                         for peer, mine in results.items()])
    facts["sharing", "late"] = measure.median(results["cohort"], "late_p99_us")
    facts["sharing", "late, nothing"] = measure.median(results["(passes nothing)"], "late_p99_us")


def broken_barrier(bench, facts, rounds, quick):
    runs = 30 if quick else 100
    results = in_turn({
        "their first exception": lambda: bench.measure("broken_barrier", runs=runs, thrown=0),
        "they have thrown before": lambda: bench.measure("broken_barrier", runs=runs, thrown=1),
    }, rounds)
    rows = []
    for which, mine in results.items():
        us = [one for result in mine for one in result["us"]]
        rows.append([which, statistics.median(us), statistics.quantiles(us, n=100, method="inclusive")[-1], max(us)])
    measure.print_table(f"A barrier's party is killed: us until the last of the three others has thrown"
                        f" ({rounds * runs} runs)", ["", "median", "99 %", "worst"], rows)
    facts["sharing", "barrier"], facts["sharing", "barrier, 99 %"] = rows[0][1:3]
    facts["sharing", "barrier, thrown before"] = rows[1][1]


def idle(bench, facts, rounds, quick):
    rounds = 1 if quick else max(1, rounds // 3)
    rows = []
    for waits, title in (("get", "get"), ("put", "put"), ("bounded_put", "put, bounded queue")):
        for how in ("blocking", "awaited"):
            results = [bench.measure("idle_queue", waits=waits, how=how, idle_ms=2000) for _ in range(rounds)]
            wakes, cpu = measure.median(results, "wakes_per_s"), measure.median(results, "cpu_ms")
            rows.append([f"{title}, {how}", wakes, f"{cpu:.2f}"])
            facts["sharing", f"idle {waits}"] = max(wakes, facts.get(("sharing", f"idle {waits}"), 0))
            facts["sharing", f"idle {waits}, CPU"] = max(cpu, facts.get(("sharing", f"idle {waits}, CPU"), 0))
    measure.print_table("What waits, 2 idle seconds", ["", "wake-ups a second", "CPU ms"], rows)


def memory(bench, facts):
    rows = []
    for what in ("array", "file_system_array", "queue", "bounded_queue"):
        each = bench.measure("sharing_memory", what=what, count=1000)
        rows.append([what.replace("_", " "), each["bytes"], each["handle"], each["descriptors"]])
        facts["sharing", f"memory, {what}"] = each["bytes"]
        facts["sharing", f"descriptors, {what}"] = each["descriptors"]
    measure.print_table("What each costs the process that makes it",
                        ["", "bytes from malloc", "of which the handle", "descriptors"], rows)
