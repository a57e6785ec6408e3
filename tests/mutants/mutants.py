#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks the library in all ways that generate.py knows, and counts how many the checks catch.

usage: mutants.py [--only TEXT] [--list] [--results FILE] [--equivalent] [--jobs N] [--root DIR] ...

The last line is "mutants caught N of N". The exit code is 1 if some survive, or hang without a reviewed
reason. The checks that execute a mutant's lines are tried on it. The first ones are those that are most
likely to catch it for their time: they have caught other mutants of its function, its file, or its kind.
verdicts.py says what the result of a check means.

A verdict of an earlier run holds as long as the mutant compiles to the same code and the check that caught it
is the same. verdicts.txt has such verdicts (--record adds a run's own); --results keeps them in another file.
equivalent.txt has mutants that nothing can catch, each with the proof; they do not count. A line there, or in
hangs.txt, that names no mutant is an error. So is an equivalent mutant that a check catches (--equivalent
runs only these).
"""
import argparse
import collections
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from build import BuildError, Users, hash_of
from checks import Programs, checks_of, flavour_make
from coverage import Functions, Map
from generate import CALL, Generator, code_of
from reviewed import reviewed_read
from verdicts import CLASSES, File, Verdict

HERE = Path(__file__).resolve().parent
FLAVOURS = ("model", "plain", "tsan")
ORDER_RULES = ("relaxed", "acquire", "release", "acq_rel")
# How likely each flavour is, compared with the others, to catch a mutant of the rules ORDER_RULES, or of another
# rule, if no verdict is known yet.
SEES_ORDERS = {"model": 3.0, "tsan": 2.0, "plain": 0.3}
SEES_STEPS = {"model": 1.5, "plain": 1.0, "tsan": 0.4}
# What starting a check costs in addition to its own time, in seconds.
START_S = 0.2
# After the first hang, the search continues for so many seconds for a check that gives a better verdict.
HANG_LOOK_S = 100


class Chances:
    """Counts which checks caught earlier mutants of the same function and of the same file."""

    def __init__(self):
        self.by_place = collections.defaultdict(collections.Counter)

    @staticmethod
    def places(mutant):
        return (mutant.path.rsplit("/", 1)[-1], mutant.function), (mutant.path.rsplit("/", 1)[-1],)

    def caught(self, mutant, check):
        for place in self.places(mutant):
            self.by_place[place][check] += 1

    def of(self, mutant, check):
        chance = 0.02 * (SEES_ORDERS if mutant.rule in ORDER_RULES else SEES_STEPS)[check.flavour.name]
        for place, weight in zip(self.places(mutant), (0.7, 0.3)):
            known = self.by_place[place]
            chance += weight * known[check.name] / (known.total() + 1)
        return chance


class Judged:
    """A mutant that is being judged: its files, and what was built for it."""

    def __init__(self, suite, mutant, folder):
        self.suite, self.mutant, self.folder = suite, mutant, folder
        self.texts, self.objects, self.linked, self.same = {}, {}, set(), {}
        changed = folder / mutant.path
        changed.parent.mkdir(parents=True)
        changed.write_text(mutant.text)

    def text(self, flavour):
        if flavour.name not in self.texts:
            self.texts[flavour.name] = flavour.mutant_texts(self.mutant, self.folder, self.suite.users)
        return self.texts[flavour.name]

    def code(self, flavour):
        if flavour.name not in self.objects:
            self.objects[flavour.name] = flavour.mutant_objects(self.text(flavour), self.folder)
        return self.objects[flavour.name]

    def build(self, flavour):
        """Returns False if the mutant compiles to the same code as the original."""
        if flavour.name not in self.same:
            self.same[flavour.name] = flavour.mutant_same(self.code(flavour))
            if not self.same[flavour.name]:
                flavour.mutant_link(self.code(flavour), self.folder)
                self.linked.add(flavour.name)
        return not self.same[flavour.name]


class Suite:
    def __init__(self, options, generator, hangs):
        self.root, self.work, self.cc, self.jobs = options.root, options.work, options.cc, options.jobs
        self.pool = ThreadPoolExecutor(max_workers=options.jobs)
        self.hangs = hangs
        self.file = File(options.results)
        self.chances = Chances()
        self.map = Map()
        self.lock = threading.Lock()
        self.spent = collections.Counter()
        inline = {}
        for source in generator.sources:
            for function in source.functions if source.path.endswith(".h") else []:
                words = set(CALL.findall(code_of(source, function.body.span)))
                inline.setdefault(function.name, set()).update(words)
        self.users = Users(options.root, inline)
        self.flavours = {}
        for name in options.flavours.split(","):
            self.flavours[name] = flavour_make(name, self.cc, self.root, self.work)
        self.checks = []

    def timed(self, what, call, *arguments):
        began = time.monotonic()
        try:
            return call(*arguments)
        finally:
            with self.lock:
                self.spent[what] += time.monotonic() - began

    # Verdicts of earlier runs.

    def folder(self):
        return Path(tempfile.mkdtemp(dir=self.work, prefix="mutant-"))

    def known(self, mutant, keys):
        """Returns the verdict of an earlier run, if nothing that it depends on has changed."""
        item = self.file.known.get(mutant.id)
        # A survivor is tried again, because there may be a new test.
        if item is None or not item["class"] or (item["check"] and keys.get(item["check"]) != item["check_key"]):
            return None
        if item["class"] == "hang" and mutant.id not in self.hangs:
            return None
        flavour = self.flavours.get(item["flavour"])
        if flavour is None:
            return None
        folder = self.folder()
        try:
            judged = Judged(self, mutant, folder)
            if flavour.mutant_text_hash(judged.text(flavour)) == item["text"]:
                return item
            if item["code"] and flavour.mutant_code_hash(judged.code(flavour)) == item["code"]:
                return item
        except BuildError:
            pass
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return None

    def known_all(self, mutants):
        """Returns mutant id -> verdict, for the mutants that need no new verdict."""
        asked = [mutant for mutant in mutants if mutant.id in self.file.known]
        for mutant in asked:
            item = self.file.known[mutant.id]
            if item["check"]:
                self.chances.caught(mutant, item["check"])
        if not asked:
            return {}
        if "model" in self.flavours:
            self.flavours["model"].prepare(self.pool)
        keys = {check.name: check.key for flavour in self.flavours.values() for check in checks_of(flavour)}
        found = self.pool.map(lambda mutant: self.known(mutant, keys), asked)
        return {mutant.id: item for mutant, item in zip(asked, found) if item is not None}

    # The unchanged sources.

    def prepare(self, cost_s):
        for flavour in self.flavours.values():
            flavour.prepare(self.pool)
            if flavour.name != "model":
                Programs(flavour).build(self.pool)
            self.checks += checks_of(flavour)
        self.left_out = []
        measured, _ = self.kept("measured.json", self.checks, self.measure)
        for check in list(self.checks):
            took_s, used_s, wrong = measured[check.name]
            check.measured(took_s, used_s)
            if wrong:
                self.left_out.append(f"{check.name}: {wrong}")
                self.checks.remove(check)
        if cost_s:
            self.checks = [check for check in self.checks if check.cost_s < cost_s]
        for said in self.left_out:
            print(f"left out, for it failed without a mutant: {said}", flush=True)
        if len(self.left_out) > len(self.checks) // 20:
            raise SystemExit("too many checks fail without a mutant")
        self.cover()

    def library_key(self, flavour):
        return hash_of(*(made.name for made in flavour.originals.values()))

    def kept(self, name, checks, make):
        """Returns check name -> what `make` finds for it, kept in the work folder until the check changes. Also
        returns whether all of it was found with the present library.
        """
        path = self.work / name
        before = json.loads(path.read_text()) if path.exists() else {}
        left = [check for check in checks if before.get(check.name, [None])[0] != check.key]
        for at, (check, found) in enumerate(zip(left, self.pool.map(make, left))):
            before[check.name] = [check.key, self.library_key(check.flavour), found]
            if at % 20 == 0 or at + 1 == len(left):
                path.write_text(json.dumps(before))
        fresh = all(before[check.name][1] == self.library_key(check.flavour) for check in checks)
        return {check.name: before[check.name][2] for check in checks}, fresh

    def measure(self, check):
        verdict, took_s, used_s = check.measure()
        if verdict is None:
            return took_s, used_s, ""
        again, took_s, used_s = check.measure()
        # A single failure may be the machine's fault. A check that fails again without a mutant proves
        # nothing about mutants.
        return took_s, used_s, f"{verdict}, and again: {again}" if again is not None else ""

    def cover(self):
        """Records what each check executes. With ThreadSanitizer a program executes the same as without, so it
        is not recorded again.
        """
        checks = [check for check in self.checks if check.flavour.name in ("model", "plain")]
        functions = {flavour.name: Functions(flavour.cover_make(self.pool)) for flavour in {check.flavour for check in checks}}
        found, self.map.fresh = self.kept("lines.json", checks, lambda check: sorted(functions[check.flavour.name].of(check.cover())))
        by_program = collections.defaultdict(set)
        for check in checks:
            self.map.add(check.name, found[check.name])
            if check.flavour.name == "plain":
                by_program[check.program] |= set(found[check.name])
        for check in self.checks:
            if check.flavour.name == "tsan" and check.program in by_program:
                self.map.add(check.name, by_program[check.program])

    # The judgement of a mutant.

    def order(self, mutant):
        """Returns the checks to try, in order: those that execute the mutant's lines. If those were recorded
        with another library, the rest follows.
        """
        with self.lock:
            value = {check: self.chances.of(mutant, check) / (check.cost_s + START_S) for check in self.checks}
        come = {check: self.map.comes_to(check.name, mutant) for check in self.checks}
        wanted = [check for check in self.checks if come[check] or not self.map.fresh]
        return sorted(wanted, key=lambda check: (not come[check], -value[check]))

    def judge(self, mutant):
        """Returns the verdict on a mutant, in the form in which the file keeps it."""
        began = time.monotonic()
        folder = self.folder()
        judged = Judged(self, mutant, folder)
        try:
            check, verdict = self.search(mutant, judged)
            return self.item(mutant, judged, check, verdict)
        except BuildError as error:
            # If the mutant compiles in one flavour and not in another, the generator or the build is wrong.
            if judged.same:
                raise
            flavour = self.flavours[next(iter(judged.texts), next(iter(self.flavours)))]
            return self.item(mutant, judged, None, Verdict("none", "does not compile"), flavour)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with self.lock:
                self.spent["all"] += time.monotonic() - began

    def search(self, mutant, judged):
        """Returns (check, verdict); (None, None) for a survivor."""
        hung, until = (None, None), None
        for check in self.order(mutant):
            if until is not None and time.monotonic() > until:
                break
            if not self.timed("build", judged.build, check.flavour):
                continue
            verdict = check.run(judged.folder)
            if verdict is None or (until is not None and verdict.kind == "hang"):
                continue
            confirmed = check.confirms(judged.folder, verdict)
            if confirmed is None:
                print(f"not confirmed: {check.name}: {verdict}: {mutant.id}", flush=True)
                continue
            if confirmed.kind != "hang" or mutant.id in self.hangs:
                with self.lock:
                    self.chances.caught(mutant, check.name)
                return check, confirmed
            hung, until = (check, confirmed), time.monotonic() + HANG_LOOK_S
        if hung[0] is None and self.same_everywhere(judged):
            return None, Verdict("same", "compiles to the same code")
        return hung

    def same_everywhere(self, judged):
        return set(self.flavours) == set(FLAVOURS) and not any(judged.build(flavour) for flavour in self.flavours.values())

    def item(self, mutant, judged, check, verdict, flavour=None):
        compiled = [name for name, texts in judged.texts.items() if texts] or list(self.flavours)
        flavour = check.flavour if check else flavour or self.flavours[compiled[-1]]
        texts, objects = judged.texts.get(flavour.name), judged.objects.get(flavour.name)
        return {
            "id": mutant.id,
            "class": verdict.kind if verdict else "",
            "how": verdict.how if verdict else "",
            "check": check.name if check else "",
            "check_key": check.key if check else "",
            "flavour": flavour.name,
            "text": flavour.mutant_text_hash(texts) if texts else "",
            "code": flavour.mutant_code_hash(objects) if objects else "",
        }


def said_of(item, hangs):
    if item["class"] == "none":
        return "does not compile"
    if item["class"] == "same":
        return "compiles to the same code"
    if item["class"] == "":
        return "SURVIVES"
    said = f"{item['check']}: {item['class']}: {item['how']}"
    return f"HANGS, not reviewed: {said}" if item["class"] == "hang" and item["id"] not in hangs else said


def suite_run(options, generator, mutants, hangs):
    suite = Suite(options, generator, hangs)
    began = time.monotonic()
    items = suite.known_all(mutants)
    left = [mutant for mutant in mutants if mutant.id not in items]
    print(f"{len(items)} verdicts of earlier runs hold ({time.monotonic() - began:.0f} s)", flush=True)
    if not left:
        return items
    suite.prepare(options.cost)
    print(f"{len(suite.checks)} checks are ready ({time.monotonic() - began:.0f} s)", flush=True)
    began = time.monotonic()
    jobs = {suite.pool.submit(suite.judge, mutant): mutant for mutant in left}
    for job in as_completed(jobs):
        item = items[jobs[job].id] = job.result()
        suite.file.add(item)
        print(f"{time.monotonic() - began:6.0f} s  {item['id']}\n          {said_of(item, hangs)}", flush=True)
    share = 100 * suite.spent["build"] / max(suite.spent["all"], 0.001)
    print(
        f"\n{len(left)} mutants in {time.monotonic() - began:.0f} s on {options.jobs} threads: "
        f"{suite.spent['all'] / len(left):.1f} s each, {share:.0f} % of it building"
    )
    return items


def table(rows, columns):
    for row in [("", *columns), *rows]:
        print("".join(f"{str(cell):<{12 if at == 0 else 11}}" if at == 0 else f"{str(cell):>11}" for at, cell in enumerate(row)))


def report(items, folders, equivalents, hangs):
    """Prints the tables by check and by folder, the survivors, and the line that counts. Returns True if all
    were caught.
    """
    counted = [item for item in items.values() if item["class"] not in ("none", "same")]
    unseen = [item for item in counted if item["class"] == "hang" and item["id"] not in hangs]
    alive = [item for item in counted if item["class"] == ""]
    print("\ncaught by")
    for name, count in collections.Counter(item["check"] for item in counted if item["check"]).most_common():
        print(f"{count:6d}  {name}")
    by_folder = collections.defaultdict(collections.Counter)
    for item in counted:
        folder = folders[item["id"]]
        by_folder[folder][item["class"] or "survives"] += 1
        by_folder["all"][item["class"] or "survives"] += 1
    kinds = (*CLASSES, "survives")
    print()
    order = sorted(by_folder, key=lambda name: (name == "all", name))
    table([(name, *(by_folder[name][kind] for kind in kinds), by_folder[name].total()) for name in order], (*kinds, "of"))
    for item in alive:
        print(f"survives: {item['id']}")
    for item in unseen:
        print(f"hangs, not reviewed: {item['id']}")
    numbers = collections.Counter(item["class"] for item in items.values())
    print(f"{numbers['none']} do not compile; {numbers['same']} compile to the same code; {equivalents} proven equivalent do not count")
    caught = len(counted) - len(alive) - len(unseen)
    print(f"mutants caught {caught} of {len(counted)}")
    return caught == len(counted) > 0


def equivalent_report(items):
    wrong = [f"{item['id']}\n    is caught by {item['check']}: {item['class']}: {item['how']}" for item in items.values() if item["check"]]
    print("\n".join(wrong) if wrong else f"{len(items)} equivalents, none caught")
    return not wrong


def options_read():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=HERE.parent.parent)
    parser.add_argument("--work", type=Path, help="folder of the builds, which are kept")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--only", default="", help="mutants whose path and id have one of these texts, separated by |")
    parser.add_argument("--sample", type=int, help="so many of them, the same each time")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--equivalent", action="store_true", help="run the equivalent ones")
    parser.add_argument("--results", type=Path, help="verdicts are kept there; what has not changed is not run again")
    parser.add_argument("--record", action="store_true", help="adds the verdicts to verdicts.txt")
    parser.add_argument("--cost", type=float, help="only checks that cost less than so many seconds")
    parser.add_argument("--flavours", default=",".join(FLAVOURS))
    return parser.parse_args()


def stale_print(mutants, *lists):
    """Returns False if a reviewed list names a mutant that does not exist."""
    good = True
    for name, texts in lists:
        stale = set(texts) - {mutant.id for mutant in mutants}
        if stale:
            print(f"{name}: no such mutant:\n" + "\n".join(sorted(stale)))
            good = False
    return good


def main():
    options = options_read()
    options.root = options.root.resolve()
    generator = Generator(options.root)
    mutants = list(generator.mutants())
    equivalents, hangs = reviewed_read("equivalent.txt"), reviewed_read("hangs.txt")
    if not stale_print(mutants, ("equivalent.txt", equivalents), ("hangs.txt", hangs)):
        return 1
    wanted = options.only.split("|")
    mutants = [m for m in mutants if any(text in f"{m.path} {m.id}" for text in wanted) and (m.id in equivalents) == options.equivalent]
    if options.sample is not None:
        mutants = random.Random(15).sample(mutants, min(options.sample, len(mutants)))
    if options.list:
        print("\n".join(f"{mutant.path}:{mutant.line}: {mutant.id}" for mutant in mutants))
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        options.work = (options.work or Path(folder)).resolve()
        options.work.mkdir(parents=True, exist_ok=True)
        items = suite_run(options, generator, mutants, hangs)
    if options.record:
        File(options.results).record(generator.mutants())
    folders = {mutant.id: mutant.path.split("/")[1] for mutant in mutants}
    good = equivalent_report(items) if options.equivalent else report(items, folders, len(equivalents), hangs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
