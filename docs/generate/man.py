# SPDX-License-Identifier: MIT
"""Writes manual pages in the macros of man(7): one for each function, each type and each header, the overview
tickwheel(7), and pages of programs from their usage texts. A macro gets a link to the page that describes it."""
import re

import comment
import headers

# The 80 columns of a terminal, less the indent of a page, less one.
COLUMNS = 72
TAG_TITLES = {"Returns": "RETURN VALUE"}
FUNCTION_TAGS = [name for name in comment.TAGS if name not in ("Returns", "Since")] + ["Returns", "Since"]
LIBRARY = "-l{0}, by \\fBpkg-config \\-\\-cflags \\-\\-libs {1}\\fP"
PROSE = {"\\": "\\e", "~": "\\(ti", "^": "\\(ha", "`": "\\(ga"}
LITERAL = {**PROSE, "-": "\\-", "'": "\\(aq", '"': "\\(dq"}


def escaped(text, table):
    letters = (table.get(letter, letter) for letter in text)
    return "".join(one if ord(one[0]) < 128 else f"\\[u{ord(one):04X}]" for one in letters)


def literal(text):
    return escaped(text, LITERAL)


def prose(text):
    """Writes a minus in negative numbers and in option names, and a hyphen in words."""
    return re.sub(r"(?<![\w)])-(?=[\w-])", r"\\-", escaped(text, PROSE))


def bold(text):
    return f"\\fB{literal(text)}\\fP"


def italic(text):
    return f"\\fI{literal(text)}\\fP"


def sentence(text):
    """Adds a capital, unless the text begins with a name, and a full stop."""
    begins = re.match(r"[a-z]+\b(?!_)", text)
    text = text[:1].upper() + text[1:] if begins else text
    return text if text.endswith((".", ":", ")")) and not re.search(r"[^.]\)$", text) else f"{text}."


def lines_of(text):
    """Returns a text as lines that roff does not take for macros. Each sentence begins a line."""
    for line in re.split(r"(?<=[.:;!?])\s+(?=[A-Z0-9\\(])", text):
        yield f"\\&{line}" if line[:1] in (".", "'") else line


def code_block(code, indent=4):
    shown = [f"\\&{line}" if line[:1] in (".", "'") else line for line in literal(code).split("\n")]
    return [".PP", f".RS {indent}", ".nf", *(line.replace("\t", "        ") for line in shown), ".fi", ".RE"]


def wrapped_arguments(begin, arguments):
    """Returns the lines of a prototype, broken after commas, with the names of arguments in italics."""
    lines, line, width = [], bold(begin), len(begin)
    longest = max(map(len, arguments)) + len(");")
    indent = " " * (len(begin) if len(begin) + longest <= COLUMNS else 8)
    for at, argument in enumerate(arguments):
        end = "," if at + 1 < len(arguments) else ");"
        if at and width + len(argument) + 1 + len(end) > COLUMNS:
            lines.append(line)
            line, width = indent, len(indent)
        elif at:
            line, width = f"{line} ", width + 1
        matched = re.match(r"^(.*?)(\w+)$", argument)
        named = matched and matched.group(1)
        shown = bold(matched.group(1)) + italic(matched.group(2)) if named else bold(argument)
        line, width = line + shown + bold(end), width + len(argument) + len(end)
    return [*lines, line]


def prototype(code):
    flat = re.sub(r"\s+", " ", code)
    matched = re.match(r"^(?:TW_API |TW_BESIDE_API )?(.*?\b(?:tw_\w+)\()(.*)\);$", flat)
    return wrapped_arguments(matched.group(1), comment.split_outside(matched.group(2), ","))


class Pages:
    """All pages of a manual: pages() yields the name with its section, and the text, of each page."""

    def __init__(self, manual, version, date):
        self.manual = manual
        self.version = version
        self.date = date

    def head(self, name, section):
        return [
            '.\\" SPDX-License-Identifier: MIT',
            f'.TH {name.upper()} {section} "{self.date}" "tickwheel {self.version}" "Timers by tickwheel"',
            ".nh",
            ".ad l",
        ]

    def reference(self, word, here):
        page = self.manual.page_of(word)
        if page is None or word == here:
            return bold(word)
        return f"{bold(word)}(3)"

    def inline(self, text, here):
        shown = {
            "text": prose,
            "code": italic,
            "page": italic,
            "error": bold,
            "field": bold,
            "name": lambda word: self.reference(word, here),
        }
        return "".join(shown[kind](words) for kind, words in comment.tokens(text))

    def paragraph(self, text, here):
        return [".PP", *lines_of(self.inline(text, here))]

    def table(self, rows, here):
        found = []
        for first, *rest in rows:
            found += [".TP", self.inline(first, here), *lines_of(self.inline(". ".join(rest), here))]
        return found

    def blocks(self, description, here):
        found = []
        for kind, content in description:
            if kind == "text":
                found += self.paragraph(content, here)
            elif kind == "code":
                found += code_block(content)
            else:
                found += self.table(content, here)
        return found

    def section(self, title, description, here):
        body = self.blocks(description, here)
        return [f".SH {title}", *(body[1:] if body[:1] == [".PP"] else body)]

    def returned_items(self, items, here):
        found = []
        for codes, meaning in items:
            if codes and not meaning:
                meaning = "; ".join(self.manual.vocabulary[code] for code in codes)
            if codes:
                found += [".TP", ", ".join(bold(code) for code in codes)]
            else:
                found += [".PP"]
            found += lines_of(self.inline(sentence(meaning), here))
        return found

    def return_value(self, text, here):
        items, rest = comment.returned(text)
        body = self.returned_items(items, here)
        found = [".SH RETURN VALUE", *(body[1:] if body[0] == ".PP" else body)]
        return found + (self.paragraph(rest, here) if rest else [])

    def tags(self, thing):
        found = []
        for name in FUNCTION_TAGS:
            if name == "Returns":
                found += self.return_value(thing.tags[name], thing.name)
            elif name in thing.tags:
                found += [f".SH {name.upper()}", *self.paragraph(sentence(thing.tags[name]), thing.name)[1:]]
        return found

    def members(self, thing):
        if not any(said for _, said in thing.members):
            return []
        show = bold if thing.kind == "enum" else italic
        found = [".SH VALUES" if thing.kind == "enum" else ".SH MEMBERS"]
        for name, said in thing.members:
            if said:
                body = self.blocks(said, thing.name)[1:]
                found += [".TP", show(name), *(".IP" if line == ".PP" else line for line in body)]
        return found

    def macros(self, macros, here):
        found = []
        for macro in macros:
            body = self.blocks(macro.description, here)[1:]
            found += [".TP", bold(macro.code.removeprefix("#define ")), *body]
        return [".SH MACROS", *found] if found else []

    def macros_of(self, thing):
        """Returns the macros that make a value of the type, such as TW_KIND and TW_KIND_SLACK for struct tw_kind."""
        mark = thing.name.upper()
        return [
            macro
            for macro in thing.header.of("macro")
            if thing.kind == "struct" and f"{macro.name}(" in macro.code and f"{macro.name}_".startswith(f"{mark}_")
        ]

    def macro_pages(self):
        """Returns for each macro the page that describes it: that of its type, or else that of its header."""
        pages = {}
        for name, macro in self.manual.macros.items():
            types = [thing.name for thing in macro.header.of("struct") if macro in self.macros_of(thing)]
            pages[name] = types[0] if types else f"tickwheel-{macro.header.stem}"
        return pages

    def example(self, thing):
        found = self.manual.examples[thing.name]
        return [".SH EXAMPLES", f"From {italic(found.program)}, a program of the tests:", *code_block(found.code)]

    def see_also(self, names, header):
        pages = [f"{bold(name)}(3)" for name in sorted(names)]
        if header is not None:
            pages.append(f"{bold(f'tickwheel-{header.stem}')}(3)")
        pages.append(f"{bold('tickwheel')}(7)")
        return [".SH SEE ALSO", *(f"{page}," for page in pages[:-1]), pages[-1]]

    def mentioned(self, thing):
        """Returns the functions and types for SEE ALSO: those that the page names, and its neighbours."""
        texts = [text for kind, text in thing.description if kind == "text"] + [*thing.tags.values(), thing.code]
        for _, said in thing.members:
            texts += [text for kind, text in said if kind == "text"]
        words = {word for text in texts for kind, word in comment.tokens(text) if kind == "name"}
        pages = {self.manual.page_of(word).name for word in words if self.manual.page_of(word)}
        return (pages | self.neighbours(thing)) - {thing.name}

    def neighbours(self, thing):
        """Returns, for a function, the functions of its header; for a type, the functions that take it."""
        functions = self.manual.functions.values()
        if thing.kind == "function":
            return {other.name for other in functions if other.header is thing.header}
        return {other.name for other in functions if re.search(rf"\b{thing.name}\b", other.code)}

    def beginning(self, thing, name, section="3"):
        """Returns the head of a page and its section NAME, with the macros that link to the page."""
        brief = prose(comment.short(thing.description))
        names = [name, *(macro for macro, page in self.macro_pages().items() if page == name)]
        return [*self.head(name, section), ".SH NAME", f"{', '.join(map(literal, names))} \\- {brief}"]

    def library(self, header):
        beside = headers.BESIDE.get(header.stem)
        package = f"tickwheel-{beside}" if beside else "tickwheel"
        return [".SH LIBRARY", LIBRARY.format(literal(package), literal(package))]

    def include(self, header):
        name = f"tickwheel/{header.name}" if header.stem in headers.BESIDE else "tickwheel.h"
        return [".nf", f"\\fB#include <{literal(name)}>\\fP", ".PP"]

    def function_page(self, thing):
        twin = self.manual.types.get(thing.name)
        page = self.beginning(thing, thing.name) + self.library(thing.header)
        page += [".SH SYNOPSIS", *self.include(thing.header), *prototype(thing.code)]
        if twin:
            page += [".PP", *literal(twin.code).replace("\t", "    ").split("\n")]
        page += [".fi", *self.section("DESCRIPTION", thing.description, thing.name)]
        page += (self.members(twin) if twin else []) + self.tags(thing) + self.example(thing)
        return page + self.see_also(self.mentioned(thing), thing.header)

    def type_page(self, thing):
        page = self.beginning(thing, thing.name) + self.library(thing.header)
        page += [".SH SYNOPSIS", *self.include(thing.header)]
        if thing.kind == "hook":
            page += prototype(thing.code)
        else:
            page += literal(thing.code).replace("\t", "    ").split("\n")
        page += [".fi", *self.section("DESCRIPTION", thing.description, thing.name)]
        page += self.members(thing) + self.macros(self.macros_of(thing), thing.name)
        return page + self.see_also(self.mentioned(thing), thing.header)

    def listed(self, title, things):
        """Returns a section that lists names with their first sentences."""
        found = [f".SH {title}"]
        for thing in things:
            found += [".TP", f"{bold(thing.name)}(3)", prose(comment.short(thing.description))]
        return found if things else []

    def header_page(self, header):
        name = f"tickwheel-{header.stem}"
        page = self.beginning(header, name) + self.library(header)
        page += [".SH SYNOPSIS", ".nf", f"\\fB#include <tickwheel/{literal(header.name)}>\\fP", ".fi"]
        page += self.section("DESCRIPTION", header.description, name)
        page += self.listed("FUNCTIONS", header.of("function"))
        page += self.listed("TYPES", header.of(*headers.TYPES))
        page += self.macros(header.of("macro"), name)
        return page + self.see_also([], None)

    def overview_page(self):
        overview = self.manual.overview
        page = self.beginning(overview, "tickwheel", "7") + self.library(overview)
        page += [".SH SYNOPSIS", *self.include(overview)[:-1], ".fi"]
        page += self.section("DESCRIPTION", overview.description, "tickwheel")
        page += [".SH PARTS"]
        for header in self.manual.headers:
            names = ", ".join(f"{bold(thing.name)}(3)" for thing in header.of("function"))
            page += [".TP", f"{bold(f'tickwheel-{header.stem}')}(3)"]
            page += [*lines_of(prose(f"{comment.brief(header.description)}.")), ".br", f"{names}."]
        return page + [".SH SEE ALSO", f"{bold('tickwheel-perf')}(1), {bold('tickwheel-durable')}(1)"]

    def program_page(self, said):
        name = said.name.replace("-", "\\-")
        page = [*self.head(said.name, 1), ".SH NAME", f"{name} \\- {prose(said.program.brief)}"]
        page += [".SH SYNOPSIS", ".nf", *(bold(command) for command, _ in said.commands), ".fi"]
        page += [".SH DESCRIPTION", *lines_of(prose(said.program.description)), ".SH COMMANDS"]
        for command, meaning in said.commands:
            page += [".TP", bold(command), prose(meaning)]
        page += [".SH OPTIONS"]
        for option, meaning in said.options:
            page += [".TP", bold(option), prose(meaning)]
        page += [".SH EXIT STATUS", prose(said.status)]
        return page + self.see_also([], None)

    def names(self):
        """Returns the names of all pages except those of programs."""
        words = [*self.manual.functions, *self.manual.types]
        words += [f"tickwheel-{header.stem}" for header in self.manual.headers]
        words += self.manual.macros
        return [f"{name}.3" for name in sorted(set(words))] + ["tickwheel.7"]

    def pages(self):
        for thing in self.manual.functions.values():
            yield f"{thing.name}.3", self.function_page(thing)
        for thing in self.manual.types.values():
            if thing.name not in self.manual.functions:
                yield f"{thing.name}.3", self.type_page(thing)
        for header in self.manual.headers:
            yield f"tickwheel-{header.stem}.3", self.header_page(header)
        for name, page in self.macro_pages().items():
            yield f"{name}.3", [f".so man3/{page}.3"]
        yield "tickwheel.7", self.overview_page()
