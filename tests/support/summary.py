# SPDX-License-Identifier: BSL-1.0
"""Adds up how tests ended.

Shows the reason of every skip, then the output of every program that failed, and last the failures by name: the end
is what is read, and all that some places keep. A program that crashed, timed out or ended without its own count is one
failure on top of those that it counted."""

import re
import sys

CAUSE_LENGTH = 600  # of one failure, in the list at the end
COUNT = re.compile(r"^ *\[cases\] (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
SKIP = re.compile(r"^\[skipped\] (.*)$", re.MULTILINE)
FAILURE = re.compile(r"^\[failed\] (.*)$", re.MULTILINE)
FINDING = re.compile(r"^.*Sanitizer: .*$|^.*Sanitizer has .*$|^==\d+==ERROR: .*$|^.*: runtime error: .*$",
                     re.MULTILINE)  # of a sanitizer


def counts_of(entry):
    """(passed, failed, skipped) of one program."""
    found = COUNT.findall(entry.get("stdout") or "")
    passed, failed, skipped = (int(n) for n in found[-1]) if found else (0, 0, 0)
    result = entry["result"]
    if result == "SKIP":
        return passed, failed, skipped + 1
    if result != "OK" and failed == 0 or not found:
        failed += 1
    return passed, failed, skipped


def names_of_failures(entry):
    stdout = entry.get("stdout") or ""
    names = FAILURE.findall(stdout)
    if not names or not COUNT.search(stdout):
        names.append(f"the program itself ({entry['result']}, exit code {entry.get('returncode')})")
    return names


def cause_of(entry, name):
    """What doctest says of this case's first failed check, what a sanitizer says of the program, or its last words."""
    _, found, after = (entry.get("stdout") or "").partition(f"TEST CASE:  {name}\n")
    if found:
        _, error, text = after.partition("ERROR: ")
        return (error + re.split(r"\n====|\n\[", text, maxsplit=1)[0])[:CAUSE_LENGTH].strip()
    stderr = entry.get("stderr") or ""
    return "\n".join(FINDING.findall(stderr))[:CAUSE_LENGTH] or stderr[-CAUSE_LENGTH:].strip()


def show_failures(flavour, entry, file=sys.stdout):
    """The failed cases of one program, each with its cause."""
    for name in names_of_failures(entry):
        print(f"failed: {flavour}/{entry['name']}: {name}", file=file)
        for line in cause_of(entry, name).splitlines():
            print(f"    {line}", file=file)


def show_output(title, entry):
    print(f"--- output of {title} ({entry['result']}, exit code {entry.get('returncode')}) ---")
    print(SKIP.sub("", entry.get("stdout") or "").strip(), entry.get("stderr") or "", sep="\n")
    print("--- end ---")


def show(entries):
    """Of {flavour: [entry of a process]}; returns the exit code."""
    total = [0, 0, 0]
    failed = []  # (flavour, entry)
    for flavour, of_flavour in entries.items():
        for entry in of_flavour:
            counts = counts_of(entry)
            print(f"{flavour}/{entry['name']}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped"
                  f" ({entry['duration']:.1f} s, {entry.get('processor', 0):.1f} s of processors)")
            for skip in SKIP.findall(entry.get("stdout") or ""):
                print(f"    skipped: {skip}")
            if counts[1] > 0:
                failed.append((flavour, entry))
            total = [a + b for a, b in zip(total, counts)]
    for flavour, entry in failed:
        show_output(f"{flavour}/{entry['name']}", entry)
    for flavour, entry in failed:
        show_failures(flavour, entry)
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped", flush=True)
    return 1 if total[1] > 0 else 0

