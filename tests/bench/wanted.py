# SPDX-License-Identifier: BSL-1.0
"""What cohort promises of itself, beside what was measured."""

import measure

OTHERS_US = 100  # for the loop's own work when its children end
PARENTS = ["small", "1 GiB touched", "10,000 descriptors"]
SHARING = {
    "round trip / socket pair": ("64 bytes there and back / socket pair", 1.25),
    "round trip / Boost.Interprocess": ("the same / Boost.Interprocess", 1.1),
    "round trip / Python SimpleQueue": ("the same / Python SimpleQueue", 0.6),
    "round trip, parent awaits": ("the same, the parent awaits / socket pair", 2),
    "array": ("array of 64 MiB by descriptor / 64 bytes", 2),
    "1 MiB": ("1 MiB by value / Python SimpleQueue", 1 / 4),
    "64 MiB": ("64 MiB by value / Python SimpleQueue", 1 / 3),
    "one way": ("time for 64 bytes one way / Python SimpleQueue", 1 / 2),
    "one way, batches": ("the same, put_all and get_some", 1 / 50),
    "file_system": ("make and drop an array, file_system / file_descriptor", 6),
    "start, spawn": ("start with 8 arrays and 2 queues / without", 1.05),
    "late": ("loop late while 64 MiB pass, 99 % us", 2000),
    "barrier": ("a barrier's party is killed, others have thrown, us", 1000),
    "barrier, 99 %": ("the same, 99 % us", 10_000),
    "idle get": ("a waiting get: wake-ups a second", 0),
    "idle get, CPU": ("a waiting get: CPU ms in 2 s", 0),
    "idle put": ("a waiting put: wake-ups a second", 0),
    "idle put, CPU": ("a waiting put: CPU ms in 2 s", 0),
    "idle bounded_put": ("a put to a full bounded queue: wake-ups a second", 10),
    "memory, array": ("an array: bytes", 200),
    "descriptors, array": ("an array: descriptors", 1),
    "memory, file_system_array": ("an array, file_system: bytes", 200),
    "descriptors, file_system_array": ("an array, file_system: descriptors", 0),
    "descriptors, queue": ("a queue: descriptors", 2),
    "descriptors, bounded_queue": ("a bounded queue: descriptors", 3),
}

BATCH = {
    "wall / xargs -P8": ("a batch, wall / xargs -P8", 1.3),
    "CPU / xargs -P8": ("the same, CPU", 1.3),
    "wall / GNU parallel": ("the same, wall / GNU parallel", 1 / 3),
    "CPU / GNU parallel": ("the same, CPU", 1 / 3),
}

OUTPUT = {
    "tee, console / splice": ("tagged console, parent's CPU / splice", 3),
    "tee, console / GNU parallel": ("the same / GNU parallel", 1 / 8),
    "tee, console / Boost.Process": ("the same / Boost.Process v2", 1 / 8),
    "tee, console / torch's TailLog": ("the same / torch's TailLog", 1 / 8),
    "tee, file / splice": ("tagged file, parent's CPU / splice", 3),
    "tee, file / GNU parallel": ("the same / GNU parallel", 1 / 8),
    "tee, file / Boost.Process": ("the same / Boost.Process v2", 1 / 8),
    "tee, file / torch's TailLog": ("the same / torch's TailLog", 1 / 8),
    "lines": ("s for a GB through lines(), read in batches", 1 / 0.5),
    "line": ("us a line that is here, by output()", 0.3),
    "unread": ("nobody reads: worker's time / to /dev/null", 1.2),
    "unread, formatted": ("the same, a worker that formats its lines", 1.2),
    "start, wall": ("two captures: wall us more than two files", 50),
    "start, CPU": ("the same: parent's CPU us", 40),
    "start / Boost.Process": ("two captures, wall / Boost.Process v2, two pipes", 1),
    "start / Boost.Process, CPU": ("the same, parent's CPU", 1),
    "file, calls": ("a file alone: system calls more for each start", 0),
    "path, calls": ("the same, a path of directories", 0),
    "join": ("join(50 ms) late beside lines nobody reads, 99 % / idle", 2),
    "exit, flood": ("exit to outcome beside lines nobody reads, 99 % / idle", 2),
    "exit, capture": ("exit to outcome, capture and a grandchild / without", 1.5),
}

POOL = {
    "us": ("a call with 64 bytes to a worker and back, us", 30),
    "call / socket pair": ("the same / socket pair", 2.5),
    "call / ProcessPoolExecutor": ("the same / ProcessPoolExecutor", 1 / 4),
    "call / loky": ("the same / loky", 1 / 4),
    "us each": ("us for each call, 4 workers, 64 in flight", 1e6 / 40_000),
    "us each / ProcessPoolExecutor": ("the same / ProcessPoolExecutor", 1 / 4),
    "1 MB": ("1 MB to a worker and back / memory file", 2),
    "late": ("join(10 ms) late beside calls with 100 MB, 99 % us", 5000),
    "SIGKILL, told_us": ("a worker is killed: to the exception / a group's", 2),
    "SIGKILL, next_us": ("the same, to the next call / the next group", 2),
    "SIGSEGV, told_us": ("a worker crashes: to the exception / a group's", 2),
    "SIGSEGV, next_us": ("the same, to the next call / the next group", 2),
    "wakes": ("four idle workers: wake-ups in 2 s", 0),
    "CPU": ("the same, CPU ms", 0),
}

HOSTS = {
    "start": ("start and join of 16 functions on two hosts / local", 1.5),
    "failure, exit": ("a command fails: us to SIGTERM on another host", 1000),
    "failure, throw": ("a function throws: us to SIGTERM on another host", 1000),
    "lines": ("a worker's lines(): time over the link / local", 2),
    "reach": ("64 agents reached / 64 functions by spawn", 3),
    "idle": ("64 idle hosts: % of a CPU in the origin", 0.1),
}


def report(facts):
    """A table of those promises for which there are facts."""
    rows = []

    def hold(what, value, bound, remark=""):
        rows.append([what, f"{value:,.3f}", f"{bound:,.3f}", "yes" if value <= bound else "NO", remark])

    if any(key[0] == "ratio" for key in facts):
        short_lived(facts, hold)
    if ("scale", "resident") in facts:
        hold("a live worker: bytes resident", facts["scale", "resident"], 1024)
        hold("a live worker: descriptors", facts["scale", "descriptors"], 2)
    for key, value in facts.items():
        if key[0] == "failure":
            hold(f"failure to first signal, us, {key[1]} workers", value, 1000)
        if key[0] == "inside" and key[1] == "forkserver" and key[2][1] == 1:
            parent, _ = key[2]
            hold(f"fork server, request to inside, us, parent: {parent}", value, 300)
            hold(f"the same / spawn, parent: {parent}", value / facts["inside", "spawn", key[2]], 1 / 6)
    if ("sharing", "late") in facts:
        sharing(facts, hold)
    for name, (what, most) in BATCH.items():
        if ("batch", name) in facts:
            hold(what, facts["batch", name], most)
    for name, (what, most) in OUTPUT.items():
        if ("output", name) in facts:
            hold(what, facts["output", name], most, facts.get(("remark", name), ""))
    if ("pool", "us") in facts:
        pool(facts, hold)
    for name, (what, most) in HOSTS.items():
        if ("hosts", name) in facts:
            hold(what, facts["hosts", name], most, facts.get(("remark", "hosts", name), ""))
    measure.print_table("Wanted of cohort", ["", "measured", "at most", "holds", "remark"], rows)


def sharing(facts, hold):
    remarks = {what: f"of the lowest rounds: {facts['lowest', what]:.2f}"
               for what in SHARING if ("lowest", what) in facts}
    remarks["late"] = f"a loop that passes nothing: {facts['sharing', 'late, nothing']:,.0f}"
    remarks["barrier"] = f"if they have thrown before: {facts['sharing', 'barrier, thrown before']:,.0f}"
    for name, (what, most) in SHARING.items():
        hold(what, facts["sharing", name], most, remarks.get(name, ""))


def pool(facts, hold):
    remarks = {what: f"of the lowest rounds: {facts['lowest of pool', what]:.2f}"
               for what in POOL if ("lowest of pool", what) in facts}
    remarks["us"] = f"99 %: {facts['pool', '99 %']:,.0f}"
    remarks["late"] = f"while another process makes them: {facts['pool', 'late, no pool']:,.0f}"
    for name, (what, most) in POOL.items():
        if ("pool", name) in facts:
            hold(what, facts["pool", name], most, remarks.get(name, ""))


def short_lived(facts, hold):
    for at_once in (1, 64):
        for parent in PARENTS:
            for name in ("/bin/true", "static"):
                late = {peer: facts["late", peer, (parent, name, at_once)]
                        for peer in ("nobody", "cohort", "posix_spawn", "boost")}
                hold(f"loop late, 99 % us, {name}, {at_once} at a time, {parent}", late["cohort"],
                     late["nobody"] + OTHERS_US, f"a loop that starts nothing: {late['nobody']:,.0f}; one that starts"
                     f" by posix_spawn: {late['posix_spawn']:,.0f}, boost: {late['boost']:,.0f}")
    for parent in ("small", "1 GiB touched"):
        for name, most in (("/bin/true", 1.10), ("static", 1.25)):
            ratio(facts, hold, "posix_spawn", (parent, name, 1), most)
            ratio(facts, hold, "posix_spawn", (parent, name, 64), 1.05)
    for peer in ("boost", "libuv"):
        ratio(facts, hold, peer, ("small", "/bin/true", 1), 1.0)
    for parent, share in (("small", 0.5), ("1 GiB touched", 0.02)):
        for at_once in (1, 64):
            for peer in ("boost", "libuv"):
                ratio(facts, hold, peer, (parent, "static", at_once), share)
    for at_once in (1, 64):
        ratio(facts, hold, "posix_spawn", ("10,000 descriptors", "static", at_once), 1.0)
    for at_once, most in ((1, 20), (64, 10)):
        hold(f"system calls per child, {at_once} at a time", facts["calls", "small", at_once], most)


def ratio(facts, hold, peer, case, most):
    parent, name, at_once = case
    hold(f"wall time / {peer}, {name}, {at_once} at a time, {parent}", facts["ratio", peer, case], most,
         f"of the lowest rounds: {facts['lowest', peer, case]:.2f}, a raw clone: {facts['floor', peer, case]:.2f}")
