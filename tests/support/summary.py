# SPDX-License-Identifier: BSL-1.0
"""Adds up what Meson's logs say: summary.py flavour=testlog.json ...

Shows the reason of every skip, then the output of every program that failed, and last the failures by name: the end
is what is read, and all that some places keep. A program that crashed, timed out or ended without its own count is one
failure on top of those that it counted."""

import json
import os
import re
import sys

CAUSE_LENGTH = 600  # of one failure, in the list at the end
COUNT = re.compile(r"^ *\[cases\] (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
SKIP = re.compile(r"^\[skipped\] (.*)$", re.MULTILINE)
FAILURE = re.compile(r"^\[failed\] (.*)$", re.MULTILINE)
FINDING = re.compile(r"^.*Sanitizer: .*$|^.*Sanitizer has .*$|^==\d+==ERROR: .*$|^.*: runtime error: .*$",
                     re.MULTILINE)  # of a sanitizer


def entries(path):
    if not os.path.exists(path):
        return [{"name": path, "result": "ERROR", "stdout": "", "stderr": "Meson wrote no log"}]
    with open(path, encoding="utf-8", errors="replace") as log:
        return [json.loads(line) for line in log if line.strip()]


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


def show_output(title, entry):
    print(f"--- output of {title} ({entry['result']}, exit code {entry.get('returncode')}) ---")
    print(SKIP.sub("", entry.get("stdout") or "").strip(), entry.get("stderr") or "", sep="\n")
    print("--- end ---")


def main(arguments):
    total = [0, 0, 0]
    failed = []
    for argument in arguments:
        flavour, path = argument.split("=", 1)
        for entry in entries(path):
            counts = counts_of(entry)
            title = f"{flavour}/{entry['name']}"
            print(f"{title}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped"
                  f" ({entry.get('duration', 0):.1f} s)")
            for skip in SKIP.findall(entry.get("stdout") or ""):
                print(f"    skipped: {skip}")
            if counts[1] > 0:
                failed.append((title, entry))
            total = [a + b for a, b in zip(total, counts)]
    for title, entry in failed:
        show_output(title, entry)
    for title, entry in failed:
        for name in names_of_failures(entry):
            print(f"failed: {title}: {name}")
            for line in cause_of(entry, name).splitlines():
                print(f"    {line}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped", flush=True)
    return 1 if total[1] > 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
