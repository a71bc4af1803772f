#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Seeds faults and looks whether tests find them: check.py source description compiler [argument...]

The description (machine.txt) says what makes the program:
    program PATH...     the files to compile: tests, and what they test
    headers NAME...     what many of them include and no fault changes: parsed once
    with ARGUMENT...    for the compiler and the linker
    in PATH             the file that the faults below are in
and the faults: a line that says what each breaks, its old text, which the file has exactly once, and the new:
    # the end is never reported
    - todo.push_back(action::report_end);
Here it is left out; a new one stands behind `+`. A fault is found when the program fails. Only files that include the
changed one are compiled again. COHORT_TEST_PART=2/6: only each sixth fault, from the third on."""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = Path(sys.argv[1]).resolve()
Wrong = type("Wrong", (Exception,), {})


def read(path):
    """@return ({word: its arguments}, [(what it breaks, file, old text, new text)])"""
    words, faults, where = {"program": [], "headers": [], "with": []}, [], None
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "in":
            where = rest
        elif kind == "#":
            faults.append((rest, where, [], []))
        elif kind in ("-", "+"):
            faults[-1]["-+".index(kind) + 2].append(rest)
        elif kind:
            words[kind] += rest.split()
    return words, [(why, file, "\n".join(old), "\n".join(new)) for why, file, old, new in faults]


def call(*command, must=False):
    done = subprocess.run(command, text=True, errors="replace", capture_output=True, timeout=300)
    if must and done.returncode != 0:
        raise Wrong("\n".join(done.stderr.splitlines()[:20]))
    return done


class Program:
    """The one without a fault; its objects are used for the others too."""

    def __init__(self, words, compiler, more, folder, pool):
        self.compiler, self.arguments, self.folder = compiler, [*words["with"], *more], folder
        self.files = words["program"]
        common = folder / "common.hpp"
        common.write_text("".join(f"#include <{name}>\n" for name in words["headers"]))
        parsed = pool.submit(self.compile, folder, "-x", "c++-header", common, "-o", f"{common}.gch")
        self.compile(folder, "-c", HERE / "main.cpp", "-o", folder / "main.o")
        parsed.result()
        list(pool.map(lambda file: self.make(file, folder), self.files))
        self.includes = {file: self.object(file, folder).with_suffix(".d").read_text().split() for file in self.files}

    def compile(self, folder, *what):
        """Files in the folder come before those of the same path in the source."""
        places = [f"-I{place / name}" for place in (folder, ROOT) for name in ("include", "src")]
        call(self.compiler, "-std=c++20", "-O0", "-g0", "-w", *places, *what, *self.arguments, must=True)

    def make(self, file, folder):
        what = folder / file if (folder / file).exists() else ROOT / file
        near = ["-iquote", (ROOT / file).parent, "-iquote", ROOT / "tests/support", "-include",
                self.folder / "common.hpp"]
        self.compile(folder, *near, "-MMD", "-c", what, "-o", self.object(file, folder))

    def object(self, file, folder):
        return folder / (file.replace("/", "+") + ".o")

    def run(self, folder, again=()):
        list(map(lambda file: self.make(file, folder), again))
        objects = [self.object(file, folder if file in again else self.folder) for file in self.files]
        program = folder / "program"
        call(self.compiler, *objects, self.folder / "main.o", "-o", program, *self.arguments, must=True)
        return call(program, "--abort-after=1", "--no-colors")

    def seed(self, file, old, new):
        """@return how the program with this fault fails"""
        text = (ROOT / file).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise Wrong(f"its old text is there {text.count(old)} times")
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            (folder / file).parent.mkdir(parents=True)
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
            done = self.run(folder, [each for each in self.files if str(ROOT / file) in self.includes[each]])
        if done.returncode == 0:
            raise Wrong("no test finds it")
        return (re.findall(r"ERROR: ([^|\n]*)", done.stdout) or [f"exit code {done.returncode}"])[0].strip()


def main(description, compiler, *more):
    words, faults = read(Path(description))
    part, parts = map(int, os.environ.get("COHORT_TEST_PART", "0/1").split("/"))
    faults = faults[part::parts]
    processors, failed = len(os.sched_getaffinity(0)), 0
    with tempfile.TemporaryDirectory(prefix="seeded-") as name, ThreadPoolExecutor(processors) as pool:
        program = Program(words, compiler, more, Path(name).resolve(), pool)
        if (done := program.run(program.folder)).returncode != 0:
            sys.exit(f"without a fault it fails\n{done.stdout}")
        tried = [(why, pool.submit(program.seed, *fault)) for why, *fault in faults]
        for why, each in tried:
            try:
                print(f"{why}: found ({each.result()})", flush=True)
            except (Wrong, subprocess.TimeoutExpired) as wrong:
                failed += 1
                print(f"[failed] {why}: {wrong}", flush=True)
    print(f"[cases] {len(faults) + 1 - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


sys.exit(main(*sys.argv[2:]))
