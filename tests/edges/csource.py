# SPDX-License-Identifier: MIT
"""Parses a C file of this project into functions, statements, comments and atomic accesses.

This is not a compiler. It relies on the style of src/ (clang-format, no macros that hide braces), and raises
an error if it cannot follow.
"""
import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/)|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)|(?P<string>"(?:\\.|[^"\\])*")"""
    r"""|(?P<char>'(?:\\.|[^'\\])*')|(?P<word>\w+)|(?P<mark>[^\s\w])""",
    re.S | re.M | re.X,
)
ACCESS = re.compile(
    r"\b(?:twi_(?P<what>load_pair|load|store|exchange|fetch_(?:add|sub|or|and)|cas_pair|cas|fence)_"
    r"(?P<order>relaxed|acquire|release|acq_rel|seq_cst)|(?P<count>twi_count_add)"
    r"|(?P<section>twi_rcu_enter|twi_presence_enter)|(?P<grace>twi_rcu_synchronize(?:_until)?)"
    r"|(?P<barrier>twi_barrier_all)|TWI_DEPOT_(?P<told>RELEASE|ACQUIRE))\("
)
OPEN = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Statement:
    """A statement of C. `span` is the whole statement; `head` is its own text, without the statements inside
    it.
    """

    kind: str  # if, while, for, do, switch, block, label, simple
    span: tuple
    head: tuple
    condition: tuple = None  # inside the parentheses
    children: list = field(default_factory=list)
    parent: "Statement" = None

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Function:
    name: str
    span: tuple
    signature: tuple
    body: Statement
    doc: str


@dataclass
class Access:
    """One call of an atomic access, an RCU section, a presence, or a grace period."""

    function: Function
    statement: Statement
    span: tuple  # from the name to the closing parenthesis
    what: str
    order: str
    arguments: list
    text: str

    @property
    def releases(self):
        return self.order in ("release", "acq_rel", "seq_cst") and self.what != "load"

    @property
    def acquires(self):
        return self.order in ("acquire", "acq_rel", "seq_cst") and self.what != "store"


class Source:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        tokens = [(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text)]
        self.comments = [(start, end, word) for kind, word, start, end in tokens if kind == "comment"]
        self.tokens = [t for t in tokens if t[0] not in ("comment", "directive")]
        self.functions = list(self._functions())

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def line_end(self, offset):
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end

    def _close(self, i):
        """Returns the index of the token that closes the one at i."""
        depth = 0
        for j in range(i, len(self.tokens)):
            word = self.tokens[j][1]
            depth += (word in OPEN) - (word in OPEN.values())
            if depth == 0:
                return j
        raise ValueError(f"{self.path}: unclosed {self.tokens[i][1]} in line {self.line(self.tokens[i][2])}")

    def _functions(self):
        i = begin = 0
        while i < len(self.tokens):
            word = self.tokens[i][1]
            if word == ";":
                begin = i + 1
            elif word == "{" and self.tokens[i - 1][1] == ")":
                names = [t[1] for t in self.tokens[begin:i]]
                name = names[names.index("(") - 1]
                body, end = self._statement(i)
                start = self.tokens[begin][2]
                yield Function(name, (start, body.span[1]), (start, self.tokens[i][2]), body, self._before(start))
                begin = i = end
                continue
            elif word in OPEN:
                i = self._close(i)
                # An aggregate or an initialiser continues to its semicolon.
            i += 1

    def _before(self, offset):
        """Returns the comment that ends on the line before `offset`."""
        for start, end, word in self.comments:
            if end <= offset and self.text[end:offset].strip() == "" and self.text.count("\n", end, offset) == 1:
                return word
        return ""

    def _statement(self, i, parent=None):
        """Parses the statement that begins at token i. Returns it, and the index of the token after it."""
        kind, word, start, _ = self.tokens[i]
        made = Statement("simple", (start, start), (start, start), parent=parent)
        if word == "{":
            close = self._close(i)
            made.kind = "block"
            j = i + 1
            while j < close:
                child, j = self._statement(j, made)
                made.children.append(child)
            made.span = (start, self.tokens[close][3])
            return made, close + 1
        if word in ("if", "while", "for", "switch"):
            close = self._close(i + 1)
            made.kind = word
            made.condition = (self.tokens[i + 1][3], self.tokens[close][2])
            made.head = (start, self.tokens[close][3])
            child, j = self._statement(close + 1, made)
            made.children.append(child)
            if word == "if" and j < len(self.tokens) and self.tokens[j][1] == "else":
                child, j = self._statement(j + 1, made)
                made.children.append(child)
            made.span = (start, made.children[-1].span[1])
            return made, j
        if word == "do":
            made.kind = "do"
            child, j = self._statement(i + 1, made)
            made.children.append(child)
            close = self._close(j + 1)
            last = child.children[-1].span[1] if child.children else child.span[0]
            made.condition = (self.tokens[j + 1][3], self.tokens[close][2])
            made.head = (last, self.tokens[close + 1][3])
            made.span = (start, self.tokens[close + 1][3])
            return made, close + 2
        j = i
        ends = (":",) if word in ("case", "default") else (";",)
        made.kind = "label" if word in ("case", "default") else "simple"
        while self.tokens[j][1] not in ends:
            j = self._close(j) + 1 if self.tokens[j][1] in OPEN else j + 1
        made.span = made.head = (start, self.tokens[j][3])
        return made, j + 1

    def arguments(self, opening):
        """Returns the arguments of a call, and the offset after its closing parenthesis."""
        depth, parts, start = 0, [], opening + 1
        for at in range(opening, len(self.text)):
            mark = self.text[at]
            depth += (mark in OPEN) - (mark in OPEN.values())
            if depth == 0:
                parts.append(self.text[start:at])
                return [" ".join(part.split()) for part in parts], at + 1
            if mark == "," and depth == 1:
                parts.append(self.text[start:at])
                start = at + 1
        raise ValueError(f"{self.path}: unclosed call")

    def accesses(self):
        spans = [(start, end) for start, end, _ in self.comments]
        for function in self.functions:
            for statement in function.body.walk():
                if statement.kind == "block":
                    continue
                for match in ACCESS.finditer(self.text, *statement.head):
                    if any(start <= match.start() < end for start, end in spans):
                        continue
                    yield self._access(function, statement, match)

    def _access(self, function, statement, match):
        arguments, end = self.arguments(match.end() - 1)
        what, order = match["what"], match["order"]
        if match["count"]:
            what, order = "count", "relaxed"
        elif match["section"]:
            what, order = "section", "release"
        elif match["grace"]:
            what, order = "grace", "acquire"
        elif match["told"]:
            what, order = "fence", match["told"].lower()
        elif match["barrier"]:
            what, order = "fence", "seq_cst"
        span = (match.start(), end)
        return Access(function, statement, span, what, order, arguments, self.text[slice(*span)])

    def lead(self, statement):
        """Yields the comments before a statement, back to the text before it."""
        start = statement.head[0]
        for first, end, word in reversed(self.comments):
            if end > start:
                continue
            if self.text[end:start].strip() != "":
                return
            if self.text[self.text.rfind("\n", 0, first) + 1 : first].strip() != "":
                return  # the end of the statement before
            yield word
            start = first

    def comments_of(self, access):
        """Returns the comments of an access: on its lines, or else inside and before its statement."""
        start, end = access.statement.head
        inside = [c for c in self.comments if start <= c[0] < self.line_end(end - 1)]
        first = self.text.rfind("\n", 0, access.span[0])
        same = [word for at, _, word in inside if first < at < self.line_end(access.span[1] - 1)]
        statement = access.statement
        said = same or [word for _, _, word in inside] + list(self.lead(statement))
        # If the statement is alone under an if, without braces, a comment before the if belongs to both.
        while not said and statement.parent.kind in ("if", "while"):
            statement = statement.parent
            said = list(self.lead(statement))
        return said
