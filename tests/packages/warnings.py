#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The headers are clean for those who take them by -I: warnings.py source compiler [argument...]

headers.cpp is compiled with many warnings as errors, by each compiler that is installed. The standards and the levels
of optimization are gone through together, because GCC warns of some things only at one level."""

import os
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
LEVELS = ["-O0", "-O1", "-O2", "-O3"]


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


def checks():
    compilers = [own] + [other for other in OTHERS if shutil.which(other) and not same(own, other)]
    for compiler in compilers:
        names = list(standards_of(compiler))
        warnings = WARNINGS + (["-Wdocumentation"] if is_clang(compiler) else ["-Wuseless-cast"])
        for number, level in enumerate(LEVELS):
            standard = names[number % len(names)]
            yield [compiler, f"-std={standard}", level, *warnings, *arguments, f"-I{source}/include", "-c",
                   str(source / "tests/packages/headers.cpp"), "-o", os.devnull]


def check(command):
    done = compiles(*command)
    return "" if done.returncode == 0 else f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}"


with ThreadPoolExecutor(2) as pool:
    answers = list(pool.map(check, checks()))
failures = [answer for answer in answers if answer]
print("\n".join(failures))
print(f"[cases] {len(answers) - len(failures)} passed, {len(failures)} failed, 0 skipped")
sys.exit(1 if failures else 0)
