# SPDX-License-Identifier: MIT
"""Builds: the library once, then for a mutant only what its one file changes.

A flavour is a way to build. Its test programs are built once, against a shared library; a mutant
costs the files that include what it changes and one link, and the programs find it by the folder.
"""
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ORDERS = Path(__file__).with_name("orders.h")


class BuildError(Exception):
    pass


def run_quietly(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")


class Users:
    """Which files a changed file concerns: those that include it and name one of its functions."""

    def __init__(self, root, inline_calls):
        self.root = root
        self.inline_calls = inline_calls  # of each function in a header: the names in its body
        self.text = {}
        self.included = {}

    def read(self, path):
        if path not in self.text:
            self.text[path] = path.read_text()
        return self.text[path]

    def includes(self, path):
        """What a file includes, at any depth."""
        if path not in self.included:
            found = self.included[path] = set()
            for name in INCLUDE.findall(self.read(path)):
                other = self.root / "src" / name
                if other.exists():
                    found |= {other} | self.includes(other)
        return self.included[path]

    def of(self, mutant, files):
        path = self.root / mutant.path
        if path.suffix == ".c":
            return [path]
        names = {mutant.function}
        while True:
            more = {name for name, words in self.inline_calls.items() if words & names} - names
            if not more:
                break
            names |= more
        word = re.compile(r"\b(?:" + "|".join(sorted(names)) + r")\b")
        return [f for f in files if path in self.includes(f) and word.search(self.read(f))]


class Flavour:
    """Compile flags, the files that a mutant may change, and what is made of their objects."""

    def __init__(self, name, cc, flags, root, folder):
        self.name, self.cc, self.root = name, cc, root
        self.flags = ["-std=gnu11", "-D_GNU_SOURCE", "-w", "-fexceptions", "-pthread", *flags]
        self.folder = folder / name
        self.newest = max(f.stat().st_mtime for part in ("src", "include", "tests") for f in (root / part).rglob("*.[ch]"))
        # Not the libraries beside, which want GLib's and libuv's headers.
        self.files = sorted(f for f in (root / "src").rglob("*.c") if f.parent.name != "executors")
        self.inside = [f"-I{root / 'src'}", f"-I{root / 'include'}"]

    def object_of(self, file, folder):
        return folder / ("_".join(file.relative_to(self.root).parts) + ".o")

    def compile(self, file, made, *more):
        if not self.fresh(made):
            run_quietly([self.cc, *self.flags, *more, *self.inside, "-c", file, "-o", made])

    def fresh(self, made):
        """Made by an earlier run in the same folder, and nothing has changed since."""
        return made.exists() and made.stat().st_mtime > max(self.newest, Path(__file__).stat().st_mtime)

    def prepare(self, pool):
        """The objects as they are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        list(pool.map(self.compile, self.files, [self.object_of(f, self.folder) for f in self.files]))
        self.link([self.object_of(f, self.folder) for f in self.files], self.folder)

    def link(self, objects, folder):
        raise NotImplementedError

    def build_mutant(self, mutant, folder, users):
        """Builds into `folder`, whose src/ has the one file that is another."""
        made = folder / self.name
        made.mkdir()
        changed = {}
        for file in users.of(mutant, self.files):
            given = folder / mutant.path if mutant.path.endswith(".c") else file
            changed[file] = self.object_of(file, made)
            self.compile(given, changed[file], "-include", ORDERS, f"-I{folder / 'src'}")
        self.link([changed.get(f, self.object_of(f, self.folder)) for f in self.files], made)


class Shared(Flavour):
    """A shared library, its insides visible, and programs that find it by LD_LIBRARY_PATH."""

    libraries = ["-lurcu-bp", "-lurcu-cds", "-lck"]

    def link(self, objects, folder):
        library = folder / "libmutant.so"
        run_quietly([self.cc, *self.flags, "-shared", "-Wl,-z,nodelete", "-o", library, *objects, *self.libraries])

    def search(self):
        """Where test programs include from."""
        tests = self.root / "tests"
        return ["-isystem", tests / "standin", *(f"-I{tests / name}" for name in ("support", "race", "wheel"))]

    def part(self, file, *more):
        """An object that programs share."""
        made = self.object_of(file, self.folder)
        self.compile(file, made, *self.search(), *more)
        return made

    def program(self, name, files, parts, *more):
        made = self.folder / name
        link = [f"-L{self.folder}", "-lmutant", *self.libraries]
        listed = f'-DTESTS_MAP="{self.root / "src/tickwheel.map"}"'
        if self.fresh(made):
            return
        run_quietly([self.cc, *self.flags, *self.search(), *self.inside, listed, *more, *files, *parts, "-o", made, *link])

    def command(self, folder, program, arguments):
        return [self.folder / program, *arguments], {"LD_LIBRARY_PATH": folder / self.name if folder else self.folder}


class Model(Flavour):
    """The model checks (tests/model/run.sh says how they are built): one program of all objects."""

    def __init__(self, cc, root, folder):
        seen = ["-O1", "-g", "-U_FORTIFY_SOURCE", "-fsanitize=thread", "-U__SANITIZE_THREAD__", "-D_Thread_local="]
        seen += ["-Dtwi_thread_self=(*model_thread_self())", "-Dtwi_timer_seen=(*model_timer_seen())", "-Dtwi_keyed_seen=(*model_keyed_seen())", "-DTWI_RCU_BY_CALL", "-DTWI_TSC_READ_EARLY=twi_tsc_read", "-DTWI_RING_BITS=2", "-DTWI_RING_BUSY=3", "-DTWI_CHUNK_TASKS=2"]
        super().__init__("model", cc, seen + machine_flags(), root, folder)
        self.model = root / "tests/model"
        runtime = sorted((self.model / "runtime").glob("*.c"))
        self.runtime = [file for file in runtime if file.name != "thread_data.c"]
        self.files += [self.model / "runtime/thread_data.c", *sorted(self.model.glob("*.c"))]
        shim = [f"-I{self.model}", f"-I{self.model / 'runtime/shim'}"]
        self.inside = shim + self.inside
        self.wraps = [f"-Wl,--wrap={name}" for name in (self.model / "runtime/wrapped.txt").read_text().split()]

    def prepare(self, pool):
        self.folder.mkdir(parents=True, exist_ok=True)
        list(pool.map(self.compile_runtime, self.runtime))
        super().prepare(pool)

    def compile_runtime(self, file):
        flags = ["-std=gnu11", "-D_GNU_SOURCE", "-w", "-O3", "-g", "-U_FORTIFY_SOURCE", "-fexceptions", "-fno-strict-aliasing"]
        made = self.object_of(file, self.folder)
        if not self.fresh(made):
            run_quietly([self.cc, *flags, *self.inside, "-c", file, "-o", made])

    def link(self, objects, folder):
        runtime = [self.object_of(file, self.folder) for file in self.runtime]
        run_quietly([self.cc, "-no-pie", "-o", folder / "model", *runtime, *objects, *self.wraps, "-pthread"])

    def command(self, folder, program, arguments):
        return [(folder / self.name if folder else self.folder) / program, *arguments], {}

    def harnesses(self):
        """Names, as the program lists them."""
        done = subprocess.run([self.folder / "model", "--list"], capture_output=True, text=True, check=True)
        return [line.split()[0] for line in done.stdout.splitlines()]


def machine_flags():
    return ["-mcx16", "-mprfchw"] if os.uname().machine == "x86_64" else []
