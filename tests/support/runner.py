# SPDX-License-Identifier: BSL-1.0
"""Builds flavours of the project and runs their tests, as many at once as keep the machine busy: for tests/run.

What a test needs is said where meson.build declares it, by labels (its suites):
    everyday            also without --all
    long                only with --long
    shards-N            a program of doctest's, whose cases run in N processes
    notes               its run notes what each case reaches: `integration-default`
    reaching-functions  runs those cases that start function workers by the default start method or as copies,
    reaching-any        or that ask for anything that differs between hosts, as `integration-default` has noted; and
                        of the others each sixth, another one with each commit, so that six commits run all. With
                        --long, or without notes, it runs all.
    reaching-nothing    runs each sixth
    compiles            is as heavy as a build: one at a time
The next flavour is built beside the tests, at the lowest priority. A test that is not parallel runs when nothing else
does; the others by priority, as many at once as the processors have time for: more would only make them all slower.

With --within what has not begun when the time is over is skipped, with that reason: on a slow machine a run that is
told to end in time has found more than one that is ended by others."""

import argparse
import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import summary

ROOT = Path(__file__).resolve().parents[2]
PARTS = 6  # of the cases that can't differ, one runs with each commit
MASKS = {"functions": 7 << 32, "any": -1, "nothing": 0}  # bits of src/base/sys/tiers.hpp

# A nice value counts within a session only where the kernel groups processes by their sessions (sched(7), autogroup).
BESIDE_TESTS = ["sh", "-c", "echo 19 >/proc/self/autogroup; exec nice -n 19 \"$@\" 2>&1", "sh"]


def say(text):
    print(f"tests/run: {text}", file=sys.stderr, flush=True)


class Notes:
    """What the cases of the noting test have reached: {title: bits}; of those that were skipped, all."""

    def __init__(self):
        self.of = {}

    def take(self, path):
        if path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                bits, _, _, how, title = line.split("\t", 4)
                self.of[title] = -1 if how == "skipped" else int(bits, 16)

    def left_out(self, kind, part):
        """The titles of the cases that need not run now where only those of this kind can differ."""
        return sorted(title for title, bits in self.of.items()
                      if not bits & MASKS[kind] and zlib.crc32(title.encode()) % PARTS != part)


def turn():
    """Which sixth is the one of this commit."""
    told = subprocess.run(["git", "-C", ROOT, "rev-list", "--count", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return (int(told.stdout) if told.returncode == 0 else time.localtime().tm_yday) % PARTS


class Test:
    """One process of one test: all of it, or a shard."""

    def __init__(self, flavour, described, shard=0, shards=1):
        self.flavour = flavour
        self.name = described["name"]
        self.labels = {label.split(":", 1)[-1] for label in described["suite"]}
        self.command = described["cmd"]
        self.environment = described["env"]
        self.timeout = described["timeout"] * flavour.patience
        self.directory = described["workdir"] or flavour.directory
        self.priority = described["priority"]
        self.depends = described["depends"]
        self.is_parallel = described["is_parallel"]
        self.shard, self.shards = shard, shards
        self.title = f"{self.name} {shard + 1}/{shards}" if shards > 1 else self.name
        self.place = flavour.logs / self.title.replace("/", "-of-").replace(" ", "-")
        self.entry = None

    def label(self, start):
        """What stands behind `start` in one of the labels; None if none has it."""
        return next((label[len(start):] for label in self.labels if label.startswith(start)), None)

    @property
    def is_noting(self):
        return "notes" in self.labels and not self.flavour.is_sanitized

    def variables(self, run):
        made = {**os.environ, **self.environment}
        made.setdefault("MALLOC_PERTURB_", str(random.randrange(1, 256)))
        if self.shards > 1:
            made["COHORT_TEST_SHARD"] = f"{self.shard + 1}/{self.shards}"
        if not run.is_whole:
            made["COHORT_TEST_PART"] = f"{run.part}/{PARTS}"
        kind = self.label("reaching-")
        if kind and not run.is_whole:
            path = self.place.with_suffix(".left_out")
            path.write_text("".join(f"{title}\n" for title in run.notes.left_out(kind, run.part)))
            made["COHORT_TEST_LEFT_OUT"] = str(path)
        if self.is_noting:
            path = self.place.with_suffix(".reached")
            path.write_bytes(bytes(4096))
            made["COHORT_TEST_REACHED"] = str(path)
        return made

    def start(self, run):
        self.since = time.monotonic()
        self.stdout = open(self.place.with_suffix(".out"), "wb")
        self.stderr = open(self.place.with_suffix(".err"), "wb")
        self.process = subprocess.Popen(
            [*self.command, *run.arguments], env=self.variables(run), cwd=self.directory, stdin=subprocess.DEVNULL,
            stdout=self.stdout, stderr=self.stderr, start_new_session=True)

    def has_ended(self, is_late):
        """Ends it, too, when it has taken too long."""
        ended, status, used = os.wait4(self.process.pid, os.WNOHANG)
        taken = time.monotonic() - self.since
        if not ended and taken < self.timeout and not is_late:
            return False
        if not ended:
            os.killpg(self.process.pid, signal.SIGKILL)
            _, status, used = os.wait4(self.process.pid, 0)
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        result = {0: "OK", 77: "SKIP"}.get(code, "FAIL") if ended else "TIMEOUT"
        self.stdout.close()
        self.stderr.close()
        self.entry = {"name": self.title, "result": result, "returncode": code, "duration": taken,
                      "processor": used.ru_utime + used.ru_stime,
                      **{stream: self.place.with_suffix(end).read_text(encoding="utf-8", errors="replace")
                         for stream, end in [("stdout", ".out"), ("stderr", ".err")]}}
        if not ended and is_late and not summary.FAILURE.search(self.entry["stdout"]):
            self.entry["result"] = "SKIP"
            self.entry["stdout"] += f"[skipped] {self.title}: no time was left for its end\n"
        return True

    def skip(self, why):
        self.entry = {"name": self.title, "result": "SKIP", "returncode": 77, "duration": 0, "stdout": why,
                      "stderr": ""}


class Change:
    """What has changed since a commit, and what that can reach by Ninja's own notes of what depends on what."""

    def __init__(self, since):
        def git(*command):
            return subprocess.run(["git", "-C", ROOT, *command], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.splitlines()
        names = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")
        self.files = {str(ROOT / name) for name in names}
        self.is_anything = any(Path(name).name in ["meson.build", "meson_options.txt"] for name in names)

    def reached_inputs(self, directory):
        """The changed files themselves, and the objects that are compiled of them, as Ninja calls them."""
        told = subprocess.run(["ninja", "-C", directory, "-t", "deps"], text=True, stdout=subprocess.PIPE).stdout
        reached = {os.path.relpath(name, directory) for name in self.files} | self.files
        target = ""
        for line in told.splitlines():
            if not line.startswith(" "):
                target = line.partition(": ")[0]
            elif os.path.normpath(directory / line.strip()) in self.files:
                reached.add(target)
        return reached

    def reaches(self, flavour, test):
        if self.is_anything:
            return True
        words = test.command + [path for target in test.depends for path in flavour.outputs().get(target, [])]
        named = {os.path.relpath(flavour.directory / word, flavour.directory) for word in words
                 if (flavour.directory / word).exists()}
        inputs = set(named)
        for one in named:  # apart, because one that Ninja does not make, as a script, is an error
            inputs.update(subprocess.run(["ninja", "-C", flavour.directory, "-t", "inputs", one], text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.splitlines())
        return bool(flavour.reached & inputs)

    def cases(self, test):
        """The arguments that choose the cases of the changed files, if nothing else of the program has changed."""
        own = {name for name in self.files if name.endswith("_test.cpp")}
        others = {name for name in self.files - own if name.endswith("pp")}
        if others or not own or test.label("shards-") is None:
            return []
        return ["--source-file=" + ",".join(sorted(own))]


class Flavour:
    def __init__(self, name, directory, patience, options, targets=()):
        self.name, self.directory, self.patience = name, Path(directory), patience
        self.options, self.targets = options, list(targets)
        self.is_sanitized = name in ["asan", "tsan"]
        self.logs = self.directory / "test-logs"
        self.tests = []

    def build(self, run, lowest):
        """Returns whether that went well; what it says is an error."""
        since = time.monotonic()
        again = ["--reconfigure"] if (self.directory / "build.ninja").exists() else []
        commands = [["meson", "setup", *again, *self.options, self.directory, ROOT],
                    ["ninja", "-C", self.directory, "--quiet", f"-j{run.processors.count + 1}", *self.targets]]
        for command in commands:
            run.building = subprocess.Popen([*lowest, *map(str, command)], text=True, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, start_new_session=True)
            printed, _ = run.building.communicate()
            if run.change and command[0] == "meson":
                self.reached = run.change.reached_inputs(self.directory)
            if run.building.returncode != 0 and run.is_late():
                return False
            if run.building.returncode != 0:
                print(printed, file=sys.stderr)
                say(f"the build in {self.directory} failed")
                return False
        say(f"built {self.name} in {time.monotonic() - since:.0f} s")
        return True

    @functools.cache
    def outputs(self):
        """What each target of Meson makes: {id: [path]}."""
        told = subprocess.run(["meson", "introspect", "--targets", self.directory], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        return {target["id"]: target["filename"] for target in json.loads(told)}

    def find_tests(self, run):
        self.logs.mkdir(exist_ok=True)
        for old in self.logs.iterdir():
            old.unlink()
        told = subprocess.run(["meson", "introspect", "--tests", self.directory], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        for described in json.loads(told):
            whole = Test(self, described)
            if self.name == "everyday" and "everyday" not in whole.labels or not run.wants(whole):
                continue
            if run.change and not run.change.reaches(self, whole):
                continue
            cases = run.change.cases(whole) if run.change else []
            whole.command = described["cmd"] = [*described["cmd"], *cases]
            shards = 1 if run.arguments or cases else int(whole.label("shards-") or 1)
            self.tests += [Test(self, described, shard, shards) for shard in range(shards)]
            if "long" in whole.labels and not run.is_whole:
                for test in self.tests[-shards:]:
                    test.skip(f"[skipped] {test.name}: only with --long\n")


class Processors:
    """Whether they have time for one more test: proc_stat(5)."""

    LOOK = 1.0  # seconds that a look takes
    FREE = 0.2  # the part of all processors' time that must be free

    def __init__(self):
        self.count = os.cpu_count() or 2
        self.look_anew()

    @staticmethod
    def times():
        """(free, all) of all processors since the machine's start; what runs at the lowest priority is free."""
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, idle, waiting, *others = map(int, file.readline().split()[1:9])
        return idle + waiting + nice, user + nice + system + idle + waiting + sum(others)

    def look_anew(self):
        self.since, self.before = time.monotonic(), self.times()

    def have_time(self, running):
        if running < self.count:
            return True
        if running >= 4 * self.count or time.monotonic() - self.since < self.LOOK:
            return False
        free, whole = (now - then for now, then in zip(self.times(), self.before))
        self.look_anew()
        return free > self.FREE * whole


class Run:
    LAST = 300  # seconds for what runs when the time is over

    def __init__(self, flavours, given, change):
        self.flavours, self.arguments, self.is_whole, self.change = flavours, given.arguments, given.long, change
        self.until = time.monotonic() + 60 * given.within
        self.notes, self.part = Notes(), turn()
        self.processors = Processors()
        self.built = {}  # flavour: whether its build went well
        self.building = None  # the process
        self.changed = threading.Event()

    def wants(self, test):
        # Packages and examples know nothing of doctest.
        return not self.arguments or bool(test.label("shards-"))

    def is_late(self, by=0):
        return time.monotonic() > self.until + by

    def build_all(self):
        for number, flavour in enumerate(self.flavours):
            if self.is_late():
                break
            self.built[flavour] = flavour.build(self, BESIDE_TESTS if number else [])
            self.changed.set()
            if not self.built[flavour]:
                break

    def skip_the_rest(self, waiting):
        """What has not begun."""
        for test in waiting:
            test.skip(f"[skipped] {test.title}: no time is left\n")
        waiting.clear()
        if self.building and self.building.poll() is None and any(self.built.values()):
            with contextlib.suppress(ProcessLookupError):  # the building thread may just have reaped it
                os.killpg(self.building.pid, signal.SIGTERM)

    def is_noted(self, test):
        """Whether the notes that the test goes by are there, if anybody makes them."""
        return test.label("reaching-") is None or all(
            other.entry for flavour in self.flavours for other in flavour.tests if other.is_noting)

    def next_test(self, waiting, running, is_building):
        is_alone = any(not test.is_parallel for test in running)
        for test in sorted(waiting, key=lambda test: -test.priority):
            if not test.is_parallel:
                if not running and not is_building and len(waiting) == 1:
                    return test
            elif is_alone or not self.is_noted(test):
                continue
            elif "compiles" not in test.labels or not any("compiles" in other.labels for other in running):
                return test if self.processors.have_time(len(running)) else None
        return None

    def go(self):
        """Returns whether everything could be built. Nothing that it started runs on after it."""
        builder = threading.Thread(target=self.build_all, daemon=True)
        builder.start()
        running = []
        try:
            self.run_tests(builder, running)
        finally:
            processes = [test.process for test in running] + ([self.building] if builder.is_alive() else [])
            for process in processes:
                os.killpg(process.pid, signal.SIGTERM)
        return all(self.built.values()) or self.is_late() and any(self.built.values())

    def run_tests(self, builder, running):
        known, waiting, began = set(), [], {}
        while builder.is_alive() or len(known) < sum(self.built.values()) or waiting or running:
            for flavour, is_built in list(self.built.items()):
                if is_built and flavour not in known:
                    known.add(flavour)
                    flavour.find_tests(self)
                    began[flavour] = time.monotonic()
                    waiting += [test for test in flavour.tests if test.entry is None]
            while test := self.next_test(waiting, running, builder.is_alive()):
                waiting.remove(test)
                test.start(self)
                running.append(test)
                self.processors.look_anew()
            self.changed.wait(0.05)
            self.changed.clear()
            if self.is_late():
                self.skip_the_rest(waiting)
            for test in [test for test in running if test.has_ended(self.is_late(self.LAST))]:
                running.remove(test)
                if test.is_noting:
                    self.notes.take(test.place.with_suffix(".reached.cases"))
                if test.entry["result"] not in ["OK", "SKIP"]:
                    say(f"{test.flavour.name}: {test.title}: {test.entry['result']}")
                    summary.show_failures(test.flavour.name, test.entry, sys.stderr)
                if not any(other.flavour is test.flavour for other in waiting + running):
                    say(f"tested {test.flavour.name} in {time.monotonic() - began[test.flavour]:.0f} s")
            if not all(self.built.values()) and not self.is_late():
                waiting.clear()

    def entries(self):
        """{flavour: [entry of a process]}; one that was not built in time is one that was skipped."""
        found = {flavour.name: [test.entry for test in flavour.tests] for flavour in self.flavours}
        for flavour in self.flavours:
            if not self.built.get(flavour):
                found[flavour.name] = [{"name": "all", "result": "SKIP", "duration": 0,
                                        "stdout": f"[skipped] {flavour.name}: no time is left\n"}]
        return found


# Lines and names of functions are enough for stacks. The rest of -g takes a seventh of the library's time to compile,
# and makes its file three times as large, of which each trace needs all.
STACKS = "-Dcpp_args=-g1"
SANITIZER = ["-Dtests=true", "-Dexamples=false", "-Db_lundef=false", "-Doptimization=1", "-Dunity_size=32"]


def flavour_called(name):
    """What a sanitizer needs of the compiler for its stacks and its checks, and no more: it takes half the time."""
    if name == "asan":  # without the checks of each access for null and alignment: most of the program's size and time
        return Flavour(name, ROOT / "build-asan", 4, SANITIZER + [
            "-Db_sanitize=address,undefined", STACKS + " -fno-sanitize=null,alignment,vptr" +
            " -fsanitize-undefined-trap-on-error"])
    if name == "tsan":
        return Flavour(name, ROOT / "build-tsan", 4, SANITIZER + ["-Db_sanitize=thread", STACKS])
    options = ["-Dtests=true", "-Dexamples=true", STACKS]
    if stdexec := os.environ.get("COHORT_STDEXEC"):
        options.append(f"-Dstdexec={stdexec}")
    if name == "everyday":
        return Flavour(name, ROOT / "build", 1, options, ["everyday"])
    return Flavour(name, ROOT / "build", 1, options + [f"-Dnewer_{what}={os.environ.get(f'NEWER_{what.upper()}', '')}"
                                                       for what in ["asio", "boost"]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flavours", help="of everyday, plain, asan, tsan, with commas between")
    parser.add_argument("arguments", nargs="*", help="of doctest, behind --")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--since", metavar="COMMIT", help="only what the files changed since then can reach")
    parser.add_argument("--within", metavar="MINUTES", type=int, default=sys.maxsize)
    given = parser.parse_args()
    flavours = [flavour_called(name) for name in given.flavours.split(",")]
    if given.long:
        for flavour in flavours:
            flavour.patience *= 10
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind a shell's &, and in all tests then
    run = Run(flavours, given, Change(given.since) if given.since else None)
    if not run.go():
        print("0 passed, 1 failed, 0 skipped")
        return 1
    return summary.show(run.entries())


if __name__ == "__main__":
    sys.exit(main())
