# SPDX-License-Identifier: BSL-1.0
"""Workers write files, a thread for each file tails it and prints its lines with a tag: the algorithm of torch's
TailLog (torch/distributed/elastic/multiprocessing/tail_log.py).  tail_files_peer.py WRITER WORKERS BYTES"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

INTERVAL_S = 0.1  # torch's default


def tail(tag, path, to, finished):
    while not os.path.exists(path):
        if finished.is_set():
            return
        time.sleep(INTERVAL_S)
    with open(path, encoding="utf-8", errors="replace") as text:
        while True:
            line = text.readline()
            if line:
                to.write(f"{tag}{line}")
            elif finished.is_set():
                return
            else:
                time.sleep(INTERVAL_S)


def main():
    writer, workers, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory, open("/dev/null", "w", encoding="utf-8") as to:
        paths = [os.path.join(directory, f"{i}.log") for i in range(workers)]
        finished = threading.Event()
        begun, before = time.perf_counter(), cpu()
        threads = [threading.Thread(target=tail, args=(f"[{i}]: ", path, to, finished))
                   for i, path in enumerate(paths)]
        for thread in threads:
            thread.start()
        children = []
        for path in paths:
            with open(path, "wb") as out:
                children.append(subprocess.Popen([writer, str(size // workers)], stdout=out))
        for child in children:
            child.wait()
        ended = time.perf_counter()
        finished.set()
        for thread in threads:
            thread.join()
        wall = time.perf_counter() - begun
        print(json.dumps({"cpu_s": cpu() - before, "wall_s": wall, "mb_s": size / wall / 1e6,
                          "after_s": time.perf_counter() - ended}))


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
