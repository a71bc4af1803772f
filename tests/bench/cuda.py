# SPDX-License-Identifier: BSL-1.0
"""Arrays on a CUDA device: handed to another process, beside a copy through the memory of the host."""

import measure

MIB = 1 << 20
PEERS = {"copy through the host": "host", "cohort, a new array": "fresh", "cohort, the same array": "kept"}


def run(bench, facts, rounds, quick):
    if "why_not" in bench.measure("device", peer="kept", bytes=2 * MIB, trips=1):
        print("\nNo CUDA device: the section cuda has nothing to measure.")
        return
    for size in (2, 1024):
        count = 200 // size + (5 if quick else 20)
        results = {name: [] for name in PEERS}
        for _ in range(rounds):
            for name, peer in PEERS.items():
                results[name].append(bench.measure("device", peer=peer, bytes=size * MIB, trips=count))
        theirs = results["copy through the host"]
        rows = [[name, measure.median(mine, "us"), f"{measure.ratio(mine, theirs, 'us'):.4f}"]
                for name, mine in results.items()]
        measure.print_table(f"us until another process has read {size} MiB's last byte on CUDA device 0"
                            f" ({count:,} times in a round)", ["", "median", "/copy through the host"], rows)
