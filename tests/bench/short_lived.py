# SPDX-License-Identifier: BSL-1.0
"""Children that end at once: wall time, system calls and how late the user's loop was."""

import collections

import measure

PEERS = ["posix_spawn", "clone", "boost", "libuv", "cohort"]
PARENTS = {
    "small": {},
    "1 GiB touched": {"memory": 1024},
    "10,000 descriptors": {"descriptors": 10000},
}
COLUMNS = ["", "us/child", "lowest", "highest", "/posix_spawn", "/cohort", "CPU us", "late us", "late p99"]


def run(bench, facts, rounds, quick):
    programs = {"/bin/true": "/bin/true", "static": bench.program("exits_at_once")}
    print("\nus/child  wall time: the median over rounds, the lowest and the highest round"
          "\n/peer     the median of each round's ratio"
          "\nCPU us    of this process and the child together"
          "\nlate us   how late a 1 ms ticker on the peer's loop was at worst: the median over rounds, and its 99 %;"
          "\n          the last line is a loop that starts nothing while another process starts the same by posix_spawn")
    for parent, size in PARENTS.items():
        for name, program in programs.items():
            for at_once in (1, 64):
                total = 64 if "memory" in size else 256 if quick else 1024
                words = {"program": program, "at_once": at_once, "waves": total // at_once, **size}
                compare(bench, facts, (parent, name, at_once), words, rounds)
    for parent, size in PARENTS.items():
        if not (quick and size):
            system_calls(bench, facts, parent, {"program": programs["static"], **size})


def compare(bench, facts, case, words, rounds):
    """In each round every peer has its turn, in a process of its own."""
    results, quiet = collections.defaultdict(list), []
    for turn in range(rounds):
        for peer in PEERS[turn % len(PEERS):] + PEERS[:turn % len(PEERS)]:
            results[peer].append(bench.measure("short_lived", peer=peer, ticker=1, **words))
        quiet.append(quiet_loop(bench, words))
    rows = []
    for peer in PEERS:
        mine = results[peer]
        walls = [result["wall_us"] for result in mine]
        rows.append([
            peer,
            measure.median(mine, "wall_us"), min(walls), max(walls),
            f"{measure.ratio(mine, results['posix_spawn'], 'wall_us'):.2f}",
            f"{measure.ratio(mine, results['cohort'], 'wall_us'):.2f}",
            measure.median(mine, "cpu_us"), measure.median(mine, "late_us"), measure.median(mine, "late_p99_us"),
        ])
    rows.append(["(starts nothing)"] + [None] * 6
                + [measure.median(quiet, "late_us"), measure.median(quiet, "late_p99_us")])
    parent, name, at_once = case
    measure.print_table(f"{name}, {at_once} at a time, parent: {parent}", COLUMNS, rows)
    facts["late", "nobody", case] = measure.median(quiet, "late_p99_us")
    for peer in PEERS:
        facts["late", peer, case] = measure.median(results[peer], "late_p99_us")
        facts["ratio", peer, case] = measure.ratio(results["cohort"], results[peer], "wall_us")
        facts["lowest", peer, case] = (min(result["wall_us"] for result in results["cohort"])
                                       / min(result["wall_us"] for result in results[peer]))
        facts["floor", peer, case] = measure.ratio(results["clone"], results[peer], "wall_us")


def quiet_loop(bench, words):
    """What of the lateness is the machine's: a loop that starts nothing while another process starts the same."""
    load = {"peer": "posix_spawn", "program": words["program"], "at_once": words["at_once"], "waves": 1000000}
    return bench.measure_beside(load, "short_lived", "short_lived", peer="nothing", program="-", waves=200, at_once=1,
                                ticker=1)


def system_calls(bench, facts, parent, words):
    waves = {1: 16, 64: 1} if "memory" in words else {1: 64, 64: 2}  # forking much memory is slow
    counted = {at_once: {peer: bench.calls_per_child(waves[at_once], at_once, peer=peer, **words) for peer in PEERS}
               for at_once in (1, 64)}
    rows = [[peer] + [sum(counted[at_once][peer].values()) for at_once in (1, 64)] for peer in PEERS]
    measure.print_table(f"System calls of the parent per child, parent: {parent}",
                        ["", "1 at a time", "64 at a time"], rows)
    for at_once in (1, 64):
        facts["calls", parent, at_once] = sum(counted[at_once]["cohort"].values())
    ones, many = counted[1]["cohort"], counted[64]["cohort"]
    names = sorted(ones.keys() | many.keys(), key=lambda name: -ones[name])
    measure.print_table(f"cohort's by name, parent: {parent}", ["", "1 at a time", "64 at a time"],
                        [[name, f"{ones[name]:.2f}", f"{many[name]:.2f}"] for name in names])
