# SPDX-License-Identifier: BSL-1.0
"""The same as pool_trips.cpp by Python's pools: trips PEER BYTES COUNT, or rate PEER WORKERS IN_FLIGHT COUNT"""

import collections
import concurrent.futures
import json
import statistics
import sys
import time


def executor(peer, workers):
    if peer == "loky":
        from joblib.externals import loky
        return loky.get_reusable_executor(workers)
    return concurrent.futures.ProcessPoolExecutor(workers)


def echo(value):
    return value


def trips(peer, size, count):
    """Microseconds of each, without the first ones."""
    pool = executor(peer, 1)
    warm_up = int(count) // 10 + 1
    value, took = b"x" * int(size), []
    for _ in range(warm_up + int(count)):
        before = time.perf_counter_ns()
        value = pool.submit(echo, value).result()
        took.append((time.perf_counter_ns() - before) / 1000)
    pool.shutdown()
    return {"us": statistics.median(took[warm_up:]), "p99_us": statistics.quantiles(took[warm_up:], n=100)[-1]}


def make_calls(pool, in_flight, count):
    value, calls = b"x" * 64, collections.deque()
    for _ in range(count):
        if len(calls) == in_flight:
            calls.popleft().result()
        calls.append(pool.submit(echo, value))
    while calls:
        calls.popleft().result()


def rate(peer, workers, in_flight, count):
    """Microseconds for each."""
    pool = executor(peer, int(workers))
    make_calls(pool, int(in_flight), int(count) // 10)
    before = time.perf_counter()
    make_calls(pool, int(in_flight), int(count))
    took = time.perf_counter() - before
    pool.shutdown()
    return {"us": took * 1e6 / int(count)}


if __name__ == "__main__":
    print(json.dumps({"trips": trips, "rate": rate}[sys.argv[1]](*sys.argv[2:])))
