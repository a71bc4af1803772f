# SPDX-License-Identifier: BSL-1.0
"""The plan of the benchmarks: tables.py directory-of-bench [--quick] [--rounds N] [section...]"""

import argparse

import batch
import cuda
import hosts
import latency
import machine
import measure
import methods
import output
import pool
import scale
import sharing
import short_lived
import throws
import wanted

SECTIONS = {"short_lived": short_lived.run, "batch": batch.run, "scale": scale.run, "latency": latency.run,
            "methods": methods.run, "throws": throws.run, "sharing": sharing.run,
            "output": output.run, "pool": pool.run, "hosts": hosts.run, "cuda": cuda.run}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    words = parser.parse_intermixed_args()
    for section in words.sections:
        if section not in SECTIONS:
            parser.error(f"no such section: {section}")

    print("\n".join(machine.describe()))
    print(machine.load(), "before", flush=True)
    rounds = words.rounds or (3 if words.quick else 9)
    bench, facts = measure.Bench(words.directory), {}
    for name in words.sections or SECTIONS:
        SECTIONS[name](bench, facts, rounds, words.quick)
    wanted.report(facts)
    print(f"\n{machine.load()} after")


if __name__ == "__main__":
    main()
