# SPDX-License-Identifier: MIT
"""Plants defects in a shared store, one at a time. The store's tests must fail with each.

Used by planted.py of each store: planted.py SOURCE_ROOT C_COMPILER... -- [NAME...]. With --fit (planted.py
SOURCE_ROOT --fit) it only checks that the code of each defect is found exactly once in src.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "mutants"))
from planting import fit, plant  # noqa: E402


class Store:
    """Describes a kind of store. name: the name of the store's folders. packages: the names for pkg-config.
    tests: its tests in addition to those of shared/. variable: the environment variable with the server's
    address.
    """

    def __init__(self, name, packages, tests, variable):
        self.name, self.packages, self.variable = name, packages, variable
        self.folder, self.tests = f"durable/{name}/", [f"shared/{test}" for test in ("bench.c", "test_session.c", "test_store.c")]
        self.tests += [f"{name}/{test}" for test in tests]

    def embed(self, root, source, text):
        """Returns the command that generates the C file `text` from the SQL or Lua files in the folder `source`."""
        raise NotImplementedError


class Builder:
    def __init__(self, store, root, compiler, folder):
        self.store, self.root, self.compiler, self.folder = store, root, compiler, folder
        ask = ["pkg-config", "--cflags", *store.packages, "criterion"]
        flags = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
        ask[1] = "--libs"
        self.libraries = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.split()
        tests = root / "tests/durable"
        self.flags = ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-w", *flags.split(), f"-I{root}/include", f"-I{root}/tests/support",
                      f"-I{tests}/shared"]
        self.tests = [tests / name for name in store.tests]

    def program(self, source, name):
        """Builds a test program. `source` is the tree src, with or without a defect."""
        folder = source / self.store.folder
        text, program = self.folder / f"{name}.c", self.folder / name
        subprocess.run(self.store.embed(self.root, folder, text), check=True)
        subprocess.run([*self.compiler, *self.flags, f"-I{source}", *map(str, self.tests), *map(str, sorted(folder.glob("*.c"))),
                        str(source / "durable/shared/peer.c"), str(text), "-o", str(program), *self.libraries], check=True)
        return program

    def found(self, program, address):
        try:
            return subprocess.run([program, "--quiet", "-j1", "--fail-fast"], capture_output=True, timeout=300,
                                  env={**os.environ, self.store.variable: address}).returncode != 0
        except subprocess.TimeoutExpired:
            return True


def main(store, planted, server_make):
    root, wrong = pathlib.Path(sys.argv[1]).resolve(), 0
    rows = [(name, store.folder + file, code, defect) for name, file, code, defect in planted]
    if sys.argv[2:] == ["--fit"]:
        return fit(root, rows)
    split = sys.argv.index("--")
    compiler, names = sys.argv[2:split], sys.argv[split + 1:]
    server = server_make()
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            builder = Builder(store, root, compiler, pathlib.Path(folder))
            if builder.found(builder.program(root / "src", "good"), server.address):
                print("NOT GOOD  without a defect")
                return 1
            for name, file, code, defect in rows:
                if names and name not in names:
                    continue
                with tempfile.TemporaryDirectory() as scratch:
                    tree = plant(root, pathlib.Path(scratch), file, code, defect)
                    caught = builder.found(builder.program(tree, "bad"), server.address)
                wrong += not caught
                print(f"{'found' if caught else 'NOT FOUND'}  {name}", flush=True)
    finally:
        server.end()
    print(f"planted defects: {wrong} not found")
    return 1 if wrong else 0
