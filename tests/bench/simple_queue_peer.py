# SPDX-License-Identifier: BSL-1.0
"""The same as trips.cpp by SimpleQueues of Python's multiprocessing: trips BYTES COUNT, or stream COUNT"""

import json
import multiprocessing
import statistics
import sys
import time


def send_back(there, back, count):
    for _ in range(count):
        back.put(there.get())


def trips(size, count):
    """Microseconds of each, without the first ones."""
    context = multiprocessing.get_context("fork")
    there, back = context.SimpleQueue(), context.SimpleQueue()
    warm_up = count // 10 + 1
    other = context.Process(target=send_back, args=(there, back, warm_up + count))
    other.start()
    value, took = b"x" * size, []
    for _ in range(warm_up + count):
        before = time.perf_counter_ns()
        there.put(value)
        value = back.get()
        took.append((time.perf_counter_ns() - before) / 1000)
    other.join()
    return {"us": statistics.median(took[warm_up:])}


def pour(line, count):
    for _ in range(count):
        line.put(b"x" * 64)


def stream(count):
    """Messages a second, after the first one."""
    context = multiprocessing.get_context("fork")
    line = context.SimpleQueue()
    other = context.Process(target=pour, args=(line, count))
    other.start()
    line.get()
    before = time.perf_counter()
    for _ in range(count - 1):
        line.get()
    per_second = (count - 1) / (time.perf_counter() - before)
    other.join()
    return {"per_s": per_second}


if __name__ == "__main__":
    print(json.dumps({"trips": trips, "stream": stream}[sys.argv[1]](*map(int, sys.argv[2:]))))
