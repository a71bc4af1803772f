# SPDX-License-Identifier: BSL-1.0
"""Python as the host of function workers, by an extension module.

    PYTHONPATH=build/examples/plugin python3 examples/plugin/plugin.py"""

import _thread
import os
import tempfile
import threading

import sums

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, text in {"a": "1 2 3", "b": "4.5", "c": "6 seven"}.items():
        with open(name, "w", encoding="ascii") as file:
            file.write(text)

    print("sum:", sums.add_up("a", "b"))

    try:
        sums.add_up("a", "b", "c")
    except RuntimeError as e:  # with the text of the worker's exception, and where it was thrown
        print("failed:", str(e).strip())

    os.mkfifo("endless")
    try:
        threading.Timer(0.5, _thread.interrupt_main).start()  # as if Ctrl-C were pressed
        sums.add_up("a", "endless")  # its worker waits until somebody writes
    except KeyboardInterrupt:
        print("interrupted; the workers are stopped")

# Prints (`...` stands for anything):
#   sum: 10.5
#   failed: -- Process 2 terminated with the following error:
#   Traceback (most recent call last):
#     File "examples/plugin/sums.cpp", line ..., in sum_of(int, std::vector<std::string> const&)
#   std::runtime_error: cannot read the numbers in c
#   interrupted; the workers are stopped
