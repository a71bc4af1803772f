#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the headers cost a user's compiler: compile_cost.py source compiler [argument...]

Compares the memory that GCC allocates, which grows with its work and is the same in each run, however busy the machine
is. Its time is printed, and decides nothing."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

source = Path(sys.argv[1])
compiler = sys.argv[2:]

# name: (what is measured, by what, the highest ratio)
# Of <cohort/cohort.hpp>, Asio's executors and awaitables, and nlohmann-json, which user types need, are a third each.
# Measured were 1.86 and 2.12, of time 1.7 to 2.0 and 1.9 to 2.4. The limits leave room for other versions of Asio.
LIMITS = {
    "<cohort/cohort.hpp> to <asio.hpp>": ("cohort", "asio", 2.0),
    "examples/first.cpp to a coroutine of Asio": ("first", "coroutine", 2.3),
}
UNITS = {"k": 1 / 1024, "M": 1, "G": 1024}


def cost(file):
    """MiB that the compiler allocates, and its seconds in user and system mode."""
    report = subprocess.run(
        [*compiler, "-std=c++20", "-O0", "-ftime-report", f"-I{source}/include", "-c", file, "-o", os.devnull],
        check=True, stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}).stderr
    user, system, size, unit = re.search(r"TOTAL +: +([\d.]+) +([\d.]+) .* ([\d.]+)([kMG])", report).groups()
    return float(size) * UNITS[unit], float(user) + float(system)


with tempfile.TemporaryDirectory(prefix="cohort-test-compile-") as folder:
    files = {
        "asio": Path(folder) / "asio.cpp",
        "cohort": Path(folder) / "cohort.cpp",
        "coroutine": source / "tests/packages/plain_coroutine.cpp",
        "first": source / "examples/first.cpp",
    }
    files["asio"].write_text("#include <asio.hpp>\n")
    files["cohort"].write_text("#include <cohort/cohort.hpp>\n")
    costs = {name: cost(file) for name, file in files.items()}

for name, (size, seconds) in costs.items():
    print(f"{name}: {size:.0f} MiB, {seconds:.2f} s of CPU")
failed = 0
for name, (what, by, highest) in LIMITS.items():
    ratio = costs[what][0] / costs[by][0]
    failed += ratio > highest
    print(f"{name}: {ratio:.2f}, at most {highest}{' FAILED' if ratio > highest else ''}")
print(f"[cases] {len(LIMITS) - failed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)
