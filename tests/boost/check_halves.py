#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""No inline function is taken for another one: check_halves.py half half

The two halves are one text, compiled with two Asios, and are linked into one program. The linker keeps one of the
functions of one name. So each function of the library that has one name in both must use the same names in both."""

import re
import subprocess
import sys

FUNCTION = re.compile(r"^Relocation section '\.rela\.text\.(_Z\w*6cohort\w*)'")  # has a section of its own
USED = re.compile(r" R_\w+\s+\w+\s+(_Z\w+)")  # the other names are an object's own


def functions_of(path):
    """The names that each inline function of the library uses, in order."""
    found = {}
    told = subprocess.run(["readelf", "-rW", path], text=True, check=True, stdout=subprocess.PIPE).stdout
    names = []
    for line in told.splitlines():
        if line.startswith("Relocation section"):
            function = FUNCTION.match(line)
            names = found.setdefault(function[1], []) if function else []
        elif used := USED.search(line):
            names.append(used[1])
    return found


one, other = (functions_of(path) for path in sys.argv[1:])
common = one.keys() & other.keys()
differing = [name for name in sorted(common) if one[name] != other[name]]
for name in differing:
    print(f"differs: {name}: {' '.join(sorted(set(one[name]) ^ set(other[name])))}")
print(f"{len(common)} functions have one name, of {len(one)} and {len(other)}")
failed = bool(differing) or len(common) < 100  # else there is nothing to compare
print(f"[cases] {int(not failed)} passed, {int(failed)} failed, 0 skipped")
sys.exit(failed)
