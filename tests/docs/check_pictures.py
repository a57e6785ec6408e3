#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that pictures (SVG) can be read, and that the documentation shows them.

usage: check_pictures.py SOURCE_ROOT

Each picture under docs must be well-formed, have a title, be at most 900 wide, and have a white background.
For readers who prefer a dark page it must have a rule for each colour. Letters must stand out from the
background, light and dark. No bars may be on a logarithmic axis. No text may be smaller than 11. All text
must be inside the picture; no text may overlap another, or cross the border of a box that it begins in.
Widths are estimated from the number of characters, rather too large than too small. Frames of a recording
are shown one at a time. A page must show each picture. house.svg must name the folders of src, and no
others. The README's chart must have the figures of docs/perf.md, as perf/report/summary.py draws them, and
all charts must have its style.
"""
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
CHARACTER = 0.6
SMALLEST, WIDEST = 11, 900
# The least contrast of light and dark, as WCAG 2 requires for text (level AA).
CONTRAST_LEAST = 4.5
DARK_STYLE = re.compile(r"^@media \(prefers-color-scheme: dark\) \{\n(.*?)^\}$", re.M | re.S)
DARK_RULE = re.compile(r'\[(fill|stroke)="(#\w{6})"\] \{ \1: (#\w{6}) \}')
COLOUR = re.compile(r'(fill|stroke)="(#\w+)"')
ALWAYS = -1
INHERITED = ("font-size", "text-anchor", "fill")


def texts(element, inherited):
    """Yields each text with the attributes that it inherits from the groups around it."""
    inherited = {**inherited, **{key: element.get(key) for key in INHERITED if element.get(key)}}
    if element.tag == SVG + "text":
        yield element, inherited
    for child in element:
        yield from texts(child, inherited)


def box(text, inherited):
    """Returns left, top, right and bottom of a text."""
    size, x, y = float(inherited["font-size"]), float(text.get("x")), float(text.get("y"))
    width = len(text.text) * size * CHARACTER
    before = width * {"start": 0, "middle": 0.5, "end": 1}[inherited.get("text-anchor", "start")]
    if text.get("transform"):
        # A text that is turned to the left goes up the page.
        return x - 0.8 * size, y - (width - before), x + 0.2 * size, y + before
    return x - before, y - 0.8 * size, x - before + width, y + 0.2 * size


def boxes(root):
    """Returns each text, its box, and the number of the recording's frame that shows it, or ALWAYS."""
    moving = {text: at for at, group in enumerate(root.iterfind(f".//{SVG}g[@class='frame']")) for text in group}
    return [(text.text, box(text, inherited), moving.get(text, ALWAYS)) for text, inherited in texts(root, {"font-size": "16"})]


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def inside(inner, outer):
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def frames(root):
    """Yields the boxes that have a border."""
    for rect in root.iter(SVG + "rect"):
        if rect.get("stroke"):
            x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            yield x, y, x + width, y + height


def begins_in(words, frame):
    return frame[0] <= words[0] < frame[2] and frame[1] <= (words[1] + words[3]) / 2 < frame[3]


def faults_of_text(root, whole):
    found = boxes(root)
    for i, (words, place, frame_at) in enumerate(found):
        if not inside(place, whole):
            yield f"\"{words}\" is outside"
        for others, other, other_at in found[i + 1:]:
            if overlap(place, other) and (frame_at == other_at or ALWAYS in (frame_at, other_at)):
                yield f"\"{words}\" lies over \"{others}\""
        for frame in frames(root):
            if begins_in(place, frame) and not inside(place, frame):
                yield f"\"{words}\" leaves its box"
    for _, inherited in texts(root, {"font-size": "16"}):
        if float(inherited["font-size"]) < SMALLEST:
            yield f"text of size {inherited['font-size']}"


def light_of(colour):
    """Returns the relative luminance of WCAG 2."""
    parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    lights = sorted((light_of(one), light_of(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def faults_of_colours(root, text):
    style = DARK_STYLE.search(text)
    dark = {(kind, light): to for kind, light, to in DARK_RULE.findall(style.group(1) if style else "")}
    ground = dark.get(("fill", "#ffffff"), "#ffffff")
    without = sorted({found for found in COLOUR.findall(DARK_STYLE.sub("", text)) if found not in dark})
    yield from (f"no dark rule for {kind} {colour}" for kind, colour in without)
    for colour in sorted({inherited["fill"] for _, inherited in texts(root, {"fill": "#000000"})}):
        shown = dark.get(("fill", colour), colour)
        if contrast(colour, "#ffffff") < CONTRAST_LEAST or contrast(shown, ground) < CONTRAST_LEAST:
            yield f"letters of {colour} are too near to the ground"


def faults_of_bars(root):
    words = [text.text for text in root.iter(SVG + "text")]
    if any("(log)" in word for word in words) and len(list(root.iter(SVG + "rect"))) > 1:
        yield "bars on a logarithmic axis"


def faults(text):
    """Returns what is wrong with the picture."""
    try:
        root = xml.fromstring(text)
    except xml.ParseError as error:
        yield f"not well-formed: {error}"
        return
    left, top, right, bottom = whole = tuple(float(part) for part in root.get("viewBox").split())
    title, ground = root.find(SVG + "title"), root.find(SVG + "rect")
    if title is None or not title.text:
        yield "no title"
    if right > WIDEST or (left, top) != (0, 0):
        yield "wider than 900"
    if (root.get("width"), root.get("height")) != (f"{right:g}", f"{bottom:g}"):
        yield "width and height are not the view box's"
    if ground is None or [ground.get(key) for key in ("fill", "width", "height")] != ["#ffffff", f"{right:g}", f"{bottom:g}"]:
        yield "no white ground"
    if re.search(r"\b(nan|inf)\b", text):
        yield "a place that is no number"
    yield from faults_of_colours(root, text)
    yield from faults_of_bars(root)
    yield from faults_of_text(root, whole)


def check_house(root):
    """Checks house.svg. The names of the folders are in bold type, in a column of their own."""
    picture = xml.fromstring((root / "docs/pictures/house.svg").read_text(encoding="utf-8"))
    rooms = {text.text for text in picture.iter(SVG + "text") if text.get("font-weight") == "bold"}
    folders = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    if rooms != folders:
        yield f"house.svg: {', '.join(sorted(rooms ^ folders))}: not in both, the picture and src"


def check_summary(root):
    command = [sys.executable, "-B", root / "perf/report/summary.py", root / "docs/perf.md"]
    drawn = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if drawn.stdout != (root / "docs/pictures/perf/summary.svg").read_text(encoding="utf-8"):
        yield f"summary.svg: not the chart of docs/perf.md {drawn.stderr}"


def check_styles(pictures):
    styles = {found.group() if found else "" for found in (DARK_STYLE.search(picture.read_text(encoding="utf-8")) for picture in pictures)}
    if len(styles) != 1:
        yield "not all pictures have the same style, that of perf/report/svg.py"


def check_shown(root, pictures):
    pages = "\n".join(page.read_text(encoding="utf-8") for page in [*root.glob("*.md"), *(root / "docs").rglob("*.md")])
    for picture in pictures:
        if f"{picture.relative_to(root / 'docs')})" not in pages:
            yield f"{picture.name}: no page shows it"


def main():
    root = pathlib.Path(sys.argv[1])
    pictures = sorted((root / "docs").rglob("*.svg"))
    wrong = [f"{picture.name}: {fault}" for picture in pictures for fault in faults(picture.read_text(encoding="utf-8"))]
    wrong += [*check_house(root), *check_summary(root), *check_styles(pictures), *check_shown(root, pictures)]
    print("\n".join(wrong) if wrong else f"{len(pictures)} pictures: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
