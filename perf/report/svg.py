# SPDX-License-Identifier: MIT
"""Writes pictures as SVG: shapes and text, axes, and lines with their names at their ends.

Every picture has its own background, so that it can be read on any page. The background is white, or dark if the
reader's browser prefers that (STYLE).
"""
import math
from xml.sax.saxutils import escape

WIDTH = 860
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
TEXT, SOFT, GRID, GROUND = "#1b1f24", "#57606a", "#d8dee4", "#ffffff"
SMALL, PLAIN, TITLE = 11, 12, 16
# The average width of a character of these fonts, as a part of the font size. The value is a little too large, so that
# no text is wider than expected.
CHARACTER = 0.6
# Colours that most people can tell apart. Further series use the same colours with dashes.
COLOURS = ["#0550ae", "#bc4c00", "#116329", "#8250df", "#a40e26", "#6e7781", "#9a6700", "#0f766e"]
DASHES = ["", "7 3", "2 3"]
# The colours of the pictures under docs, each with its counterpart on a dark page.
DARK = {
    "#ffffff": "#15181c", "#1b1f24": "#dfe3e8", "#57606a": "#a3adb8", "#d8dee4": "#363d45", "#f6f8fa": "#22272e",
    "#0550ae": "#79b8ff", "#ddf4ff": "#11293f", "#bc4c00": "#ffa657", "#fff1e5": "#3a2616", "#116329": "#56d364",
    "#1a7f37": "#56d364", "#dafbe1": "#14311d", "#8250df": "#c9a2ff", "#fbefff": "#2e2142", "#a40e26": "#ff7b72",
    "#6e7781": "#9aa5b1", "#8c959f": "#7d8894", "#9a6700": "#e3b341", "#0f766e": "#4fd1c5",
}
# CSS rules, because a rule overrides an attribute such as fill.
RULES = [f'[fill="{light}"] {{ fill: {dark} }} [stroke="{light}"] {{ stroke: {dark} }}' for light, dark in DARK.items()]
STYLE = "\n".join(["<style>", "@media (prefers-color-scheme: dark) {", *RULES, "}", "</style>"])


def text_width(text, size):
    return len(text) * size * CHARACTER


def wrapped(text, width, size):
    """Breaks a text into lines of at most this width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def figure(value):
    """Formats a number with three significant digits."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def coordinate(value):
    return f"{value:.1f}".removesuffix(".0")


class Picture:
    """A picture that grows downwards. `below` is the height at which the next part may begin."""

    def __init__(self, title, about=""):
        self.title, self.parts, self.below = title, [], 30
        self.text(20, self.below, title, TITLE, bold=True)
        for i, line in enumerate(wrapped(about, WIDTH - 40, PLAIN)):
            self.below += 17 if i else 22
            self.text(20, self.below, line, PLAIN, colour=SOFT)

    def text(self, x, y, text, size=PLAIN, *, anchor="start", colour=TEXT, bold=False, turned=False, over=False):
        """Adds a text. `over`: the text gets an outline in the background's colour, so that it can be read on top of
        lines."""
        place = f'x="{coordinate(x)}" y="{coordinate(y)}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
        if bold:
            place += ' font-weight="bold"'
        if over:
            place += f' stroke="{GROUND}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
        if turned:
            place += f' transform="rotate(-90 {coordinate(x)} {coordinate(y)})"'
        self.parts.append(f"<text {place}>{escape(text)}</text>")

    def line(self, points, colour, width=1.0, dashes=""):
        path = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linejoin="round"{dashed}/>'
        )

    def dot(self, x, y, colour, radius=3):
        self.parts.append(f'<circle cx="{coordinate(x)}" cy="{coordinate(y)}" r="{radius:g}" fill="{colour}"/>')

    def bar(self, x, y, width, height, colour):
        box = f'x="{coordinate(x)}" y="{coordinate(y)}" width="{coordinate(width)}" height="{coordinate(height)}"'
        self.parts.append(f'<rect {box} fill="{colour}"/>')

    def foot(self, text):
        """Adds the last lines, which say on which machine the picture's figures were measured."""
        self.below += 6
        for line in wrapped(text, WIDTH - 40, SMALL):
            self.below += 16
            self.text(20, self.below, line, SMALL, colour=SOFT)

    def svg(self):
        height = math.ceil(self.below) + 14
        return "\n".join([
            "<!-- SPDX-License-Identifier: MIT -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="{FONT}">',
            f"<title>{escape(self.title)}</title>",
            STYLE,
            f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{GROUND}"/>',
            *self.parts, "</svg>", "",
        ])


class Axis:
    """Maps values to coordinates. `ticks` are pairs of a value and its label."""

    def __init__(self, title, low, high, ticks, way=float):
        self.title, self.way, self.ticks = title, way, ticks
        self.low, self.high = way(low), way(high)
        self.begin = self.end = 0

    def lies(self, begin, end):
        self.begin, self.end = begin, end
        return self

    def at(self, value):
        return self.begin + (self.way(value) - self.low) / (self.high - self.low) * (self.end - self.begin)


def linear(title, high):
    """Returns an axis from 0, with four to eight steps of 1, 2 or 5 times a power of ten."""
    high = high or 1
    step = 10 ** math.floor(math.log10(high / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 8)
    count = math.ceil(high / step - 1e-9)
    ticks = [(i * step, f"{i * step:,.10g}") for i in range(count + 1)]
    return Axis(title, 0, count * step, ticks)


def logarithmic(title, low, high, label=lambda value: f"{value:,.10g}"):
    """Returns an axis with ticks at powers of ten. If these are few, it also has ticks at 2 and 5 times each power."""
    from_power, to_power = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if to_power - from_power <= 2 else (1,)
    values = [factor * 10.0**power for power in range(from_power, to_power + 1) for factor in factors]
    values = [value for i, value in enumerate(values) if (i + 1 == len(values) or values[i + 1] > low)]
    values = values[: next((i for i, value in enumerate(values) if value >= high), len(values) - 1) + 1]
    if len(values) == 1:
        values.append(values[0] * 10)
    return Axis(title, values[0], values[-1], [(value, label(value)) for value in values], math.log10)


def frame(picture, across, up):
    """Draws grid, labels and titles of two axes that already have their places. Moves `below` under them."""
    for value, label in up.ticks:
        y = up.at(value)
        picture.line([(across.begin, y), (across.end, y)], GRID)
        picture.text(across.begin - 8, y + 4, label, SMALL, anchor="end")
    for value, label in across.ticks:
        x = across.at(value)
        picture.line([(x, up.begin), (x, up.end)], GRID)
        picture.text(x, up.begin + 17, label, SMALL, anchor="middle")
    picture.line([(across.begin, up.end), (across.begin, up.begin), (across.end, up.begin)], SOFT)
    picture.text((across.begin + across.end) / 2, up.begin + 38, across.title, PLAIN, anchor="middle")
    picture.text(28, (up.begin + up.end) / 2, up.title, PLAIN, anchor="middle", turned=True)
    picture.below = up.begin + 46


def apart(places, least, low, high):
    """Moves the places apart, so that neighbours have at least the distance `least`. They stay between low and high if
    there is space."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for last, this in zip(order, order[1:]):
        moved[this] = max(moved[this], moved[last] + least)
    middle = (sum(moved) - sum(places)) / len(places)
    shift = max(min(-middle, high - max(moved)), low - min(moved))
    return [place + shift for place in moved]


class Series:
    """A line through points (x, y). `bold`: the line that the picture is about."""

    def __init__(self, name, points, colour, dashes="", bold=False):
        self.name, self.points, self.colour, self.dashes, self.bold = name, points, colour, dashes, bold


def names_at_ends(picture, across, up, series):
    """Writes each name to the right of the axes, at the height where its line ends, or as near as other names allow."""
    ends = [up.at(one.points[-1][1]) for one in series]
    for one, end, y in zip(series, ends, apart(ends, 16, up.end, up.begin)):
        x = across.at(one.points[-1][0])
        picture.line([(x + 4, end), (across.end + 8, y), (across.end + 30, y)], one.colour, 2.5 if one.bold else 1.5, one.dashes)
        picture.text(across.end + 35, y + 4, one.name, SMALL, bold=one.bold)


def lines(picture, across, up, series, names_width=150, height=330):
    """Draws a chart of lines over the whole width, below the parts that the picture has already."""
    across.lies(90, WIDTH - names_width - 50)
    up.lies(picture.below + 20 + height, picture.below + 20)
    frame(picture, across, up)
    for one in series:
        places = [(across.at(x), up.at(y)) for x, y in one.points]
        picture.line(places, one.colour, 3 if one.bold else 1.8, one.dashes)
        for x, y in places:
            picture.dot(x, y, one.colour, 3.5 if one.bold else 2.5)
    names_at_ends(picture, across, up, series)
