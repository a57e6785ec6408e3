# SPDX-License-Identifier: MIT
"""Reads the declarations of the public headers, with their comments.

The parser accepts only the forms of declarations that these headers use; any other form is an error. These are errors,
too: a function, type or macro without a comment; a missing or unknown tag; a name in a comment that no header declares;
a function without an example.
"""
import dataclasses
import pathlib
import re

import comment
import examples

COMMENT = re.compile(r"/\*.*?\*/", re.S)
DEFINE = re.compile(r"#define (?P<name>\w+)(?P<arguments>\([^)]*\))?(?:[^\n]*\\\n)*[^\n]*")
DIRECTIVE = re.compile(r"#(?:[^\n]*\\\n)*[^\n]*")
MARK = re.compile(r"TW_(?:BEGIN|END)_DECLS\b")
FORWARD = re.compile(r"struct (?P<name>\w+);")
ALIAS = re.compile(r"typedef \w+ (?P<name>tw_\w+);")
RECORD = re.compile(r"(?P<kind>struct|enum) (?P<name>\w+) \{(?P<body>.*?)\n\};", re.S)
HOOK = re.compile(r"typedef (?P<result>[\w ]+[ *])(?P<name>tw_\w+)\((?P<arguments>.*?)\);", re.S)
FUNCTION = re.compile(
    r"(?P<mark>TW_API|TW_BESIDE_API) (?P<result>[\w ]+[ *]+)(?P<name>tw_\w+)\((?P<arguments>[^)]*)\);"
)
FIELD = re.compile(r"[^;{}]*?(?:\(\*(?P<pointer>\w+)\)\([^;]*\)|(?P<name>\w+)(?:\[[^\]]*\])*)\s*;", re.S)
VALUE = re.compile(r"(?P<name>TW_\w+)(?: = [^,]*)?,?")
# The order of the headers in the manual. Headers that are not in this list come last.
ORDER = (
    "engine timeout id loop periodic batch keyed retry group scope scaled durable durable_file durable_postgres durable_redis durable_name durable_stats durable_store glib uv uv_timer event clock memory thread fork stats"
    " histogram print dump log error"
).split()
WITHOUT_PAGES = {"export.h"}
# Headers of companion libraries, each with the part of its package's name after "tickwheel-".
BESIDE = {"glib": "glib", "uv": "uv", "uv_timer": "uv-timer", "event": "event", "durable": "durable", "durable_file": "durable", "durable_name": "durable", "durable_stats": "durable", "durable_store": "durable",
          "durable_postgres": "postgres", "durable_redis": "redis"}
TYPES = ("struct", "opaque", "enum", "hook", "alias")
# Attributes of functions that the manual does not show, and the macro with which a program enables one of them.
CHECKED = re.compile(r"\bTW_CHECKED\w*\s")
PROGRAM_MACROS = {"TW_WARN_UNUSED_SCHEDULE"}
# The include guard of a header.
GUARD = re.compile(r"TICKWHEEL_(?:\w+_)?H$")


@dataclasses.dataclass
class Thing:
    """A declared function, type (struct, opaque struct, enum, hook) or macro."""

    kind: str
    name: str
    code: str
    description: list
    tags: dict = dataclasses.field(default_factory=dict)
    # (name, description) of each field or value
    members: list = dataclasses.field(default_factory=list)
    header: "Header" = None


@dataclasses.dataclass
class Header:
    name: str
    description: list
    things: list = dataclasses.field(default_factory=list)

    @property
    def stem(self):
        return self.name[: -len(".h")]

    def of(self, *kinds):
        return [thing for thing in self.things if thing.kind in kinds]


class HeaderError(Exception):
    """Raised for a header that breaks a rule; the message has the place."""


def without_comments(code):
    bare = COMMENT.sub("", code)
    return "\n".join(line.rstrip() for line in bare.split("\n") if line.strip())


def members_of(kind, body):
    """Returns fields or values with their descriptions; a description may be empty."""
    found, at, said = [], 0, []
    pattern = VALUE if kind == "enum" else FIELD
    while body[at:].strip():
        at += len(body[at:]) - len(body[at:].lstrip())
        matched = COMMENT.match(body, at)
        if matched:
            if matched.group().startswith("/**"):
                said, _tags = comment.parse(matched.group())
        else:
            matched = pattern.match(body, at)
            if matched is None:
                raise HeaderError(f"neither field nor value: {body[at:at + 60]!r}")
            name = matched.group("name") or matched.group("pointer")
            found.append((name, said))
            said = []
        at = matched.end()
    return found


def thing_of(matched, kind):
    code = without_comments(matched.group())
    members = members_of(kind, matched.group("body")) if kind in ("struct", "enum") else []
    return Thing(kind, matched.group("name"), code, [], members=members)


# A forward declaration with a comment declares an opaque struct. Other forward declarations are ignored.
DECLARATIONS = [("function", FUNCTION), ("hook", HOOK), ("alias", ALIAS), (None, RECORD), ("opaque", FORWARD)]


def declaration(text, at):
    """Returns the thing that is declared at this offset, and the end of its declaration."""
    for kind, pattern in DECLARATIONS:
        matched = pattern.match(text, at)
        if matched:
            return thing_of(matched, kind or matched.group("kind")), matched.end()
    raise HeaderError(f"not understood: {text[at:at + 60]!r}")


def document(thing, said):
    if said is None:
        if not GUARD.match(thing.name):
            raise HeaderError(f"{thing.name} has no comment")
        return
    try:
        thing.description, thing.tags = comment.parse(said)
    except comment.CommentError as error:
        raise HeaderError(f"{thing.name}: {error}") from error
    missing = comment.missing_tags(thing.tags) if thing.kind == "function" else []
    if missing:
        raise HeaderError(f"{thing.name} has no {', '.join(missing)}")
    if not comment.brief(thing.description):
        raise HeaderError(f"{thing.name} has no description")
    items, _ = comment.returned(thing.tags["Returns"]) if "Returns" in thing.tags else ([], "")
    for codes, meaning in items:
        if codes and meaning.startswith("("):
            raise HeaderError(f"{thing.name}: after {codes[0]}: not a reason in parentheses and nothing else")


def define(text, at):
    matched = DEFINE.match(text, at)
    if matched is None:
        return None, DIRECTIVE.match(text, at).end()
    code = re.sub(r"\s*\\\n\s*", " ", matched.group())
    if matched.group("arguments"):
        code = f"#define {matched.group('name')}{matched.group('arguments')}"
    return Thing("macro", matched.group("name"), code, []), matched.end()


def things_of(text):
    """Yields all things that a header declares."""
    at, said = 0, None
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        thing, skipped = None, MARK.match(text, at) or (FORWARD.match(text, at) if said is None else None)
        remark = COMMENT.match(text, at)
        if remark:
            if remark.group().startswith("/**"):
                if said is not None:
                    raise HeaderError(f"a comment of nothing: {said[:60]!r}")
                said = remark.group()
            at = remark.end()
        elif text[at] == "#":
            thing, at = define(text, at)
        elif skipped:
            at = skipped.end()
        else:
            thing, at = declaration(text, at)
        if thing is not None:
            document(thing, said)
            said = None
            yield thing
    if said is not None:
        raise HeaderError(f"a comment of nothing: {said[:60]!r}")


def head_of(path, text):
    """Returns the description in the comment at the head of a file, and the text after the comment."""
    matched = re.match(r"/\* SPDX[^\n]*\n(/\*\*.*?\*/)\n", text, re.S)
    lines = comment.bare_lines(matched.group(1)) if matched else [""]
    if lines[0] != f"@file {path.name}":
        raise HeaderError(f"does not begin with its licence and `@file {path.name}`")
    return comment.blocks(lines[1:]), text[matched.end():]


def read_header(path):
    try:
        description, rest = head_of(path, CHECKED.sub("", path.read_text(encoding="utf-8")))
        header = Header(path.name, description)
        for thing in things_of(rest):
            thing.header = header
            if not GUARD.match(thing.name):
                header.things.append(thing)
    except HeaderError as error:
        raise HeaderError(f"{path.name}: {error}") from error
    return header


class Manual:
    """All headers, and the header that declares each name."""

    def __init__(self, paths):
        """Reads headers (.h) and programs with examples (.c)."""
        paths = [pathlib.Path(path) for path in paths]
        headers = [path for path in paths if path.suffix == ".h" and path.name not in WITHOUT_PAGES]
        self.headers = [read_header(path) for path in headers]
        self.overview = next(head for head in self.headers if head.name == "tickwheel.h")
        self.headers.remove(self.overview)
        self.headers.sort(key=lambda head: (ORDER.index(head.stem) if head.stem in ORDER else len(ORDER), head.name))
        self.functions = {thing.name: thing for head in self.headers for thing in head.of("function")}
        self.types = {
            thing.name: thing for head in self.headers for thing in head.of(*TYPES)
        }
        self.values = {
            name: thing for thing in self.types.values() if thing.kind == "enum" for name, _ in thing.members
        }
        self.macros = {thing.name: thing for head in self.headers for thing in head.of("macro")}
        self.vocabulary = self.read_vocabulary()
        self.check_opaque(headers)
        self.check_names()
        self.examples = examples.read([path for path in paths if path.suffix == ".c"])
        self.check_examples()

    def read_vocabulary(self):
        """Returns the meaning of each error code, from the table of error.h."""
        rows = [
            row
            for head in self.headers
            for kind, content in head.description
            if kind == "table"
            for row in content
        ]
        return {code: meaning for code, meaning in rows if code.startswith("-E")}

    def page_of(self, name):
        """Returns the function or type whose page has this name, or None."""
        return self.functions.get(name) or self.types.get(name)

    def declared(self, name):
        return (
            name in self.functions
            or name in self.types
            or name in self.values
            or name in PROGRAM_MACROS
            or name in self.macros
        )

    def has_field(self, word):
        record, field = word.split(".")
        return record in self.types and field in dict(self.types[record].members)

    def unknown(self, kind, word):
        """Returns True if the word is a name or a code that no header declares."""
        if kind == "field":
            return not self.has_field(word)
        return kind == "name" and not self.declared(word) or kind == "error" and word not in self.vocabulary

    def check_opaque(self, paths):
        for path in paths:
            for name in FORWARD.findall(path.read_text(encoding="utf-8")):
                if name.startswith("tw_") and name not in self.types:
                    raise HeaderError(f"{path.name}: {name} has no comment")

    def check_examples(self):
        for name in self.examples:
            if name not in self.functions:
                raise HeaderError(f"{self.examples[name].program}: {name} is no function")
        for name in self.functions:
            if name not in self.examples:
                raise HeaderError(f"{name} has no example in {examples.FOLDER}")

    def check_names(self):
        for where, text in self.texts():
            for kind, word in comment.tokens(text):
                if self.unknown(kind, word):
                    raise HeaderError(f"{where} names {word}, which nothing declares")

    def texts(self):
        """Yields (place, text) for every text in the comments."""
        for head in [self.overview, *self.headers]:
            yield from ((head.name, text) for kind, text in head.description if kind == "text")
            for thing in head.things:
                said = [thing.description, *(text for _, text in thing.members)]
                for blocks in said:
                    yield from ((thing.name, text) for kind, text in blocks if kind == "text")
                yield from ((thing.name, text) for text in thing.tags.values())
