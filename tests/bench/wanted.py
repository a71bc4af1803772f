# SPDX-License-Identifier: BSL-1.0
"""What cohort promises of itself, beside what was measured."""

import measure

PARENTS = ["small", "1 GiB touched", "10,000 descriptors"]


def report(facts):
    """A table of those promises for which there are facts."""
    rows = []

    def hold(what, value, bound, remark=""):
        rows.append([what, f"{value:,.3f}", f"{bound:,.3f}", "yes" if value <= bound else "NO", remark])

    if any(key[0] == "ratio" for key in facts):
        short_lived(facts, hold)
    if "resident" in facts:
        hold("a live worker: bytes resident", facts["resident"], 1024)
        hold("a live worker: descriptors", facts["descriptors"], 2)
    for (name, *size), value in facts.items():
        if name == "failure":
            hold(f"failure to first signal, us, {size[0]} workers", value, 1000)
    measure.print_table("Wanted of cohort", ["", "measured", "at most", "holds", "remark"], rows)


def short_lived(facts, hold):
    for at_once in (1, 64):
        for parent in PARENTS:
            for name in ("/bin/true", "static"):
                quiet = facts["quiet", (parent, name, at_once)]
                hold(f"loop late, us, {name}, {at_once} at a time, {parent}", facts["late", (parent, name, at_once)],
                     quiet + 1000, f"in the best round; a loop that starts nothing: {quiet:,.0f}, and one tick")
    for at_once in (1, 64):
        ratio(facts, hold, "posix_spawn", ("small", "/bin/true", at_once), 1.05)
    for parent, share in (("small", 0.5), ("1 GiB touched", 0.02)):
        for at_once in (1, 64):
            for peer in ("boost", "libuv"):
                ratio(facts, hold, peer, (parent, "static", at_once), share)
    for at_once in (1, 64):
        ratio(facts, hold, "posix_spawn", ("10,000 descriptors", "static", at_once), 1.0)
    for at_once, most in ((1, 14), (64, 10)):
        hold(f"system calls per child, {at_once} at a time", facts["calls", "small", at_once], most)


def ratio(facts, hold, peer, case, most):
    parent, name, at_once = case
    hold(f"wall time / {peer}, {name}, {at_once} at a time, {parent}", facts["ratio", peer, case], most,
         f"of the lowest rounds: {facts['lowest', peer, case]:.2f}, a raw clone: {facts['floor', peer, case]:.2f}")
