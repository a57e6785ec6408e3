# SPDX-License-Identifier: MIT
"""The verdict of a run of a check, and the file that keeps the verdict on each mutant.

    assertion    a check of a program, or an assertion of the library, does not hold
    crash        a signal ends the program
    sanitizer    ThreadSanitizer reports
    model        a property does not hold in an interleaving, or no thread can continue in one
    leak         the account of node blocks does not balance at the end of a program (race/harness/account.h)
    hang         the program, or a run of the model, does not end. It counts only if
                 hangs.txt lists it with a reason

A verdict is kept under the hash of the mutant's objects, in the flavour that caught it, and of the sources
of the check that caught it. If a file moves, a comment changes, or the library changes elsewhere, the
verdict stays valid.

A whole run takes most of a day. So verdicts.txt has the verdicts of earlier runs (--record writes it), and a
run judges only the mutants whose objects, compiler or checks differ from those.
"""
import re
from pathlib import Path

CLASSES = ("assertion", "crash", "sanitizer", "model", "leak", "hang")
ACCOUNT = re.compile(r"^account of blocks: (?!even)(.*)", re.M)
TSAN = re.compile(r"^(?:WARNING|SUMMARY): ThreadSanitizer: (.*?)(?: \(pid.*)?$", re.M)
HUNG = re.compile(r"ended by signal 14|^hung: |it hangs|no end after \d+ steps", re.M)
FAILED = re.compile(r"^(?:# )?(\S+:\d+: .*)", re.M)
SIGNAL = re.compile(r"ended by signal (\d+)")
SIGALRM, SIGABRT = 14, 6
HOW_LENGTH = 80
RECORDED = Path(__file__).resolve().parent / "verdicts.txt"


class Verdict:
    def __init__(self, kind, how):
        self.kind, self.how = kind, " ".join(how.split())[:HOW_LENGTH]

    def __str__(self):
        return f"{self.kind}: {self.how}"


def verdict_of(code, text, is_model):
    """Returns the verdict of a run that printed `text` and ended with `code` (None: it did not end). Returns
    None if it passed.
    """
    if code in (0, 77):
        return None
    if is_model:
        # A search that takes longer is no failure. A single run inside it that does not end is one.
        if code is None:
            return None
        said = re.search(r"no end after \d+ steps.*|.*does not hold.*|deadlock.*|.*", text)
        return Verdict("hang" if HUNG.search(text) else "model", said.group() if said else "")
    leak = ACCOUNT.search(text)
    if leak:
        return Verdict("leak", leak[1])
    report = TSAN.search(text)
    if report and "SEGV" not in report[1]:
        return Verdict("sanitizer", report[1])
    failed = [line for line in FAILED.findall(text) if f"signal {SIGALRM}" not in line]
    if failed:
        return Verdict("assertion", failed[0])
    if code is None:
        return Verdict("hang", "does not end")
    if HUNG.search(text):
        return Verdict("hang", HUNG.search(text).group())
    signals = [int(number) for number in SIGNAL.findall(text)]
    number = -code if code < 0 else next(iter(signals), 0)
    if number not in (0, SIGABRT):
        return Verdict("crash", f"signal {number}")
    return Verdict("assertion", next(iter(text.strip().splitlines()[-1:]), f"exit code {code}"))


class File:
    """The verdicts of earlier runs, one on each line, its fields separated by tabs. The last one of a mutant counts."""

    FIELDS = ("id", "class", "flavour", "check", "check_key", "text", "code", "how")

    def __init__(self, path):
        self.path = path
        self.known = {}
        for known in (RECORDED, path):
            if known is not None and known.exists():
                self.read(known)

    def read(self, path):
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                item = dict(zip(self.FIELDS, line.split("\t"), strict=True))
                self.known[item["id"]] = item

    def line(self, item):
        return "\t".join(item[field] for field in self.FIELDS) + "\n"

    def add(self, item):
        self.known[item["id"]] = item
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(self.line(item))

    def record(self, mutants):
        """Writes the verdicts on the present mutants into RECORDED. Survivors are left out: they are judged again."""
        kept = sorted(mutant.id for mutant in mutants if self.known.get(mutant.id, {}).get("class"))
        head = "".join(line + "\n" for line in RECORDED.read_text().splitlines() if line.startswith("#"))
        RECORDED.write_text(head + "".join(self.line(self.known[name]) for name in kept))
