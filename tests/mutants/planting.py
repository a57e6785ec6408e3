# SPDX-License-Identifier: MIT
"""Plants defects in copies of src/. A row begins with a name, a file, the code, and the defect that replaces
it.
"""
import shutil


def places(tree, file, code):
    path = tree / file
    return path.read_text().count(code) if path.exists() else 0


def plant(root, scratch, file, code, defect):
    """Returns a copy of src with the defect."""
    tree = scratch / "src"
    shutil.copytree(root / "src", tree)
    if places(tree, file, code) != 1:
        raise LookupError(f"{file} has the code {places(tree, file, code)} times: {code}")
    (tree / file).write_text((tree / file).read_text().replace(code, defect))
    return tree


def fit(root, rows):
    """Checks that the code of each defect occurs once in src. Returns an exit code."""
    wrong = [row for row in rows if places(root / "src", row[1], row[2]) != 1]
    for name, file, code, *_ in wrong:
        print(f"{name}: {file} has the code {places(root / 'src', file, code)} times: {code}")
    print(f"{len(rows) - len(wrong)} of {len(rows)} planted defects have their place")
    return 1 if wrong or not rows else 0
