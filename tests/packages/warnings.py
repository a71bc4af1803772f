#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The headers are clean for those who take them by -I: warnings.py source compiler [argument...]

headers.cpp is compiled with many warnings as errors, by each compiler that is installed, in each standard. GCC warns of
some things only when it makes code, so it does that in one of them, optimised; the rest is a check of the syntax.

All public headers come before it, those first that include least. So one that needs another, and does not include it,
does not compile, if no smaller one includes that."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

source = Path(sys.argv[1])
own, arguments = sys.argv[2], sys.argv[3:]
OTHERS = [f"g++-{number}" for number in range(12, 17)] + [f"clang++-{number}" for number in range(14, 22)]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"]
STANDARDS = ["c++20", "c++23", "c++26"]
OLDER_NAMES = {"c++23": "c++2b", "c++26": "c++2c"}
NEEDS_MORE = ["use_sender.hpp"]  # a library for senders
# GCC looks for memory to free after each third that it allocates.
FRUGAL = ["--param=ggc-min-expand=400", "--param=ggc-min-heapsize=1000000"]


def compiles(*command, **how):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)


def is_clang(compiler):
    return "clang" in compiles(compiler, "--version").stdout


def standards_of(compiler):
    """As the compiler calls them."""
    for standard in STANDARDS:
        for name in [standard, OLDER_NAMES.get(standard, standard)]:
            if compiles(compiler, f"-std={name}", "-x", "c++", "-E", "-", input="").returncode == 0:
                yield name
                break


def same(one, other):
    return Path(shutil.which(one)).resolve() == Path(shutil.which(other)).resolve()


def reached(header, seen):
    """All that the header includes, as far as the library's own headers say it."""
    for name in re.findall(r"^ *# *include <(.*)>", header.read_text(), re.MULTILINE):
        if name not in seen:
            seen.add(name)
            if (source / "include" / name).exists():
                reached(source / "include" / name, seen)
    return seen


def public_headers():
    headers = [header for header in (source / "include/cohort").glob("*.hpp") if header.name not in NEEDS_MORE]
    return sorted(headers, key=lambda header: (len(reached(header, set())), header.name))


def checks():
    compilers = [own] + [other for other in OTHERS if shutil.which(other) and not same(own, other)]
    headers = [word for header in public_headers() for word in ("-include", str(header))]
    for compiler in compilers:
        clang = is_clang(compiler)
        options = [*WARNINGS, "-Wdocumentation"] if clang else [*WARNINGS, "-Wuseless-cast", *FRUGAL]
        for number, standard in enumerate(standards_of(compiler)):
            how = ["-fsyntax-only"] if clang or number > 0 else ["-O2", "-c", "-o", os.devnull]
            yield [compiler, f"-std={standard}", *how, *options, *arguments, f"-I{source}/include", *headers,
                   str(source / "tests/packages/headers.cpp")]


def check(command):
    done = compiles(*command)
    return "" if done.returncode == 0 else f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}"


with ThreadPoolExecutor(2) as pool:
    answers = list(pool.map(check, checks()))
failures = [answer for answer in answers if answer]
print("\n".join(failures))
print(f"[cases] {len(answers) - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)
