#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Copies sources as a user of Boost.Asio would write them: respell.py folder source...

A file that is there already and says the same is left alone, so that it is not compiled again."""

import re
import sys
from pathlib import Path

SPELLINGS = [
    (r"#include <asio/(error_code|system_error)", r"#include <boost/system/\1"),
    (r"#include <asio", "#include <boost/asio"),
    (r"\basio::(error_code|system_error)\b", r"boost::system::\1"),
    (r"\basio::", "boost::asio::"),
    (r"\bASIO_", "BOOST_ASIO_"),
]

folder = Path(sys.argv[1])
for name in sys.argv[2:]:
    source = Path(name)
    text = source.read_text(encoding="utf-8")
    for standalone, boost in SPELLINGS:
        text = re.sub(standalone, boost, text)
    copy = folder / source.name
    text = f'#line 1 "{source}"\n{text}'
    if not copy.exists() or copy.read_text(encoding="utf-8") != text:
        copy.write_text(text, encoding="utf-8")
