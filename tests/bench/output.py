# SPDX-License-Identifier: BSL-1.0
"""What workers print: passed on with tags, read as lines, captured; beside splice(2), GNU parallel, Boost.Process v2
and torch's TailLog."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure
import sharing

TAIL_FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tail_files_peer.py")
WORKERS = 4
ABOUT_TEE = """\
parent's CPU  user and system seconds of the process that passes the lines on, all its threads, without its children
/peer         the median of each round's ratio of the parent's CPU"""


def run(bench, facts, rounds, quick):
    size = 100_000_000 if quick else 1_000_000_000
    tagged_tee(bench, facts, rounds, size)
    read_lines(bench, facts, rounds, size)
    lines_here(bench, facts, rounds)
    unread_lines(bench, facts, rounds, size)
    with tempfile.TemporaryDirectory() as directory:
        starts(bench, facts, rounds, 200 if quick else 1000, directory)
        file_alone(bench, facts, quick, directory)
    punctual(bench, facts, rounds, 200 if quick else 400)
    told(bench, facts, rounds, 50 if quick else 200)


def megabytes(size):
    return f"{size / 1e9:g} GB" if size >= 1e9 else f"{size / 1e6:g} MB"


def tagged_tee(bench, facts, rounds, size):
    def tee(peer):
        return lambda: bench.measure("tee", peer=peer, program=writer(bench), workers=WORKERS, bytes=size)

    peers = {"splice, no tags": tee("splice"), "cohort, console": tee("console"), "cohort, file": tee("file"),
             "Boost.Process": tee("boost"), "torch's TailLog": lambda: tail_files(bench, size)}
    if shutil.which("parallel"):
        peers["GNU parallel"] = lambda: parallel(bench, size)
    results = sharing.in_turn(peers, rounds)
    rows = []
    for peer, mine in results.items():
        cpus = [one["cpu_s"] for one in mine]
        rows.append([peer] + [f"{value:.2f}" for value in (statistics.median(cpus), min(cpus), max(cpus))]
                    + [f"{measure.median(mine, 'wall_s'):.2f}", measure.median(mine, "mb_s")]
                    + [f"{measure.ratio(mine, results[other], 'cpu_s'):.2f}"
                       for other in ("splice, no tags", "cohort, console")])
    measure.print_table(f"{WORKERS} workers write {megabytes(size)} of 64-byte lines, 4 KiB a write; each line goes to"
                        f" /dev/null with a tag\n\n{ABOUT_TEE}",
                        ["", "parent's CPU", "lowest", "highest", "wall s", "MB/s", "/splice", "/console"], rows)
    if "GNU parallel" not in peers:
        print("\n  GNU parallel: not measured, because there is no program `parallel` (Debian package parallel)")
    for mine in ("console", "file"):
        for peer in results:
            if not peer.startswith("cohort"):
                name = "splice" if peer.startswith("splice") else peer
                compare(facts, f"tee, {mine} / {name}", results[f"cohort, {mine}"], results[peer], "cpu_s")


def writer(bench):
    return bench.program("writes_lines")


def tail_files(bench, size):
    return measure.json_of([sys.executable, TAIL_FILES, writer(bench), WORKERS, size])


def parallel(bench, size):
    """The CPU time is its own: /proc tells it apart from its workers' while it is a zombie."""
    command = ["parallel", "--will-cite", "--tag", "--line-buffer", "-j", str(WORKERS), writer(bench),
               str(size // WORKERS), ":::", *map(str, range(WORKERS))]
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    wall = time.perf_counter() - begun
    with open(f"/proc/{child.pid}/stat", encoding="utf-8") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    if child.wait() != 0:
        raise RuntimeError(f"parallel: exit code {child.returncode}")
    return {"cpu_s": (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"), "wall_s": wall, "mb_s": size / wall / 1e6}


def compare(facts, name, mine, theirs, what):
    facts["output", name] = measure.ratio(mine, theirs, what)
    lowest = min(one[what] for one in mine) / min(one[what] for one in theirs)
    facts["remark", name] = f"of the lowest rounds: {lowest:.2f}"


def read_lines(bench, facts, rounds, size):
    def read(how):
        return lambda: bench.measure("worker_lines", how=how, program=writer(bench), workers=WORKERS, bytes=size)

    results = sharing.in_turn({"a full buffer blocks": read("block"), "it drops the oldest": read("drop")}, rounds)
    measure.print_table(f"{WORKERS} workers write {megabytes(size)} of 64-byte lines, read by output_batch()",
                        ["", "MB/s", "lowest", "highest", "parent's CPU s", "lines a batch", "% lost"],
                        [[how, measure.median(mine, "mb_s"), min(one["mb_s"] for one in mine),
                          max(one["mb_s"] for one in mine), f"{measure.median(mine, 'cpu_s'):.2f}",
                          measure.median(mine, "lines"), 100 * measure.median(mine, "lost")]
                         for how, mine in results.items()])
    per_second = measure.median(results["a full buffer blocks"], "mb_s")
    facts["output", "lines"] = 1000 / per_second
    facts["remark", "lines"] = f"{per_second:,.0f} MB/s"


def lines_here(bench, facts, rounds):
    size = 10_000_000

    def read(how):
        return lambda: bench.measure("worker_lines", how=how, program=writer(bench), workers=WORKERS, bytes=size)

    results = sharing.in_turn({"output()": read("here"), "output_batch()": read("here in batches")}, rounds)
    measure.print_table(f"Lines of 64 bytes that are here, {megabytes(size)} of them, read by a coroutine",
                        ["", "us a line", "lowest", "highest"],
                        [[how, f"{measure.median(mine, 'us_a_line'):.3f}", f"{min(one['us_a_line'] for one in mine):.3f}",
                          f"{max(one['us_a_line'] for one in mine):.3f}"] for how, mine in results.items()])
    facts["output", "line"] = measure.median(results["output()"], "us_a_line")
    facts["remark", "line"] = f"in batches: {measure.median(results['output_batch()'], 'us_a_line'):.3f}"


def unread_lines(bench, facts, rounds, size):
    def write(how, formatted):
        return lambda: bench.measure("worker_lines", how=how, program=writer(bench), bytes=size, formatted=formatted)

    ways = {"/dev/null": "null", "a pipe, read by splice": "splice", "lines(), which nobody reads": "nobody"}
    rows = []
    for formatted in (0, 1):
        results = sharing.in_turn({to: write(how, formatted) for to, how in ways.items()}, rounds)
        null, splice, nobody = results.values()
        for to, mine in results.items():
            rows.append([f"{to}{', by snprintf' if formatted else ''}", f"{measure.median(mine, 'worker_s'):.3f}",
                         f"{measure.ratio(mine, null, 'worker_s'):.2f}",
                         f"{measure.ratio(mine, splice, 'worker_s'):.2f}", f"{measure.median(mine, 'cpu_s'):.3f}"])
        name = "unread, formatted" if formatted else "unread"
        facts["output", name] = measure.ratio(nobody, null, "worker_s")
        facts["remark", name] = f"a pipe read by splice: {measure.ratio(splice, null, 'worker_s'):.2f}"
    measure.print_table(f"One worker writes {megabytes(size)} of 64-byte lines, 4 KiB a write: its own time",
                        ["", "worker's s", "/null", "/splice", "parent's CPU s"], rows)


def starts(bench, facts, rounds, count, directory):
    def start(peer):
        return lambda: bench.measure("stream_starts", peer=peer, program="/bin/true", starts=count, directory=directory)

    results = sharing.in_turn({"inherited": start("inherit"), "two files": start("files"),
                               "two captures": start("captures"), "Boost.Process, two pipes": start("boost")}, rounds)
    files, captures, boost = (results[name] for name in ("two files", "two captures", "Boost.Process, two pipes"))
    measure.print_table(f"us for each start of /bin/true, one at a time, to its outcome ({count} in a round)",
                        ["", "wall", "lowest", "highest", "/Boost", "- files", "parent's CPU", "- files"],
                        [[peer, measure.median(mine, "wall_us"), min(one["wall_us"] for one in mine),
                          max(one["wall_us"] for one in mine), f"{measure.ratio(mine, boost, 'wall_us'):.2f}",
                          more(mine, files, "wall_us"), measure.median(mine, "cpu_us"), more(mine, files, "cpu_us")]
                         for peer, mine in results.items()])
    facts["output", "start, wall"] = more(captures, files, "wall_us")
    facts["output", "start, CPU"] = more(captures, files, "cpu_us")
    compare(facts, "start / Boost.Process", captures, boost, "wall_us")
    compare(facts, "start / Boost.Process, CPU", captures, boost, "cpu_us")


def more(mine, others, name):
    return statistics.median(one[name] - other[name] for one, other in zip(mine, others))


def file_alone(bench, facts, quick, directory):
    peers = {"inherit": "inherited", "file": "a file", "path": "a file, by a path of directories",
             "files": "two of these", "captures": "two captures", "boost": "Boost.Process, two pipes"}
    counted = {peer: bench.calls_for_each("stream_starts", "starts", 32 if quick else 128, peer=peer,
                                          program=bench.program("exits_at_once"), directory=directory)
               for peer in peers}
    measure.print_table("System calls of the parent for each start of a static program, one at a time",
                        ["", "calls", "more than inherited"],
                        [[title, f"{sum(counted[peer].values()):.2f}",
                          f"{sum(counted[peer].values()) - sum(counted['inherit'].values()):.2f}"]
                         for peer, title in peers.items()])
    shown = ["inherit", "file", "path", "captures"]
    names = sorted(set().union(*(counted[peer] for peer in shown)), key=lambda name: -counted["captures"][name])
    measure.print_table("cohort's by name", [""] + [peers[peer] for peer in shown],
                        [[name] + [f"{counted[peer][name]:.2f}" for peer in shown] for name in names])
    # How often threads wait for each other is chance. What happens only now and then is rounded away.
    calls = {peer: sum(n for name, n in counted[peer].items() if name != "futex") for peer in shown}
    for peer in ("file", "path"):
        facts["output", f"{peer}, calls"] = round(calls[peer] - calls["inherit"])
        facts["remark", f"{peer}, calls"] = (f"without futex: {calls['inherit']:.1f} inherited,"
                                             f" {calls[peer]:.1f} with the file")


def punctual(bench, facts, rounds, joins):
    words = {"pauses": bench.program("pauses"), "writer": writer(bench), "joins": joins}
    load = {"peer": "splice", "program": writer(bench), "workers": WORKERS, "bytes": 0}
    results = sharing.in_turn({
        "idle": lambda: bench.measure("punctual", flooding=0, **words),
        "lines nobody reads": lambda: bench.measure("punctual", flooding=WORKERS, **words),
        "the same to another process": lambda: bench.measure_beside(load, "tee", "punctual", flooding=0, **words),
    }, rounds)
    late = {how: [us for one in mine for us in one["late_us"]] for how, mine in results.items()}
    measure.print_table(f"join(50 ms) late, us, while {WORKERS} workers write as fast as they can"
                        f" ({rounds * joins} joins); the last line: another process splices what they write",
                        ["", "median", "99 %", "worst", "MB/s beside"],
                        [[how, *quantiles(us), measure.median(results[how], "mb_s") or None]
                         for how, us in late.items()])
    ratio_of_99(facts, "join", late)


def quantiles(us):
    return [statistics.median(us), quantile_99(us), max(us)]


def quantile_99(us):
    return statistics.quantiles(us, n=100, method="inclusive")[-1]


def ratio_of_99(facts, name, late):
    idle, flood, other = (quantile_99(us) for us in late.values())
    facts["output", name] = flood / idle
    facts["remark", name] = f"the same to another process: {other / idle:.2f}"


def told(bench, facts, rounds, runs):
    words = {"program": bench.program("leaves_child"), "writer": writer(bench), "runs": runs}
    load = {"peer": "splice", "program": writer(bench), "workers": WORKERS, "bytes": 0}

    def tell(captures, grandchild, flooding=0):
        return lambda: bench.measure("told", captures=captures, grandchild=grandchild, flooding=flooding, **words)

    def beside():
        return bench.measure_beside(load, "tee", "told", captures=0, grandchild=0, **words)

    results = sharing.in_turn({
        "discarded": tell(0, 0), "captured": tell(1, 0),
        "discarded, a grandchild": tell(0, 1), "captured, a grandchild holds the pipes": tell(1, 1),
        "discarded, beside lines nobody reads": tell(0, 0, WORKERS),
        "discarded, beside the same to another process": beside,
    }, rounds)
    us = {how: [value for one in mine for value in one["us"]] for how, mine in results.items()}
    measure.print_table(f"From a worker's exit to the line after co_await group.next(), us ({rounds * runs} runs)",
                        ["", "median", "99 %", "worst"], [[how, *quantiles(values)] for how, values in us.items()])
    idle, captured, without, grandchild, flood, other = us.values()
    facts["output", "exit, capture"] = statistics.median(grandchild) / statistics.median(without)
    facts["remark", "exit, capture"] = (f"no grandchild: {statistics.median(captured) / statistics.median(idle):.2f},"
                                        f" 99 % with one: {quantile_99(grandchild) / quantile_99(without):.2f}")
    ratio_of_99(facts, "exit, flood", {"idle": idle, "flood": flood, "other": other})
