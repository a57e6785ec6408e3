# SPDX-License-Identifier: MIT
"""equivalent.txt: the mutants that change nothing which can be seen, with the proof.

Ids stand alone in their lines; the proof of those directly above it is indented.
"""
from pathlib import Path


def equivalents_read():
    """Mutant id -> proof."""
    proofs, group, proven = {}, [], True
    for line in Path(__file__).with_name("equivalent.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            proven = True
            for name in group:
                proofs[name] = f"{proofs[name]} {line.strip()}".strip()
            continue
        if proven:
            group, proven = [], False
        if line in proofs:
            raise SystemExit(f"equivalent.txt: twice: {line}")
        group.append(line)
        proofs[line] = ""
    missing = [name for name, proof in proofs.items() if not proof]
    if missing:
        raise SystemExit("equivalent.txt: no proof for\n" + "\n".join(missing))
    return proofs
