# SPDX-License-Identifier: MIT
"""Writes the manual in HTML: the pages of docs, the reference, and the sources to which they link.

Each file keeps its folder and becomes NAME.html, so in links only the endings change. cmark-gfm converts Markdown to
HTML.
"""
import html
import pathlib
import posixpath
import re
import shutil
import subprocess

import menu
import reference
import search
import start

CONVERTER = ["cmark-gfm", "--validate-utf8", "--extension", "table", "--extension", "strikethrough"]
HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.S)
TARGET = re.compile(r'(?P<begin><a href|<img src)="(?P<target>[^"]*)"(?P<rest>[^>]*>)')
LINKED_OR_NAME = re.compile(r"<a [^>]*>.*?</a>|<h\d.*?</h\d>|<code>(?P<kind>(?:struct |enum )?)(?P<name>(?:tw|TW)_\w+)</code>", re.S)
TABLE = re.compile(r"<table>.*?</table>", re.S)
PICTURES = {".svg", ".png"}


# Files that all pages use; they are in the folder of this script.
SHARED = ("manual.css", "search.js")


class SiteError(Exception):
    """Raised for a mistake in a page, such as a link to a file that does not exist."""


def slug(title):
    """Returns the anchor of a heading, as GitHub makes it."""
    bare = html.unescape(re.sub(r"<[^>]*>", "", title))
    return re.sub(r"[^\w\- ]", "", bare.lower()).replace(" ", "-")


def with_anchors(body):
    seen = {}

    def mark(matched):
        name = slug(matched.group(2))
        seen[name] = seen.get(name, -1) + 1
        anchor = f"{name}-{seen[name]}" if seen[name] else name
        return f'<h{matched.group(1)} id="{anchor}">{matched.group(2)}</h{matched.group(1)}>'

    return HEADING.sub(mark, body)


class Site:
    """The manual of a source tree, written into a folder."""

    def __init__(self, root, folder, manual, version):
        self.root = pathlib.Path(root)
        self.folder = pathlib.Path(folder)
        self.version = version
        self.reference = reference.Reference(manual)
        self.headers = {
            reference.page_path(header).removesuffix(".html") + ".h": header
            for header in [manual.overview, *manual.headers]
        }
        # Sources and folders that are still to be written because a page links to them.
        self.wanted = []
        self.written = set()

    def output_of(self, path):
        """Returns the path of the page that shows a file or folder of the tree."""
        if path in self.headers:
            return reference.page_path(self.headers[path])
        if path.endswith(".md"):
            return path.removesuffix(".md") + ".html"
        if pathlib.PurePath(path).suffix in PICTURES:
            return path
        if (self.root / path).is_dir():
            readme = posixpath.join(path, "README.md")
            return self.output_of(readme) if (self.root / readme).exists() else posixpath.join(path, "folder.html")
        return f"{path}.html"

    def resolve(self, target, page):
        """Returns the link in the manual for the target of a link on a page of the tree."""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return target
        name, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), name))
        if path.startswith("..") or not (self.root / path).exists():
            raise SiteError(f"{page}: {target} leads nowhere")
        self.wanted.append(path)
        link = posixpath.relpath(self.output_of(path), posixpath.dirname(page) or ".")
        return f"{link}#{anchor}" if anchor else link

    def with_links(self, body, page):
        def turned(matched):
            target = self.resolve(html.unescape(matched.group("target")), page)
            return f'{matched.group("begin")}="{html.escape(target)}"{matched.group("rest")}'

        return TARGET.sub(turned, body)

    def with_names(self, body, page):
        """Adds links to the reference to names of the interface that are not part of a link yet."""

        def linked(matched):
            name = matched.group("name")
            return self.reference.link(name, page, matched.group("kind")) if name else matched.group()

        return LINKED_OR_NAME.sub(linked, body)

    def convert(self, page):
        return self.converted((self.root / page).read_text(encoding="utf-8"), page, self.output_of(page))

    def converted(self, text, page, output):
        """Returns the body of an output. The links in the text are relative to `page`."""
        done = subprocess.run(CONVERTER, input=text, capture_output=True, encoding="utf-8", check=True)
        if done.stderr:
            raise SiteError(f"{page}: {done.stderr}")
        body = with_anchors(done.stdout.replace("<!-- raw HTML omitted -->\n", ""))
        body = self.with_names(self.with_links(body, page), output)
        return TABLE.sub(lambda matched: f'<div class="wide">{matched.group()}</div>', body)

    def title_of(self, page):
        matched = re.search(r"^# (.*)$", (self.root / page).read_text(encoding="utf-8"), re.M)
        if matched is None:
            raise SiteError(f"{page} has no title")
        return matched.group(1).replace("`", "")

    def write(self, output, title, body):
        """Writes a page of the manual with this body."""
        up = "../" * output.count("/")
        language = "zh-CN" if "zh-CN" in output else "en"
        text = menu.PAGE.format(
            language=language,
            title=html.escape(title),
            up=up,
            menu=menu.navigation(self.groups, output),
            body=body,
            version=self.version,
        )
        path = self.folder / output
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.written.add(output)

    def write_source(self, path):
        text = (self.root / path).read_text(encoding="utf-8")
        self.write(self.output_of(path), path, f"<h1>{html.escape(path)}</h1>\n<pre><code>{html.escape(text)}</code></pre>")

    def write_folder(self, path):
        files = sorted(one for one in (self.root / path).iterdir() if one.is_file())
        items = []
        for one in files:
            name = f"{path}/{one.name}"
            self.wanted.append(name)
            items.append(f'<li><a href="{posixpath.basename(self.output_of(name))}">{one.name}</a></li>')
        self.write(self.output_of(path), path, f"<h1>{path}</h1>\n<ul>\n" + "\n".join(items) + "\n</ul>")

    def write_wanted(self):
        """Writes the pictures, sources and folders to which pages link."""
        while self.wanted:
            path = self.wanted.pop()
            output = self.output_of(path)
            if output in self.written or path.endswith(".md") or path in self.headers:
                continue
            if output == path:
                (self.folder / output).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / path, self.folder / output)
                self.written.add(output)
            elif (self.root / path).is_dir():
                if output.endswith("/folder.html"):
                    self.write_folder(path)
            else:
                self.write_source(path)

    def make_menu(self):
        """Returns the groups of the menu: (title, [(output, title)]) each."""
        pages = {page: self.title_of(page) for page in menu.pages_of(self.root)}
        self.groups = [
            (title, [(self.output_of(page), name or pages[page]) for page, name in members])
            for title, members in menu.grouped(pages)
        ]
        self.groups.append(
            ("Reference", [(reference.page_path(header), header.name) for header in self.headers.values()])
        )
        return pages

    def make(self):
        pages = self.make_menu()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name in SHARED:
            shutil.copyfile(pathlib.Path(__file__).parent / name, self.folder / name)
        entries = [*search.names(self.reference)]
        for page, title in pages.items():
            output, body = self.output_of(page), self.convert(page)
            self.write(output, title, body)
            entries += search.headings(output, title, body)
        (self.folder / "search-index.js").write_text(search.script(entries), encoding="utf-8")
        for header in self.headers.values():
            self.write(reference.page_path(header), header.name, "\n".join(self.reference.header(header)))
        begin = self.converted(start.text(self.root), "index.md", "index.html")
        self.write("index.html", "tickwheel", menu.start_page(begin, self.groups))
        self.write_wanted()
