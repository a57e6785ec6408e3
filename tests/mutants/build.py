# SPDX-License-Identifier: MIT
"""Builds the library once, then for each mutant only the objects that its changed file affects.

A flavour is a set of compiler flags. Its test programs are built once, against a shared library. A mutant
costs the files that include what it changes, and one link. The programs find the mutant's library by its
folder.

An object is compiled from the preprocessed text of its file, without line numbers and comments. It is kept
by the hash of that text, so the same text is not compiled again. Two objects are the same if the hash of
their code without debug information is the same.
"""
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
HERE = Path(__file__).resolve().parent
ORDERS = HERE / "orders.h"
COVER = HERE / "cover.c"
# A test that waits for an event gives up before TESTS_ALARM_S ends it (checks.py: after 5 s at the earliest). So an
# assertion fails, and the mutant does not count as a hang.
PATIENCE = "-DPATIENCE_NS=(4*NS_PER_S)"
# Folders of the companion libraries, which the checks do not link.
BESIDE = {"durable", "hosts"}


def harness_files(model):
    """Returns the source files of the model checks, without the runtime."""
    return sorted(path for path in model.rglob("*.c") if path.relative_to(model).parts[0] not in ("runtime", "genmc"))


def searched(tests):
    """Returns the folders in which test programs find their headers."""
    own = ("support", "race/harness", "wheel", "oracle", "freeze/stand", "../perf")
    return [*(tests / name for name in own), *sorted(path for path in (tests / "unit").iterdir() if path.is_dir())]



class BuildError(Exception):
    pass


def run_quietly(command, given=None):
    """Runs a command with `given` as its input. Returns its output."""
    done = subprocess.run(command, capture_output=True, input=given, check=False)
    if done.returncode != 0:
        raise BuildError(f"{shlex.join(map(str, command))}\n{(done.stdout[-4000:] + done.stderr).decode(errors='replace')}")
    return done.stdout


def hash_of(*parts):
    made = hashlib.sha256()
    for part in parts:
        made.update(part if isinstance(part, bytes) else str(part).encode())
        made.update(b"\0")
    return made.hexdigest()[:24]


class Users:
    """Finds the files that a change of one file affects: the file itself, and those that include it. Of the files that
    include a header, only those count that name one of its functions.
    """

    def __init__(self, root, inline_calls):
        self.root = root
        self.inline_calls = inline_calls  # function of a header -> the names in its body
        self.text = {}
        self.included = {}

    def read(self, path):
        if path not in self.text:
            self.text[path] = path.read_text()
        return self.text[path]

    def includes(self, path):
        """Returns the files that a file includes, at any depth."""
        if path not in self.included:
            found = set()
            for name in INCLUDE.findall(self.read(path)):
                other = self.root / "src" / name
                if other.exists():
                    found |= {other} | self.includes(other)
            # Set only when complete. Otherwise another thread could read a part of it, build too little of a
            # mutant, and call the mutant the same.
            self.included[path] = found
        return self.included[path]

    def of(self, mutant, files):
        path = self.root / mutant.path
        if path.suffix == ".c":
            return [f for f in files if f == path or path in self.includes(f)]
        names = {mutant.function}
        while True:
            more = {name for name, words in self.inline_calls.items() if words & names} - names
            if not more:
                break
            names |= more
        word = re.compile(r"\b(?:" + "|".join(sorted(names)) + r")\b")
        return [f for f in files if path in self.includes(f) and word.search(self.read(f))]


class Flavour:
    """The compile flags, the files that a mutant may change, and the programs that their objects are linked
    into.
    """

    def __init__(self, name, cc, flags, root, folder):
        self.name, self.cc, self.root = name, cc, root
        self.flags = ["-std=gnu11", "-D_GNU_SOURCE", "-w", "-fexceptions", "-pthread", *flags]
        self.folder = folder / name
        self.kept = folder / "objects"
        self.compiler = hash_of(run_quietly([cc, "--version"]), *self.flags)
        # Of the library of durable timers, only the files that the model checks run.
        shared = {root / "src/durable" / name for name in ("file/claim.c", "fresh/table.c", "request.c", "stage.c")}
        self.files = sorted(f for f in (root / "src").rglob("*.c") if not BESIDE & set(f.parts) or f in shared)
        self.inside = [f"-I{root / 'src'}", f"-I{root / 'include'}"]
        self.originals = {}

    # Preprocessed text and objects.

    def text_of(self, file, *more):
        """Returns the preprocessed text of a file, without comments and line numbers."""
        return run_quietly([self.cc, *self.flags, *more, *self.inside, "-E", "-P", file])

    def text_hash(self, text, *flags):
        return hash_of(self.compiler, *flags, text)

    def object_of(self, text, *flags, where=None):
        """Returns the object of a preprocessed text. Compiles the text if no earlier run has."""
        name = f"{self.text_hash(text, *flags)}.o"
        made = self.kept / name
        if not made.exists():
            where = where or self.kept
            made = where / name
            where.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=where, suffix=".part", delete=False) as part:
                pass
            try:
                # The compiler reads its input, so that no file name gets into the object.
                command = [self.cc, *self.flags, *flags, "-x", "cpp-output", "-c", "-o", part.name, "-"]
                run_quietly(command, text)
                os.replace(part.name, made)
            finally:
                Path(part.name).unlink(missing_ok=True)
        return made

    def code_hash(self, made):
        """Returns the hash of an object without its debug information, so of the code that the machine would
        run.
        """
        if not any(flag.startswith("-g") for flag in self.flags):
            return hash_of(made.read_bytes())
        with tempfile.NamedTemporaryFile(suffix=".o") as bare:
            run_quietly(["strip", "--strip-debug", "-o", bare.name, made])
            return hash_of(Path(bare.name).read_bytes())

    def prepare(self, pool):
        """Compiles the unchanged sources."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = list(pool.map(self.original_make, self.files))
        self.originals = dict(zip(self.files, made))
        self.link_once(self.folder)

    def original_make(self, file):
        return self.object_of(self.text_of(file, "-include", ORDERS))

    def link_once(self, folder):
        """Links the unchanged objects, unless an earlier run has."""
        key = hash_of(*sorted(made.name for made in self.originals.values()), *self.link_parts())
        if not self.is_made(folder / "linked", key):
            self.link(self.originals, folder)
            (folder / "linked.key").write_text(key)

    def link_parts(self):
        return []

    def is_made(self, made, key):
        """Returns whether an earlier run in the same folder made the file, of the same parts."""
        kept = made.with_name(made.name + ".key")
        return kept.exists() and kept.read_text() == key

    def link(self, objects, folder):
        raise NotImplementedError

    # The build of a mutant.

    def mutant_texts(self, mutant, folder, users):
        """Returns file -> preprocessed text, for the files that the mutant changes. `folder`/src has the
        mutant's file.
        """
        texts = {}
        for file in users.of(mutant, self.files):
            given = folder / mutant.path if file == self.root / mutant.path else file
            texts[file] = self.text_of(given, "-include", ORDERS, f"-I{folder / 'src'}")
        return texts

    def mutant_text_hash(self, texts):
        return hash_of(*(self.text_hash(texts[file]) for file in sorted(texts)))

    def mutant_objects(self, texts, folder):
        return {file: self.object_of(text, where=folder / self.name) for file, text in texts.items()}

    def mutant_code_hash(self, objects):
        return hash_of(*(self.code_hash(objects[file]) for file in sorted(objects)))

    def mutant_same(self, objects):
        """Returns whether the mutant compiles to the same code as the original."""
        return all(self.code_hash(made) == self.code_hash(self.originals[file]) for file, made in objects.items())

    def mutant_link(self, objects, folder):
        made = folder / self.name
        made.mkdir(exist_ok=True)
        self.link({**self.originals, **objects}, made)


def packages_flags(what, *names):
    """Returns pkg-config's output, or None if a package is missing."""
    if shutil.which("pkg-config") is None:
        return None
    done = subprocess.run(["pkg-config", what, *names], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


class Shared(Flavour):
    """A shared library with its internal functions visible, and programs that find it by LD_LIBRARY_PATH."""

    libraries = ["-lurcu-cds", "-lck"]
    # The functions whose calls mutants/books.c counts.
    wraps = [f"-Wl,--wrap=tw_{made}_{step}" for made in ("engine", "group") for step in ("create", "destroy")]
    # The libraries for other event loops, with the packages that they need. Those whose package is missing
    # are left out.
    beside = {"glib": "glib-2.0", "uv": "libuv"}

    def __init__(self, name, cc, flags, root, folder):
        super().__init__(name, cc, flags, root, folder)
        self.layers = {}
        for layer, package in self.beside.items():
            flags_of = packages_flags("--cflags", package)
            if flags_of is not None:
                self.layers[layer] = flags_of + packages_flags("--libs", package)
        self.flags += [flag for listed in self.layers.values() for flag in listed if flag.startswith(("-I", "-D"))]
        self.files = [f for f in self.files if f.parent.name != "executors" or f.stem in self.layers]
        # Only the model has stand-ins for the functions that these files call.
        self.files = [f for f in self.files if "durable" not in f.parts]

    def link(self, objects, folder):
        common = [self.cc, *self.flags, "-shared", "-Wl,-z,nodelete", "-Wl,-O0"]
        inner = [made for file, made in objects.items() if file.parent.name != "executors"]
        if folder == self.folder or any(objects[file] != self.originals[file] for file in objects if file.parent.name != "executors"):
            run_quietly([*common, "-o", folder / "libmutant.so", *inner, *self.libraries])
        for layer, flags in self.layers.items():
            outer = [made for file, made in objects.items() if file.parent.name == "executors" and file.stem == layer]
            if folder == self.folder or any(made not in self.originals.values() for made in outer):
                run_quietly([*common, "-o", folder / f"libmutant_{layer}.so", *outer, *flags])

    def search(self):
        """Returns options for the folders in which test programs find their headers."""
        tests = self.root / "tests"
        return ["-isystem", tests / "standin", *(f"-I{folder}" for folder in searched(tests))]

    def part(self, file, *more):
        """Returns an object that several programs share."""
        listed = f'-DTESTS_MAP="{self.root / "src/tickwheel.map"}"'
        return self.object_of(self.text_of(file, *self.search(), f"-I{file.parent}", listed, PATIENCE, *more))

    def program(self, name, parts, layers=(), linked=True, booked=True):
        """Links a program. `layers`: the companion libraries that it needs. `linked` is false if it opens the
        library itself.
        """
        made = self.folder / name
        wraps = self.wraps if booked else []
        key = hash_of(*sorted(part.name for part in parts), *wraps, *layers)
        if made.exists() and self.is_made(made, key):
            return
        link = ["-lm"]
        if linked:
            # Some programs use liburcu-bp themselves.
            beside = [*self.libraries, "-Wl,--as-needed", "-lurcu-bp", "-lm"]
            link = [f"-L{self.folder}", *(f"-lmutant_{layer}" for layer in layers), "-lmutant", *beside, *wraps]
        link += [flag for layer in layers for flag in self.layers[layer] if flag.startswith(("-l", "-L"))]
        run_quietly([self.cc, *self.flags, *parts, "-rdynamic", "-o", made, *link])
        made.with_name(made.name + ".key").write_text(key)

    def command(self, folder, program, arguments):
        library = folder / self.name if folder else self.folder
        path = f"{library}:{self.folder}"
        made = library / "libmutant.so"
        arguments = [str(made if made.exists() else self.folder / "libmutant.so") if a == "{library}" else a for a in arguments]
        return [self.folder / program, *arguments], {"LD_LIBRARY_PATH": path}

    # Coverage: the same programs, with a library that records which of its places they execute.

    def cover_make(self, pool):
        folder = self.folder / "cover"
        folder.mkdir(exist_ok=True)
        objects = cover_objects(self, pool, self.files)
        self.cover_layers = [f"libmutant_{layer}.so" for layer in self.layers]
        inner = [made for file, made in objects.items() if file.parent.name != "executors"]
        key = hash_of(*sorted(made.name for made in objects.values()), COVER.read_bytes())
        if not self.is_made(folder / "linked", key):
            seen = cover_runtime(self)
            run_quietly([self.cc, *self.flags, "-g1", "-shared", "-Wl,-z,nodelete", "-o", folder / "libmutant.so", *inner, seen, *self.libraries])
            (folder / "linked.key").write_text(key)
        return folder / "libmutant.so"

    def cover_command(self, program, arguments):
        command, environment = self.command(None, program, arguments)
        return command, {**environment, "LD_LIBRARY_PATH": f"{self.folder / 'cover'}:{self.folder}"}


COVER_FLAGS = ["-g1", "-O1", "-fno-inline", "-fsanitize-coverage=trace-pc"]


def cover_objects(flavour, pool, files):
    """Compiles files for coverage. They need line numbers, so not from the preprocessed text; objects are still
    kept by its hash.
    """

    def make(file):
        key = flavour.text_hash(flavour.text_of(file), "cover", file)
        made = flavour.kept / f"{key}.o"
        if not made.exists():
            flavour.kept.mkdir(parents=True, exist_ok=True)
            run_quietly([flavour.cc, *flavour.flags, *COVER_FLAGS, *flavour.inside, "-c", file, "-o", made])
        return made

    return dict(zip(files, pool.map(make, files)))


def cover_runtime(flavour, *flags):
    made = flavour.folder / "cover.o"
    run_quietly([flavour.cc, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", *flags, "-c", COVER, "-o", made])
    return made


class Model(Flavour):
    """The model checks: one program of all objects (tests/model/run.sh describes the build)."""

    def __init__(self, cc, root, folder):
        seen = ["-O1", "-U_FORTIFY_SOURCE", "-fsanitize=thread", "-U__SANITIZE_THREAD__", "-D_Thread_local="]
        seen += ["-Dtwi_thread_self=(*model_thread_self())", "-Dtwi_timer_seen=(*model_timer_seen())", "-Dtwi_keyed_seen=(*model_keyed_seen())", "-DTWI_RCU_BY_CALL", "-DTWI_TSC_READ_EARLY=twi_tsc_read", "-DTWI_RING_BITS=2", "-DTWI_RING_LEAST_BITS=1", "-DTWI_RING_BUSY=3", "-DTWI_CHUNK_TASKS=2", "-DTWI_SCOPE_NEAR=1", "-DTWI_SCOPE_SECOND=2", "-DTWI_SCOPE_SPARE=1",
                 "-DTWI_SERIALS_OF_CHUNK=4"]
        super().__init__("model", cc, seen + machine_flags(), root, folder)
        self.model = root / "tests/model"
        runtime = sorted((self.model / "runtime").glob("*.c"))
        self.runtime = [file for file in runtime if file.name != "thread_data.c"]
        self.files = [f for f in self.files if f.parent.name != "executors"]
        self.files += [self.model / "runtime/thread_data.c", *harness_files(self.model)]
        shim = [f"-I{self.model}", f"-I{self.model / 'runtime/shim'}"]
        self.inside = shim + self.inside
        self.wraps = [f"-Wl,--wrap={name}" for name in (self.model / "runtime/wrapped.txt").read_text().split()]
        self.runtime_objects = []

    def prepare(self, pool):
        self.runtime_objects = list(pool.map(self.compile_runtime, self.runtime))
        super().prepare(pool)

    def compile_runtime(self, file):
        flags = ["-std=gnu11", "-D_GNU_SOURCE", "-w", "-O3", "-U_FORTIFY_SOURCE", "-fexceptions", "-fno-strict-aliasing"]
        text = run_quietly([self.cc, *flags, *self.inside, "-E", "-P", file])
        made = self.kept / f"{hash_of(self.compiler, *flags, text)}.o"
        if not made.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            run_quietly([self.cc, *flags, "-x", "cpp-output", "-c", "-o", made, "-"], text)
        return made

    def link_parts(self):
        return [*(made.name for made in self.runtime_objects), *self.wraps]

    def link(self, objects, folder):
        made = list(objects.values())
        run_quietly([self.cc, "-no-pie", "-o", folder / "model", *self.runtime_objects, *made, *self.wraps, "-pthread"])

    def command(self, folder, program, arguments):
        return [(folder / self.name if folder else self.folder) / program, *arguments], {}

    def cover_make(self, pool):
        folder = self.folder / "cover"
        folder.mkdir(exist_ok=True)
        # Includes the harnesses, because they contain inline functions of the library's headers.
        objects = cover_objects(self, pool, self.files)
        key = hash_of(*sorted(made.name for made in objects.values()), *self.link_parts(), COVER.read_bytes())
        if not self.is_made(folder / "linked", key):
            # cover.c must call the system itself: the model replaces these two functions, and would take the
            # calls for the library's.
            seen = cover_runtime(self, "-Dmmap=__real_mmap", "-Dclose=__real_close")
            made = [*self.runtime_objects, *objects.values(), seen]
            run_quietly([self.cc, "-no-pie", "-o", folder / "model", *made, *self.wraps, "-pthread"])
            (folder / "linked.key").write_text(key)
        return folder / "model"

    def cover_command(self, program, arguments):
        return [self.folder / "cover" / program, *arguments], {}

    def harnesses(self):
        """Returns harness -> the file that has it."""
        found = {}
        for file in harness_files(self.model):
            for name in re.findall(r"^MODEL_HARNESS\((\w+)", file.read_text(), re.M):
                found[name] = file
        done = subprocess.run([self.folder / "model", "--list"], capture_output=True, text=True, check=True)
        return {name: found.get(name) for name in (line.split()[0] for line in done.stdout.splitlines())}


def machine_flags():
    return ["-mcx16", "-mprfchw"] if os.uname().machine == "x86_64" else []
