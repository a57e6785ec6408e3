# SPDX-License-Identifier: MIT
"""Lists of mutants that somebody has looked at, with what was found.

equivalent.txt: they change nothing which can be seen, and the proof of that. hangs.txt: all that shows
them is a program that does not end, and why that is what a user would see.

Ids stand alone in their lines; the text for those directly above it is indented.
"""
from pathlib import Path


def reviewed_read(name):
    """Mutant id -> text."""
    texts, group, complete = {}, [], True
    for line in Path(__file__).with_name(name).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            complete = True
            for mutant in group:
                texts[mutant] = f"{texts[mutant]} {line.strip()}".strip()
            continue
        if complete:
            group, complete = [], False
        if line in texts:
            raise SystemExit(f"{name}: twice: {line}")
        group.append(line)
        texts[line] = ""
    missing = [mutant for mutant, text in texts.items() if not text]
    if missing:
        raise SystemExit(f"{name}: nothing is said of\n" + "\n".join(missing))
    return texts
