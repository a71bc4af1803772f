# SPDX-License-Identifier: BSL-1.0
"""Runs the program `bench`, one measurement a process, and prints what came out."""

import collections
import json
import os
import statistics
import subprocess
import tempfile

import syscalls


class Bench:
    """The directory with `bench` and the programs that it starts."""

    def __init__(self, directory):
        self.directory = directory

    def program(self, name):
        return os.path.join(self.directory, name)

    def command(self, section, words):
        return [self.program("bench"), section] + [f"{name}={value}" for name, value in words.items()]

    def measure(self, section, **words):
        """What one run of a section says."""
        return json_of(self.command(section, words))

    def measure_beside(self, load, loads, section, **words):
        """The same while another process runs the section `loads` with the words of `load`."""
        other = subprocess.Popen(self.command(loads, load), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            return self.measure(section, **words)
        finally:
            other.kill()
            other.wait()

    def calls(self, section, **words):
        """Counter of the system calls of one run, without those of its children."""
        with tempfile.NamedTemporaryFile() as log:
            subprocess.run(["strace", "-f", "-qq", "-o", log.name] + self.command(section, words),
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
            return syscalls.count(log.name)

    def calls_per_child(self, waves, at_once, **words):
        """By name."""
        every = self.calls_for_each("short_lived", "waves", waves, at_once=at_once, **words)
        return collections.Counter({name: n / at_once for name, n in every.items()})

    def calls_for_each(self, section, counts, count, **words):
        """By name, for one of what the word `counts` counts. Twice as many less once: what is done only once is not
        in it."""
        once = self.calls(section, **{counts: count}, **words)
        twice = self.calls(section, **{counts: 2 * count}, **words)
        twice.subtract(once)
        return collections.Counter({name: n / count for name, n in twice.items() if n > 0})


def json_of(command):
    """What a program prints."""
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def median(results, name):
    return statistics.median(result[name] for result in results)


def ratio(results, others, name):
    """The median of the rounds' own ratios: both peers had the same weather in a round."""
    return statistics.median(mine[name] / theirs[name] for mine, theirs in zip(results, others))


def number(value, digits=1):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.{0 if abs(value) >= 1000 else digits}f}"


def print_table(title, columns, rows):
    """The first column to the left, all others to the right."""
    cells = [columns] + [[number(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}\n")
    for row in cells:
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(["", row[0].ljust(widths[0])] + rest).rstrip(), flush=True)
