#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Lets a libFuzzer program loose: check.py program NAME

10,000 inputs, with COHORT_TEST_LONG a million. It begins with seeds/NAME, and puts the words of NAME.dict, if there is
one, into what it makes up. What it trips over is shown in full."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def main(program, name):
    runs = 1_000_000 if os.environ.get("COHORT_TEST_LONG") else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        found = pathlib.Path(scratch, "found")  # of the inputs those that led to new code
        found.mkdir()
        command = [program, f"-runs={runs}", "-max_len=1024", "-timeout=20", "-print_final_stats=1",
                   f"-artifact_prefix={scratch}/", *(f"-dict={words}" for words in HERE.glob(f"{name}.dict")),
                   found, HERE / "seeds" / name]
        environment = {"ASAN_OPTIONS": "malloc_context_size=0", **os.environ}
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace")
        lines = run.stdout.splitlines()
        if run.returncode == 0 and any(line.startswith(f"Done {runs} runs") for line in lines):
            print(*[line for line in lines if line.startswith(("INFO: Seed", "Done", "stat::average"))], sep="\n")
            print("[cases] 1 passed, 0 failed, 0 skipped")
            return 0
        print(*lines[-80:], sep="\n")
        for culprit in pathlib.Path(scratch).glob("*-*"):
            print(f"{culprit.name}: {culprit.read_bytes()!r}")
    print("[cases] 0 passed, 1 failed, 0 skipped")
    return 1


sys.exit(main(*sys.argv[1:]))
