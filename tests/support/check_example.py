#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs an example and compares what it prints with what its source says that it prints.

check_example.py program source [README.md] [--without PART]... [-- argument...]

With a README, its first C++ block must be the source and the block after it the output, to the letter. PART was not
built, so the program says this in place of the lines that begin with "PART: "."""

import os
import re
import subprocess
import sys
import tempfile

MARK = "Prints (`...` stands for anything):\n"
PROGRESS = re.compile(r"\d+ of \d+ (workers are still counting|still at work)")


def fail(text):
    print(text)
    print("[cases] 0 passed, 1 failed, 0 skipped")
    sys.exit(1)


def expected_lines(source, left_out):
    lines = source.split(MARK)[1].splitlines()
    expected = [re.sub("^(//|#)(   )?", "", line).rstrip() for line in lines]
    for part in left_out:
        expected = [f"{part}: left out of this build" if line.startswith(part + ": ") else line for line in expected]
    return expected


def pattern_of(line):
    return re.compile(".*".join(re.escape(part) for part in re.split(r" *\.\.\. *|\.\.\.", line)))


def compare(expected, printed):
    """Each expected line is printed once, nothing else is; workers print in any order."""
    left = [line for line in printed if not PROGRESS.fullmatch(line)]
    for line in expected:
        found = next((p for p in left if pattern_of(line).fullmatch(p)), None)
        if found is None:
            fail(f"not printed: {line!r}\nprinted: {printed}")
        left.remove(found)
    if left:
        fail(f"printed but not expected: {left}")


def compare_readme(readme, source, output):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    program = source.split("// " + MARK)[0].split("\n", 3)[3].strip()
    if blocks[0] != ("cpp", program + "\n"):
        fail("the README's program is not the example")
    shown = [line.rstrip() for line in blocks[1][1].splitlines()[1:]]  # the first line is the command
    if shown != output:
        fail(f"the README's output is not the example's: {shown} != {output}")


def main():
    arguments = sys.argv[1:]
    extra = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, extra = arguments[:cut], arguments[cut + 1:]
    left_out = []
    while "--without" in arguments:
        at = arguments.index("--without")
        left_out.append(arguments[at + 1])
        del arguments[at:at + 2]
    program, source_path = arguments[:2]
    source = open(source_path, encoding="utf-8").read()
    with tempfile.TemporaryDirectory() as directory:
        command = [os.path.abspath(one) if os.path.exists(one) else one for one in [program, *extra]]
        run = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=240)
    if run.returncode != 0 or run.stderr:
        fail(f"exit code {run.returncode}\n{run.stdout}{run.stderr}")
    # Cut paths down to examples/..., because they depend on where the compiler was called.
    shown = re.sub(r'File "[^"]*?(?=examples/)', 'File "', run.stdout)
    output = [line.rstrip() for line in shown.splitlines()]
    compare(expected_lines(source, left_out), output)
    if len(arguments) > 2:
        compare_readme(open(arguments[2], encoding="utf-8").read(), source, output)
    print("[cases] 1 passed, 0 failed, 0 skipped")


main()
