# SPDX-License-Identifier: BSL-1.0
"""The same as methods.cpp by Python's multiprocessing: METHOD WORKERS RUNS MEMORY (MiB)"""

import json
import multiprocessing
import sys
import time


def when_inside(queue):
    queue.put(time.monotonic_ns())


def start_group(context, workers):
    """Until the last worker was inside, in microseconds for each."""
    queue = context.SimpleQueue()
    asked = time.monotonic_ns()
    processes = [context.Process(target=when_inside, args=(queue,)) for _ in range(workers)]
    for process in processes:
        process.start()
    last = max(queue.get() for _ in processes)
    for process in processes:
        process.join()
    return (last - asked) / 1000 / workers


def main():
    method, workers, runs, memory = sys.argv[1], *map(int, sys.argv[2:])
    touched = bytearray(b"x") * (memory << 20)
    context = multiprocessing.get_context(method)
    start_group(context, workers)
    print(json.dumps({"us": [start_group(context, workers) for _ in range(runs)]}))
    del touched


if __name__ == "__main__":
    main()
