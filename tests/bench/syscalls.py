# SPDX-License-Identifier: BSL-1.0
"""Counts the system calls of one process, all its threads but none of its children, in a log of strace -f."""

import collections
import re

LINE = re.compile(r"^(\d+) +(?:<\.\.\. )?(\w+)(\(| resumed>)")
INTERRUPTED = re.compile(r"= (-1 EINTR|\? ERESTART)")
NEW_TASK = re.compile(r"\b(?:clone|clone3|fork|vfork)(?:\(| resumed>).*= (\d+)(?: |$)")


def count(path):
    """A Counter by name."""
    with open(path, encoding="utf-8", errors="replace") as log:
        lines = [line.rstrip("\n") for line in log]
    ours = threads(lines)
    calls = collections.Counter()
    # Under strace even an ignored signal interrupts a call. The repetition of that
    # call is not the program's own.
    handles_sigchld = any(re.search(r"rt_sigaction\(SIGCHLD, {sa_handler=0x", line) for line in lines
                          if line.split(None, 1)[0] in ours)
    for line in lines:
        found = LINE.match(line)
        if not found or found[1] not in ours:
            continue
        if found[3] == "(":
            calls[found[2]] += 1
        if not handles_sigchld and INTERRUPTED.search(line):
            calls[found[2]] -= 1
    return calls


def threads(lines):
    """The ids of the first process's threads. A call that blocks is two lines, the flags in the first of them."""
    ours = {lines[0].split(None, 1)[0]}
    makes_thread = {}
    for line in lines:
        caller = line.split(None, 1)[0]
        if caller not in ours:
            continue
        if re.search(r"\b(clone|clone3|fork|vfork)\(", line):
            makes_thread[caller] = "CLONE_THREAD" in line
        found = NEW_TASK.search(line)
        if found and makes_thread.get(caller):
            ours.add(found[1])
    return ours
