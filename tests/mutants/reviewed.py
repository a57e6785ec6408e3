# SPDX-License-Identifier: MIT
"""Lists of mutants that were reviewed, with the result.

equivalent.txt: mutants without a visible effect, each with the proof. hangs.txt: mutants that only a
hang of a program can show, each with the reason why a user would see the same hang.

Each id has a line of its own. The indented text below belongs to the ids directly above it.
"""
from pathlib import Path


def reviewed_read(name):
    """Returns mutant id -> text."""
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
