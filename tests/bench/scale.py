# SPDX-License-Identifier: BSL-1.0
"""Thousands of live workers in one group, beside raw children with a pidfd each."""

import measure

WORKERS = 5000
ROWS = {
    "resident": "memory of the parent per worker, bytes resident",
    "allocated": "memory of the parent per worker, bytes from malloc",
    "descriptors": "descriptors of the parent per worker",
    "start_ms": "start all, ms",
    "idle_cpu_ms": "CPU of the parent in 2 idle seconds, ms",
    "stop_ms": "stop and reap all, ms",
}


def run(bench, facts, rounds, quick):
    del quick
    rounds = max(1, rounds // 3)
    results = {"raw": [], "cohort": []}
    for _ in range(rounds):
        for peer, mine in results.items():
            mine.append(bench.measure("scale", peer=peer, program=bench.program("pauses"), workers=WORKERS,
                                      idle_ms=2000))
    rows = [[title] + [f"{measure.median(results[peer], name):,.1f}" for peer in results]
            + [f"{measure.ratio(results['cohort'], results['raw'], name):.2f}"
               if measure.median(results["raw"], name) > 0 else "-"]
            for name, title in ROWS.items()]
    for name in ROWS:
        facts["scale", name] = measure.median(results["cohort"], name)
    measure.print_table(f"{WORKERS:,} live workers", ["", *results, "cohort/raw"], rows)
