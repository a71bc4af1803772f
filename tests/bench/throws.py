# SPDX-License-Identifier: BSL-1.0
"""A throw that is caught, in a worker and in the host, by the depth of the stack that it unwinds."""

import statistics

import measure


def run(bench, facts, rounds, quick):
    count = 100_000 if quick else 1_000_000
    rows = []
    for depth in (1, 5, 20, 60):
        ns = {"host": [], "worker": []}
        for _ in range(rounds):
            for peer in ns:
                ns[peer].append(bench.measure("throws", peer=peer, throws=count, depth=depth)["ns"])
        host, worker = statistics.median(ns["host"]), statistics.median(ns["worker"])
        rows.append([f"{depth} calls deep", host, worker, f"{worker / host:.2f}"])
    measure.print_table(f"ns for a throw that is caught, {count:,} of them",
                        ["", "host", "worker", "worker/host"], rows)
