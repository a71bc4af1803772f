#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Drives examples/server with a hundred clients at once, and looks for what they leave behind.

check_server.py program"""

import asyncio
import os
import signal
import subprocess
import sys
import time

CLIENTS = 100
PATIENCE = 280  # seconds: a bound on hangs
ENDLESS = 10**12


def children_of(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as children:
            found += children.read().split()
    return found


def workers_of(pid):
    """Not the child that makes the guardian, which may still be there."""
    def is_worker(child):
        with open(f"/proc/{child}/cmdline", "rb") as line:
            return b"--cohort-worker" in line.read()
    return [int(child) for child in children_of(pid) if is_worker(child)]


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


async def lines_for(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    lines = (await reader.read()).decode().splitlines()
    writer.close()
    return lines


async def counts(port):
    assert (await lines_for(port, f"primes 10000 {PATIENCE}\n"))[-1] == "1229 primes"


async def half_closes(port):
    """Sends no more, but waits for the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"primes 10000 {PATIENCE}\n".encode())
    writer.write_eof()
    assert (await reader.read()).decode().splitlines()[-1] == "1229 primes"
    writer.close()


async def hangs_up(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"primes {ENDLESS} {PATIENCE}\n".encode())
    assert await reader.readline() == b"2 workers\n"
    writer.close()


async def hangs_up_at_once(port):
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"primes {ENDLESS} {PATIENCE}\n".encode())
    writer.close()


async def runs_out_of_time(port):
    lines = await lines_for(port, f"primes {ENDLESS} 1\n")
    lines = [line for line in lines if line != "still at work"]
    assert lines in (["2 workers", "not done within 1s"], ["not done within 1s"]), lines


async def has_a_worker_killed(port, server):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"primes {ENDLESS} {2 * PATIENCE}\n".encode())
    assert await reader.readline() == b"2 workers\n"
    os.kill(workers_of(server)[0], signal.SIGKILL)
    lines = (await asyncio.wait_for(reader.read(), PATIENCE)).decode().splitlines()
    writer.close()
    assert any(line.startswith("failed: ") and line.endswith(" terminated with signal SIGKILL") for line in lines), lines


async def asks_nonsense(port):
    assert await lines_for(port, "primes many\n") == ["please send: primes LIMIT SECONDS"]


async def asks_for_one_of_each(port, server):
    await has_a_worker_killed(port, server)
    await counts(port)
    await half_closes(port)
    await hangs_up(port)


async def crowd(port):
    kinds = [counts, hangs_up, counts, hangs_up_at_once, asks_nonsense, half_closes, hangs_up, counts, counts,
             runs_out_of_time]
    await asyncio.wait_for(asyncio.gather(*(kinds[i % len(kinds)](port) for i in range(CLIENTS))), PATIENCE)


def settles(what, wanted):
    end = time.monotonic() + PATIENCE
    while what() > wanted and time.monotonic() < end:
        time.sleep(0.01)
    return what() <= wanted


def check(program):
    server = subprocess.Popen([program, "0"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().split()[-1])
        asyncio.run(asks_for_one_of_each(port, server.pid))
        assert settles(lambda: len(children_of(server.pid)), 0), "the first clients left children"
        before = descriptors_of(server.pid)
        asyncio.run(crowd(port))
        assert settles(lambda: len(children_of(server.pid)), 0), f"children are left: {children_of(server.pid)}"
        assert settles(lambda: descriptors_of(server.pid), before), "descriptors are left"
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0, f"the server ended with {server.returncode}"


if __name__ == "__main__":
    check(sys.argv[1])
    print("[cases] 1 passed, 0 failed, 0 skipped")
