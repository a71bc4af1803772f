# SPDX-License-Identifier: BSL-1.0
"""Where and when numbers were measured."""

import datetime
import os
import platform
import re
import subprocess
import sys


def first_match(path, pattern, otherwise="unknown"):
    with open(path, encoding="utf-8") as text:
        found = re.search(pattern, text.read())
    return found[1].strip() if found else otherwise


def describe():
    """Lines of text."""
    compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], capture_output=True, text=True, check=True)
    cores = len(os.sched_getaffinity(0))
    gib = int(first_match("/proc/meminfo", r"MemTotal: *(\d+)", "0")) >> 20
    return [
        f"machine   {first_match('/proc/cpuinfo', r'model name[^:]*:(.*)')}, {cores} cores, {gib} GiB",
        f"kernel    {platform.system()} {platform.release()}",
        f"compiler  {compiler.stdout.splitlines()[0]}, buildtype=release",
        f"date      {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        f"command   tests/bench/run {' '.join(sys.argv[2:])}".rstrip(),
    ]


def load():
    """How busy the machine is, also with other things: one line."""
    return f"load      {' '.join(f'{load:.2f}' for load in os.getloadavg())}"
