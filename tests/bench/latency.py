# SPDX-License-Identifier: BSL-1.0
"""From a worker's last instant to the parent's answer, beside an epoll loop on pidfds."""

import statistics

import measure

RUNS = 50  # in each round
PEERS = ["epoll", "cohort"]
SIZES = [1, 2, 8, 64]


def run(bench, facts, rounds, quick):
    del quick
    rounds = max(4, rounds)
    columns = ["", "median us", "p99 us", "worst us"]
    for size in SIZES:
        results = {peer: {"first_us": [], "last_us": []} for peer in PEERS}
        for _ in range(rounds):
            for peer in PEERS:
                one = bench.measure("latency", peer=peer, program=bench.program("stamper"), workers=size, runs=RUNS)
                for name, values in one.items():
                    results[peer][name] += values
        if size == 1:
            title = "A worker's exit to the line after co_await"
            rows = [row(peer, results[peer]["first_us"]) for peer in PEERS]
        else:
            facts["failure", size] = statistics.median(results["cohort"]["first_us"])
            title = f"A worker's failure to its siblings' handlers of SIGTERM, {size} workers"
            rows = [row(f"{peer}, the {which} sibling", results[peer][name])
                    for which, name in (("first", "first_us"), ("last", "last_us")) for peer in PEERS]
        measure.print_table(f"{title} ({rounds * RUNS} runs)", columns, rows)


def row(title, values):
    return [title, statistics.median(values), statistics.quantiles(values, n=100)[-1], max(values)]
