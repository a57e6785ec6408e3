#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Breaks src/ in every way that the rules of generate.py know, and demands that a check notices.

usage: mutants.py [--root DIR] [--work DIR] [--jobs N] [--cc CC] [--only TEXT] [--list]
                  [--equivalent] [--results FILE] [--flavours NAMES]

A mutant is caught when one of the checks (checks.py) fails or does not end. The last line is
"mutants caught N of N"; the exit code is 0 when all are. Those of equivalent.txt do not count: they
are proven to change nothing that can be seen. A line there that fits no mutant is an error, as is
one that a check catches (--equivalent runs only them).
"""
import argparse
import collections
import json
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from build import BuildError, Users
from checks import checks_make, flavour_make, order_for
from equivalents import equivalents_read
from generate import CALL, Generator, code_of

HERE = Path(__file__).resolve().parent


class Suite:
    def __init__(self, options, generator):
        self.root, self.work, self.cc = options.root, options.work, options.cc
        self.pool = ThreadPoolExecutor(max_workers=options.jobs)
        self.made = {}
        inline = {}
        for source in generator.sources:
            for function in source.functions if source.path.endswith(".h") else []:
                words = set(CALL.findall(code_of(source, function.body.span)))
                inline.setdefault(function.name, set()).update(words)
        self.users = Users(options.root, inline)

    def prepare(self, wanted, cost_s):
        for name in wanted:
            self.made[name] = flavour_make(name, self.cc, self.root, self.work)
            self.made[name].prepare(self.pool)
        self.checks = checks_make(self.made, self.pool)
        for check in list(self.checks):
            wrong = check.measure()
            if wrong is not None and check.run() is not None:
                raise SystemExit(f"{check.name} fails without a mutant: {wrong}")
            if wrong is not None:
                print(f"left out, for it failed once without a mutant: {check.name}")
                self.checks.remove(check)
        if cost_s:
            self.checks = [check for check in self.checks if check.cost_s < cost_s]

    def judge(self, mutant):
        """(who caught it and how, seconds); who is "" for a survivor, None where it does not compile."""
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(dir=self.work, prefix="mutant-"))
        built = set()
        try:
            changed = folder / mutant.path
            changed.parent.mkdir(parents=True)
            changed.write_text(mutant.text)
            for check in order_for(mutant, self.checks):
                if check.flavour.name not in built:
                    check.flavour.build_mutant(mutant, folder, self.users)
                    built.add(check.flavour.name)
                wrong = check.run(folder)
                if wrong is not None and check.confirms(folder, wrong):
                    return f"{check.name}: {wrong}", time.monotonic() - began
                if wrong is not None:
                    print(f"not confirmed: {check.name}: {wrong}: {mutant.id}", flush=True)
            return "", time.monotonic() - began
        except BuildError:
            # What compiles in one flavour and not in another is a fault of ours.
            if built:
                raise
            return None, time.monotonic() - began
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def results_read(path):
    if path is None or not path.exists():
        return {}
    return {item["id"]: item for item in map(json.loads, path.read_text().splitlines())}


def suite_run(options, generator, mutants):
    suite = Suite(options, generator)
    known = results_read(options.results)
    results = {m.id: known[m.id]["caught"] for m in mutants if m.id in known and known[m.id]["caught"] != ""}
    left = [m for m in mutants if m.id not in results]
    began = time.monotonic()
    suite.prepare(options.flavours.split(","), options.cost)
    print(f"{len(suite.checks)} checks pass on the sources as they are ({time.monotonic() - began:.0f} s)", flush=True)
    jobs = {suite.pool.submit(suite.judge, mutant): mutant for mutant in left}
    for job in as_completed(jobs):
        mutant = jobs[job]
        caught, seconds = job.result()
        results[mutant.id] = caught
        said = "does not compile" if caught is None else caught or "SURVIVES"
        print(f"{seconds:6.1f} s  {mutant.id}\n          {said}", flush=True)
        if options.results is not None:
            with options.results.open("a") as file:
                file.write(json.dumps({"id": mutant.id, "caught": caught}) + "\n")
    return results


def report(results, equivalents):
    """The table by check, the survivors, the line that counts. True when all were caught."""
    counted = {name: caught for name, caught in results.items() if caught is not None}
    by_check = collections.Counter(caught.split(":")[0] for caught in counted.values() if caught)
    print("\ncaught by")
    for name, count in by_check.most_common():
        print(f"{count:6d}  {name}")
    for name in [name for name, caught in counted.items() if caught == ""]:
        print(f"survives: {name}")
    caught = sum(1 for caught in counted.values() if caught)
    print(f"{len(results) - len(counted)} do not compile; {equivalents} proven equivalent do not count")
    print(f"mutants caught {caught} of {len(counted)}")
    return caught == len(counted) > 0


def equivalent_report(results):
    wrong = [f"{name}\n    is caught by {caught}" for name, caught in results.items() if caught]
    print("\n".join(wrong) if wrong else f"{len(results)} equivalents, none caught")
    return not wrong


def options_read():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, default=HERE.parent.parent)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--only", default="", help="mutants whose id has this text")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--equivalent", action="store_true", help="run the equivalent ones")
    parser.add_argument("--results", type=Path, help="what was caught is kept there, and not run again")
    parser.add_argument("--cost", type=float, help="only checks that cost less than so many seconds")
    parser.add_argument("--flavours", default="model,plain,tsan")
    return parser.parse_args()


def main():
    options = options_read()
    options.root = options.root.resolve()
    generator = Generator(options.root)
    mutants = list(generator.mutants())
    equivalents = equivalents_read()
    stale = set(equivalents) - {mutant.id for mutant in mutants}
    if stale:
        print("equivalent.txt: no such mutant:\n" + "\n".join(sorted(stale)))
        return 1
    mutants = [m for m in mutants if options.only in m.id and (m.id in equivalents) == options.equivalent]
    if options.list:
        print("\n".join(f"{mutant.path}:{mutant.line}: {mutant.id}" for mutant in mutants))
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        options.work = (options.work or Path(folder)).resolve()
        options.work.mkdir(parents=True, exist_ok=True)
        results = suite_run(options, generator, mutants)
    good = equivalent_report(results) if options.equivalent else report(results, len(equivalents))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
