# SPDX-License-Identifier: BSL-1.0
"""Prints which files of unit tests ThreadSanitizer can find something in: threaded_files.py FILE...

Those that name what makes or meets a thread; and of the others each sixth, another one with each commit, so that six
commits compile and run all, as runner.py does with cases. With COHORT_TEST_LONG all."""

import os
import re
import sys
import zlib
from pathlib import Path

from runner import PARTS, turn

MEETS_THREADS = re.compile(
    r"<(thread|future|atomic|mutex|condition_variable|stop_token|pthread\.h|asio/?.*)>|\"loop/|group_test\.hpp|watchdog\.hpp|"
    r"dispose|sweeper|background")

part = turn()
for name in sys.argv[1:]:
    if (os.environ.get("COHORT_TEST_LONG") or MEETS_THREADS.search(Path(name).read_text())
            or zlib.crc32(Path(name).name.encode()) % PARTS == part):
        print(name)
