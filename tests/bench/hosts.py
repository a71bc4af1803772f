# SPDX-License-Identifier: BSL-1.0
"""Groups on hosts whose agents are this machine's, beside the same groups without hosts."""

import statistics

import measure
import sharing

HOSTS, WORKERS = 64, 16


def run(bench, facts, rounds, quick):
    start(bench, facts, rounds, 10 if quick else 30)
    failure(bench, facts, rounds, 20 if quick else 100)
    lines(bench, facts, rounds, 200_000_000 if quick else 1_000_000_000)
    reach(bench, facts, rounds)
    idle(bench, facts, 1 if quick else 3)


def start(bench, facts, rounds, runs):
    def once(hosts):
        return lambda: bench.measure("hosts_start", hosts=hosts, workers=WORKERS, runs=runs)

    results = sharing.in_turn({"a local group": once(0), "one host": once(1), "two hosts": once(2)}, rounds)
    times = {where: [{"us": statistics.median(one["us"])} for one in mine] for where, mine in results.items()}
    measure.print_table(f"us to start and join {WORKERS} functions that end at once, agents there"
                        f" ({rounds * runs} runs)",
                        ["", "median", "lowest", "highest", "/local"],
                        sharing.rows_of(times, "us", ["a local group"]))
    facts["hosts", "start"] = measure.ratio(times["two hosts"], times["a local group"], "us")
    one_host = measure.ratio(times["one host"], times["a local group"], "us")
    facts["remark", "hosts", "start"] = f"one host: {one_host:.2f}"


def failure(bench, facts, rounds, runs):
    for how, name in (("exit", "A command that fails"), ("throw", "A function that throws")):
        def once(hosts, how=how):
            return lambda: bench.measure("hosts_failure", hosts=hosts, how=how, program=bench.program("stamper"),
                                         runs=runs)

        results = sharing.in_turn({"a sibling in a local group": once(0), "a worker on another host": once(2)}, rounds)
        us = {where: [value for one in mine for value in one["us"]] for where, mine in results.items()}
        measure.print_table(f"{name}: us until SIGTERM's handler in the other worker ({rounds * runs} runs)",
                            ["", "median", "99 %", "worst"], [[where, *spread(values)] for where, values in us.items()])
        local, far = (spread(values) for values in us.values())
        facts["hosts", f"failure, {how}"] = far[0]
        facts["remark", "hosts", f"failure, {how}"] = f"99 %: {far[1]:,.0f}, a local group: {local[0]:,.0f}"


def spread(us):
    return [statistics.median(us), statistics.quantiles(us, n=100, method="inclusive")[-1], max(us)]


def lines(bench, facts, rounds, size):
    def once(hosts):
        return lambda: bench.measure("hosts_lines", hosts=hosts, program=bench.program("writes_lines"), bytes=size)

    results = sharing.in_turn({"a local worker": once(0), "a worker on a host": once(1)}, rounds)
    local, far = results.values()
    measure.print_table(f"One worker writes {size / 1e6:,.0f} MB of 64-byte lines, read by output_batch()",
                        ["", "MB/s", "lowest", "highest", "/local", "reader's CPU s"],
                        [row + [f"{measure.median(results[row[0]], 'cpu_s'):.2f}"]
                         for row in sharing.rows_of(results, "mb_s", ["a local worker"])])
    facts["hosts", "lines"] = 1 / measure.ratio(far, local, "mb_s")
    facts["remark", "hosts", "lines"] = f"{measure.median(far, 'mb_s'):,.0f} MB/s over the link"


def reach(bench, facts, rounds):
    def once(peer):
        return lambda: bench.measure("hosts_reach", peer=peer, count=HOSTS)

    results = sharing.in_turn({"posix_spawn, until all have ended": once("posix_spawn"),
                               "functions by spawn, start to join": once("group"),
                               "hosts, until all are reached": once("hosts")}, rounds)
    posix_spawn, group, hosts = results.values()
    measure.print_table(f"ms for {HOSTS} starts of this program",
                        ["", "median", "lowest", "highest", "/functions", "until they are left"],
                        [row + [measure.median(results[row[0]], "gone_ms") or None]
                         for row in sharing.rows_of(results, "up_ms", ["functions by spawn, start to join"])])
    facts["hosts", "reach"] = measure.ratio(hosts, group, "up_ms")
    facts["remark", "hosts", "reach"] = f"posix_spawn: {measure.ratio(hosts, posix_spawn, 'up_ms'):.2f}"


def idle(bench, facts, rounds):
    seconds = 10
    used = [bench.measure("hosts_idle", hosts=HOSTS, idle_ms=1000 * seconds) for _ in range(rounds)]
    rows = [[title, measure.median(used, f"{which}_wakes") / seconds,
             f"{100 * measure.median(used, f'{which}_cpu'):.3f}"]
            for which, title in (("origin", "the origin"), ("agents", "all agents"))]
    measure.print_table(f"{HOSTS} idle hosts for {seconds} s", ["", "wake-ups a second", "% of a CPU"], rows)
    facts["hosts", "idle"] = 100 * measure.median(used, "origin_cpu")
    facts["remark", "hosts", "idle"] = f"all agents: {100 * measure.median(used, 'agents_cpu'):.2f} %"
