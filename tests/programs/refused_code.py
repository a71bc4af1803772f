# SPDX-License-Identifier: BSL-1.0
"""Compiles refused_code.cpp as the build compiles its neighbours and looks for the sentences that its users read:
refused_code.py BUILD_DIRECTORY"""

import json
import os
import re
import shlex
import subprocess
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "refused_code.cpp")
NEIGHBOUR = "traced.cpp"  # one without a precompiled header


def compiler(build):
    """The command that compiles a program of this folder, without its files."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as commands:
        entry = next(e for e in json.load(commands) if e["file"].endswith("/programs/" + NEIGHBOUR))
    kept = []
    words = iter(shlex.split(entry["command"]))
    for word in words:
        if word in ("-o", "-c", "-MF", "-MQ"):
            next(words)
        elif word not in ("-MD", "-Werror"):
            kept.append(word)
    return kept + ["-fsyntax-only", SOURCE], entry["directory"]


def compile_with(build, *options):
    command, directory = compiler(build)
    done = subprocess.run(command + list(options), cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, command


def kind_of(command):
    """("clang" or "gcc", the version that it says it is compatible with)."""
    macros = subprocess.run([*command[:-2], "-dM", "-E", "-x", "c++", "/dev/null"],
                            capture_output=True, text=True, check=True).stdout
    return "clang" if "__clang__" in macros else "gcc", int(re.search(r"__GNUC__ (\d+)", macros).group(1))


def expected(kind):
    """(line number, sentence, whether an error says it) of each refusal. Other sentences stand in lines of the headers
    that the compiler shows. GCC before 13 has one of its own, and Clang another: GCC does not warn where the result of
    co_await is dropped."""
    with open(SOURCE, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            found = re.search(r"// (Clang: |shows: )?(cohort: .*|GCC 12: .*)$", line)
            if not found or found.group(1) == "Clang: " and kind[0] != "clang":
                continue
            if kind[0] == "gcc" and kind[1] < 13 or not found.group(2).startswith("GCC"):
                yield number, found.group(2), found.group(1) != "shows: "


NEEDS = {"-fno-rtti": "RTTI", "-fno-exceptions": "exceptions", "-std=c++17": "C++20"}


def refuses_to_do_without(build, option):
    """Whether the first error says so; the compiler stops there."""
    status, messages, _ = compile_with(build, option, "-fno-diagnostics-color", "-Wfatal-errors")
    first = next((line for line in messages.splitlines() if "error:" in line), "")
    if status != 0 and f"cohort: needs {NEEDS[option]}" in first:
        return True
    print(f"refused code: with {option} the first error is \"{first}\"")
    return False


def main(build):
    failed = 0
    status, messages, command = compile_with(build)
    if status != 0:
        failed += 1
        print("refused code: what is allowed does not compile:", messages, sep="\n")
    kind = kind_of(command)
    every_error = "-ferror-limit=0" if kind[0] == "clang" else "-fmax-errors=0"
    status, messages, _ = compile_with(build, "-DREFUSED", "-fno-diagnostics-color",
                                       "-Werror=unused-result", every_error)
    cases = list(expected(kind))
    errors = [line for line in messages.splitlines() if "error:" in line]
    failed += sum(not refuses_to_do_without(build, option) for option in NEEDS)
    for number, sentence, is_error in cases:
        wanted = sum(other == sentence for _, other, _ in cases)  # other lines may be refused by the same sentence
        if status == 0 or sum(sentence in line for line in (errors if is_error else messages.splitlines())) < wanted:
            failed += 1
            print(f"refused code: line {number} does not say \"{sentence}\"")
        elif f"refused_code.cpp:{number}:" not in messages:
            failed += 1
            print(f"refused code: no message names line {number}")
    if failed:
        print(messages)
    print(f"[cases] {len(cases) + 1 + len(NEEDS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
