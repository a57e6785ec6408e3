# SPDX-License-Identifier: MIT
"""Writes the reference in HTML: one page for each header. Names link to the places that explain them."""
import html
import posixpath

import comment
import headers


def page_path(header):
    folder = "include" if header.name == "tickwheel.h" else "include/tickwheel"
    return f"{folder}/{header.stem}.html"


class Reference:
    """The bodies of the pages, and the places to which names link."""

    def __init__(self, manual):
        self.manual = manual
        self.places = {}
        for header in manual.headers:
            for thing in header.things:
                self.places[thing.name] = f"{page_path(header)}#{thing.name}"
                if thing.kind == "enum":
                    self.places.update((name, f"{page_path(header)}#{name}") for name, _ in thing.members)

    def link(self, word, here, kind=""):
        """Returns a name as code, with `struct` or `enum` before it, and with a link if the manual explains it."""
        shown = f"<code>{kind}{html.escape(word)}</code>"
        place = self.places.get(word)
        if place is None:
            return shown
        path, anchor = place.split("#")
        start = "" if path == here else posixpath.relpath(path, posixpath.dirname(here))
        return f'<a href="{start}#{anchor}">{shown}</a>'

    def document(self, word, here):
        path = word.removesuffix(".md") + ".html"
        return f'<a href="{posixpath.relpath(path, posixpath.dirname(here))}">{html.escape(word)}</a>'

    def inline(self, text, here):
        shown = []
        for kind, words in comment.tokens(text):
            if kind == "text":
                shown.append(html.escape(words, quote=False))
            elif kind == "name":
                shown.append(self.link(words, here))
            elif kind == "page":
                shown.append(self.document(words, here))
            else:
                shown.append(f"<code>{html.escape(words)}</code>")
        return "".join(shown)

    def table(self, rows, here):
        body = "".join(
            "<tr>" + "".join(f"<td>{self.inline(cell, here)}</td>" for cell in row) + "</tr>\n" for row in rows
        )
        return f'<div class="wide"><table>\n<tbody>\n{body}</tbody>\n</table></div>'

    def blocks(self, description, here):
        shown = {
            "text": lambda text: f"<p>{self.inline(text, here)}</p>",
            "code": lambda code: f"<pre><code>{html.escape(code)}</code></pre>",
            "table": lambda rows: self.table(rows, here),
        }
        return [shown[kind](content) for kind, content in description]

    def members(self, thing, here):
        items = []
        for name, said in thing.members:
            mark = f' id="{name}"' if thing.kind == "enum" and thing.name != name else ""
            body = "\n".join(self.blocks(said, here))
            items.append(f"<dt{mark}><code>{name}</code></dt>\n<dd>{body}</dd>")
        return ["<dl>", *items, "</dl>"] if items else []

    def returned(self, text, here):
        items, rest = comment.returned(text)
        rows = []
        for codes, meaning in items:
            said = meaning or "; ".join(self.manual.vocabulary[code] for code in codes)
            mark = ", ".join(f"<code>{code}</code> " for code in codes)
            rows.append(f"<li>{mark}{self.inline(said, here)}</li>")
        return "<ul>" + "".join(rows) + "</ul>" + (f"<p>{self.inline(rest, here)}</p>" if rest else "")

    def tags(self, thing, here):
        rows = []
        for name, text in thing.tags.items():
            body = self.returned(text, here) if name == "Returns" else self.inline(text, here)
            rows.append(f"<tr><th>{name}</th><td>{body}</td></tr>")
        return ['<div class="wide"><table class="tags">', "<tbody>", *rows, "</tbody>", "</table></div>"] if rows else []

    def example(self, thing, here):
        if thing.kind != "function":
            return []
        found = self.manual.examples[thing.name]
        program = self.document(found.program, here)
        return [f"<p>Example, from {program}:</p>", f"<pre><code>{html.escape(found.code)}</code></pre>"]

    def thing(self, thing, here, twin):
        """Returns a thing with its heading. If an enum has the name of a function, it shares the function's place."""
        mark = "" if twin else f' id="{thing.name}"'
        kind = {"struct": "struct ", "opaque": "struct ", "enum": "enum "}.get(thing.kind, "")
        code = thing.code.replace("TW_API ", "").replace("TW_BESIDE_API ", "").replace("\t", "    ")
        return [
            f"<h3{mark}>{kind}{thing.name}</h3>",
            f"<pre><code>{html.escape(code)}</code></pre>",
            *self.blocks(thing.description, here),
            *self.members(thing, here),
            *self.tags(thing, here),
            *self.example(thing, here),
        ]

    def section(self, title, mark, things, here):
        body = [f'<h2 id="{mark}">{title}</h2>'] if things else []
        for thing in things:
            twin = thing.kind == "enum" and thing.name in self.manual.functions
            body += self.thing(thing, here, twin)
        return body

    def header(self, header):
        """Returns the body of a header's page."""
        here = page_path(header)
        name = "tickwheel.h" if header.name == "tickwheel.h" else f"tickwheel/{header.name}"
        body = [f"<h1>{name}</h1>", *self.blocks(header.description, here)]
        functions, types, macros = header.of("function"), header.of(*headers.TYPES), header.of("macro")
        if functions:
            rows = [[thing.name, comment.brief(thing.description)] for thing in functions]
            body.append(self.table(rows, here))
        body += self.section("Functions", "functions", functions, here)
        body += self.section("Types", "types", types, here)
        return body + self.section("Macros", "macros", macros, here)
