#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the headers cost a user's compiler: compile_cost.py source compiler [argument...]

Compares CPU time of the compiler, not time on the clock, and only with that of another program compiled in turn, so
that a slow or busy machine changes both sides. The least of all runs counts. One run of each is enough where that says
that no ratio is too high; else all are measured again, some times, before it is a failure."""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

source = Path(sys.argv[1])
compiler = sys.argv[2:]
ROUNDS = 12

# name: (what is measured, by what, the highest ratio)
# Of <cohort/cohort.hpp>'s 2.0, Asio's executors and awaitables are 0.6, nlohmann-json, which user types need, is 0.6.
# Wanted are 1.6 and 2.0; measured were 1.66 to 2.02 and 1.94 to 2.36, the more the more the headers could do. The limits
# leave room for other machines' caches.
LIMITS = {
    "<cohort/cohort.hpp> to <asio.hpp>": ("cohort", "asio", 2.3),
    "examples/first.cpp to a coroutine of Asio": ("first", "coroutine", 2.7),
}


def cpu_time(file):
    """Seconds in user and system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*compiler, "-std=c++20", "-O0", f"-I{source}/include", "-c", file, "-o", os.devnull], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratios(least):
    return {name: least[what] / least[by] for name, (what, by, _) in LIMITS.items()}


with tempfile.TemporaryDirectory(prefix="cohort-test-compile-") as folder:
    files = {
        "asio": Path(folder) / "asio.cpp",
        "cohort": Path(folder) / "cohort.cpp",
        "coroutine": source / "tests/packages/plain_coroutine.cpp",
        "first": source / "examples/first.cpp",
    }
    files["asio"].write_text("#include <asio.hpp>\n")
    files["cohort"].write_text("#include <cohort/cohort.hpp>\n")
    least = dict.fromkeys(files, float("inf"))
    for _ in range(ROUNDS):
        for name, file in files.items():
            least[name] = min(least[name], cpu_time(file))
        too_high = [name for name, ratio in ratios(least).items() if ratio > LIMITS[name][2]]
        if not too_high:
            break

for name, seconds in least.items():
    print(f"{name}: {seconds:.2f} s of CPU")
for name, ratio in ratios(least).items():
    print(f"{name}: {ratio:.2f}, at most {LIMITS[name][2]}{' FAILED' if name in too_high else ''}")
print(f"[cases] {len(LIMITS) - len(too_high)} passed, {len(too_high)} failed, 0 skipped")
sys.exit(1 if too_high else 0)
