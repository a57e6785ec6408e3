# SPDX-License-Identifier: MIT
"""Generates all mutants of src/ by general rules. No rule names a particular place in the sources.

    relaxed, acquire, release, acq_rel   an ordered access made weaker
    split     a read-modify-write in two steps, a load and a store
    drop      a protocol step is removed
    swap      a protocol step that has an order is exchanged with its neighbour, unless C11 permits it anyway
    late      a check that returns is moved after the protocol step that it guards
    always, never    a condition on shared state is replaced by true or false
    operand   one side of && or || is removed, if one side depends on shared state
    once      a loop on shared state runs once

In folders and files where one thread works alone (SEQUENTIAL), each condition counts as shared state and
each call as a step. There are two more rules:

    drop      an assignment is removed, too
    bound     < becomes <=, and so on

A protocol step is a statement that stores or changes an atomic, or that orders, waits, or wakes. It may do
so itself or in functions that it calls, at any depth. Shared state is the result of an atomic access or of
such a function, used at once or through a local variable.
"""
import dataclasses
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "edges"))

from csource import OPEN, Source  # noqa: E402

# Leaves out base, which defines the accesses. Leaves out most of wheel, because only the worker uses it, and
# a checker and a model test it.
FOLDERS = (
    "memory", "queue", "thread", "clock", "timeout", "worker", "ingress", "expiry", "turn", "engine", "api", "group", "keyed", "retry", "scaled", "scope",
    "executors", "stats",
)
FILES = (
    "wheel/fine.c", "wheel/list.h", "wheel/sorted.c", "wheel/sorted.h",
    # Of the durable library, only the steps that threads share. The I/O thread alone does the rest.
    "durable/file/claim.c", "durable/fresh/table.c", "durable/request.c", "durable/run.h", "durable/stage.c", "durable/word.h",
)
SEQUENTIAL = ("src/executors/", "src/stats/", "src/wheel/")
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
# The search for steps does not look inside these: sections, system calls, ConcurrencyKit, and steps on the
# worker's own data.
GROUND = re.compile(
    r"twi_rcu_(enter|leave|synchronize)|twi_futex_(wait|wake)|twi_fence_\w+|TWI_DEPOT_\w+|ck_stack_(push|pop)_mpmc"
    r"|twi_pool_(give|take)|twi_wheel_(insert|remove|advance|drain)"
)
# Calls without an effect on the result. tests/installed/tsan checks the reports to a user's ThreadSanitizer,
# because no flavour here has a library that makes them.
SILENT = re.compile(
    r"TWI_TEST_POINT|TWI_PROBE\d|TWI_PREFETCH_WRITE|twi_pool_guess_ahead|twi_log|pthread_cleanup_p\w+"
    r"|twi_tsan_(acquire|release)"
)
MAKERS = ("thread/rcu.h", "thread/futex.c", "thread/futex.h")
WEAKER = {
    "seq_cst": {"load": ["acquire", "relaxed"], "store": ["release", "relaxed"], "": ["acq_rel", "relaxed"]},
    "acq_rel": {"": ["acquire", "release", "relaxed"]},
    "acquire": {"": ["relaxed"]},
    "release": {"": ["relaxed"]},
}
CALL = re.compile(r"\b([a-zA-Z_]\w*)\s*\(")
EVERYTHING = object()


@dataclasses.dataclass
class Mutant:
    path: str
    function: str
    rule: str
    what: str
    edits: list  # (start, end, text), in the original
    line: int
    last_line: int
    number: int = 1
    text: str = ""

    @property
    def id(self):
        number = f" #{self.number}" if self.number > 1 else ""
        return f"{Path(self.path).name}/{self.function}: {self.rule}: {self.what}{number}"


def one_line(text):
    return " ".join(re.sub(r"/\*.*?\*/", " ", text, flags=re.S).split())


def code_of(source, span):
    """Returns the text of a span, with spaces in place of its comments."""
    text = source.text
    for start, end, _ in source.comments:
        text = text[:start] + " " * (end - start) + text[end:]
    return text[slice(*span)]


def protocol_functions(sources, orders_only=False):
    """Returns the names of the functions that store, change, order, wait or wake, themselves or in functions
    that they call.
    """
    calls, found = {}, set()
    for source in sources:
        for function in source.functions:
            text = code_of(source, function.body.span)
            names = set(CALL.findall(text))
            calls.setdefault(function.name, set()).update(names)
            if any(GROUND.fullmatch(name) for name in names):
                found.add(function.name)
        for access in source.accesses():
            if access.what not in ("load", "load_pair", "count") and not (orders_only and access.order == "relaxed"):
                found.add(access.function.name)
    while True:
        more = {name for name, names in calls.items() if name not in found and names & found}
        if not more:
            return found
        found |= more


def reading_functions(sources, protocol):
    """Returns the functions of type bool that access shared state, at any depth."""
    found = set()
    for source in sources:
        loads = {access.function.name for access in source.accesses() if access.what != "count"}
        for function in source.functions:
            if re.search(r"\bbool\b[^(]*\(", code_of(source, function.signature)) and (
                function.name in protocol or function.name in loads
            ):
                found.add(function.name)
    return found


class Generator:
    def __init__(self, root):
        paths = [p for folder in FOLDERS for p in sorted((root / "src" / folder).glob("*.[ch]"))]
        paths += [root / "src" / name for name in FILES]
        self.sources = [Source(str(p.relative_to(root)), p.read_text()) for p in paths]
        self.protocol = protocol_functions(self.sources)
        self.ordering = protocol_functions(self.sources, orders_only=True)
        self.reading = reading_functions(self.sources, self.protocol)

    def mutants(self):
        seen = {}
        for source in self.sources:
            if source.path.removeprefix("src/") in MAKERS:
                continue
            for mutant in [*self.of_accesses(source), *self.of_statements(source)]:
                mutant.text = source.text
                for start, end, text in sorted(mutant.edits, reverse=True):
                    mutant.text = mutant.text[:start] + text + mutant.text[end:]
                key = mutant.id
                seen[key] = seen.get(key, 0) + 1
                mutant.number = seen[key]
                yield mutant

    def make(self, source, function, rule, what, edits):
        last = max(end for _, end, _ in edits)
        return Mutant(source.path, function.name, rule, one_line(what), edits, source.line(edits[0][0]), source.line(last))

    # Rules for accesses.

    def of_accesses(self, source):
        for access in source.accesses():
            if access.what in ("count", "section", "grace", "fence"):
                continue
            arguments = ", ".join(access.arguments)
            weaker = WEAKER.get(access.order, {})
            for order in weaker.get(access.what, weaker.get("", [])):
                text = f"mutant_{access.what}({order}, {arguments})"
                yield self.make(source, access.function, order, access.text, [(*access.span, text)])
            if access.what not in ("load", "store"):
                text = f"mutant_split_{access.what}({arguments})"
                yield self.make(source, access.function, "split", access.text, [(*access.span, text)])

    # Rules for statements.

    def of_statements(self, source):
        for function in source.functions:
            shared = EVERYTHING if sequential(source) else self.shared_names(source, function)
            for statement in function.body.walk():
                if statement.kind == "block":
                    yield from self.of_block(source, function, statement)
                if self.is_step(source, statement):
                    text = source.text[slice(*statement.span)]
                    rest = self.side_effects(source, statement)
                    yield self.make(source, function, "drop", text, [(*statement.span, rest)])
                yield from self.of_condition(source, function, statement, shared)
                if sequential(source):
                    yield from self.of_bounds(source, function, statement)

    def side_effects(self, source, statement):
        """Returns the side effects of a dropped call's arguments, which must stay: `give(stock, list[--count])`
        still counts down.
        """
        text = code_of(source, statement.span).strip()
        if self.callee(source, statement) is None or not re.search(r"\+\+|--", text):
            return ";"
        inside = text[text.index("(", text.startswith("(void)") * len("(void)")) + 1 : text.rindex(")")]
        kept = [part.strip() for part in arguments_of(inside) if re.search(r"\+\+|--", part)]
        return " ".join(f"(void)({part});" for part in kept)

    def callee(self, source, statement):
        """If the statement is only a call, returns the called function; otherwise None."""
        if statement.kind != "simple":
            return None
        match = re.fullmatch(r"(?:\(void\))?\s*(\w+)\((.*)\);", code_of(source, statement.span).strip(), re.S)
        return match[1] if match and not SILENT.fullmatch(match[1]) else None

    def is_step(self, source, statement):
        name = self.callee(source, statement)
        if sequential(source) and not self.is_silent(source, statement):
            return name is not None or self.is_assignment(source, statement)
        if name is None:
            return False
        changes = re.fullmatch(r"twi_(store|exchange|fetch_\w+?|cas)_(relaxed|acquire|release|acq_rel|seq_cst)", name)
        return bool(changes or GROUND.fullmatch(name) or name in self.protocol)

    def orders(self, source, statement):
        """Returns whether the statement is ordered against its neighbours. Relaxed and plain stores are not."""
        return any(
            GROUND.fullmatch(name)
            or name in self.ordering
            or re.fullmatch(r"twi_\w+_(acquire|release|acq_rel|seq_cst)", name)
            for name in CALL.findall(code_of(source, statement.span))
        )

    def apart(self, source, first, second):
        """Returns whether the two are independent: one computes a local that the other does not use."""
        texts = [code_of(source, statement.span) for statement in (first, second)]
        for text, other in (texts, texts[::-1]):
            match = re.fullmatch(r"(\w+) [|+-]?= ([^()]*);", text.strip())
            if match and not re.search(r"->|\*", match[2]) and not re.search(rf"\b{match[1]}\b", other):
                return True
        return False

    def unordered(self, source, first, second):
        """Returns whether C11 itself permits to exchange the two, so that no thread can rely on their order. A plain
        store may come before a release store that precedes it, and after an acquire load that follows it, if
        neither of the two uses what the other one changes. The original may then run as the mutant does.
        """
        texts = [one_line(code_of(source, statement.span)) for statement in (first, second)]
        # Only statements without further calls and changes, so that all that they use is in their text.
        if re.search(r"\+\+|--", " ".join(texts)):
            return False
        plain = [re.fullmatch(r"(\w+(?:(?:->|\.)\w+)+) [|+\-&]?= ([^()=]*);", text) for text in texts]
        store = re.fullmatch(r"twi_store_release\(&([\w.>\-]+), ([^()]*)\);", texts[0])
        load = re.fullmatch(r"([\w.>\-]+) = twi_load_acquire\(&([\w.>\-]+)\);", texts[1])
        if store and plain[1]:
            return not uses(store[1], plain[1][1]) and not set(words_of(plain[1][1])) & set(words_of(store[2]))
        if plain[0] and load:
            return not uses(f"{load[1]} {load[2]}", plain[0][1]) and not uses(f"{plain[0][1]} {plain[0][2]}", load[1])
        return False

    def is_silent(self, source, statement):
        match = re.match(r"\s*(\w+)", code_of(source, statement.span))
        return bool(match and SILENT.fullmatch(match[1]))

    def is_assignment(self, source, statement):
        text = code_of(source, statement.span)
        return statement.kind == "simple" and bool(re.match(r"[\w.>\-\[\]*]+ [|+\-&]?= ", text))

    def is_plain(self, source, statement):
        """Returns whether the statement may change places: it is neither a declaration nor a jump."""
        return self.callee(source, statement) is not None or self.is_assignment(source, statement)

    def of_block(self, source, function, block):
        steps = [child for child in block.children if not self.is_silent(source, child)]
        for first, second in zip(steps, steps[1:]):
            both = self.is_plain(source, first) and self.is_plain(source, second)
            orders = self.orders(source, first) or self.orders(source, second)
            if both and orders and not self.apart(source, first, second) and not self.unordered(source, first, second):
                a, b = (source.text[slice(*s.span)] for s in (first, second))
                yield self.make(source, function, "swap", f"{a} {b}", [(*first.span, b), (*second.span, a)])
        for at, guard in enumerate(steps):
            if guard.kind != "if" or len(guard.children) != 1 or not self.leaves(source, guard.children[0]):
                continue
            step = next((s for s in steps[at + 1 :] if self.is_step(source, s)), None)
            if step is not None:
                text = source.text[slice(*guard.span)]
                edits = [(*guard.span, ";"), (step.span[1], step.span[1], "\n" + text)]
                what = f"{source.text[slice(*guard.head)]} {source.text[slice(*step.span)]}"
                yield self.make(source, function, "late", what, edits)

    def leaves(self, source, statement):
        return bool(re.match(r"(return|continue|break)\b", code_of(source, statement.span)))

    # Rules for conditions.

    def shared_names(self, source, function):
        """Returns the locals that get their value from shared state."""
        names, text = set(), code_of(source, function.body.span)
        for match in re.finditer(r"\b(\w+) [|&]?= ([^;]*);", text):
            if self.is_shared(match[2], names):
                names.add(match[1])
        for match in re.finditer(r"twi_cas_\w+\([^;]*?&(\w+),", text):
            names.add(match[1])
        return names

    def is_shared(self, text, names):
        if names is EVERYTHING:
            return True
        if re.search(r"\btwi_(load|exchange|fetch_\w+?|cas)_(relaxed|acquire|release|acq_rel|seq_cst)\(", text):
            return True
        return any(name in self.reading for name in CALL.findall(text)) or any(
            re.search(rf"(?<![\w>.]){name}\b", text) for name in names
        )

    def of_condition(self, source, function, statement, shared):
        span = statement.condition
        if statement.kind in ("if", "while", "do") and self.is_shared(code_of(source, span), shared):
            text = source.text[slice(*span)]
            if statement.kind == "if":
                yield self.make(source, function, "always", text, [(*span, f"({text}) || 1")])
                yield self.make(source, function, "never", text, [(*span, f"({text}) && 0")])
            else:
                yield self.make(source, function, "once", text, [(*span, f"({text}) && 0")])
        if statement.kind == "simple":
            span = statement.span
        if span is not None:
            yield from self.of_operands(source, function, span, shared)

    def of_bounds(self, source, function, statement):
        span = statement.condition if statement.kind in ("if", "while", "do", "for") else None
        span = statement.span if statement.kind == "simple" else span
        if span is None:
            return
        for match in re.finditer(r"(?<![-<>=])(<=?|>=?)(?![<>=])", without_literals(code_of(source, span))):
            if match[1] in BOUNDS:
                at = span[0] + match.start()
                what = one_line(source.text[slice(*span)])
                yield self.make(source, function, "bound", f"{match[1]} of {what}", [(at, at + len(match[1]), BOUNDS[match[1]])])

    def of_operands(self, source, function, span, shared):
        code = code_of(source, span)
        for start, end, pieces in junctions(code):
            if not self.is_shared(code[start:end], shared):
                continue
            for at, (first, last) in enumerate(pieces):
                # Removes the operator before the operand too, or the one after it if it is the first operand.
                begin = pieces[at - 1][1] if at > 0 else first
                finish = last if at > 0 else pieces[1][0]
                what = f"{code[first:last].strip()} of {code[start:end].strip()}"
                edit = (span[0] + begin, span[0] + finish, " " if at > 0 else "")
                yield self.make(source, function, "operand", what, [edit])


def words_of(text):
    return re.findall(r"[A-Za-z_]\w*", text)


def uses(text, place):
    """Returns whether the text may use the place: it has the place's last name, that of a field or of a local."""
    return words_of(place)[-1] in words_of(text)


def sequential(source):
    return source.path.startswith(SEQUENTIAL)


def without_literals(code):
    """Returns the code with spaces in place of strings and characters."""
    return re.sub(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", lambda match: " " * len(match[0]), code)


def arguments_of(text):
    """Yields the arguments of a call, from the text between its parentheses."""
    depth, begin = 0, 0
    for at, mark in enumerate(text):
        depth += (mark in OPEN) - (mark in OPEN.values())
        if mark == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]


def junctions(code):
    """Yields each chain of && or || at one depth: its span and the spans of its operands."""
    code = without_literals(code)
    stack = [[0, []]]
    for at, mark in enumerate(code):
        if mark in OPEN:
            stack.append([at + 1, []])
        elif mark in OPEN.values():
            begin, operators = stack.pop()
            yield from chain(code, begin, at, operators)
        elif code[at : at + 2] in ("&&", "||"):
            stack[-1][1].append(at)
        elif mark in ",;?:" or (mark == "=" and code[at - 1] not in "=!<>" and code[at + 1 : at + 2] != "="):
            begin, operators = stack[-1]
            yield from chain(code, begin, at, operators)
            stack[-1] = [at + 1, []]
    begin, operators = stack.pop()
    yield from chain(code, begin, len(code), operators)


def chain(code, begin, end, operators):
    if not operators:
        return
    match = re.match(r"\s*return\b", code[begin:end])
    begin += match.end() if match else 0
    cuts = [begin, *operators, end]
    pieces = [(a + 2 if a in operators else a, b) for a, b in zip(cuts, cuts[1:])]
    # In `a && b || c` only the operands of || count, each as a whole, because || binds less.
    if {code[o : o + 2] for o in operators} == {"&&", "||"}:
        weak = [o for o in operators if code[o] == "|"]
        cuts = [begin, *weak, end]
        pieces = [(a + 2 if a in weak else a, b) for a, b in zip(cuts, cuts[1:])]
    yield begin, end, pieces
