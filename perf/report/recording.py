#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records tickwheel-perf top as a picture: runs it in a pseudo-terminal, and writes its output as SVG.

usage: recording.py TICKWHEEL_PERF [OPTION...] > docs/pictures/perf/top.svg

The options go to top. The picture shows the frames one after the other, each for a second, and begins again. If its reader
prefers no motion, it shows the last frame. It can be made again only by another run, so its figures differ each time.
"""
import datetime
import fcntl
import os
import pathlib
import pty
import re
import struct
import sys
import termios
from xml.sax.saxutils import escape

from svg import CHARACTER, COLOURS, TEXT, WIDTH, Picture, coordinate

ROWS, COLUMNS, FRAMES = 24, 104, 6
SIZE, LINE, LEFT = 13, 17, 24
FIXED_FONT = "ui-monospace, DejaVu Sans Mono, Liberation Mono, Menlo, monospace"
HOME = "\x1b[H"
# A piece of a line: an escape sequence that sets the style, another escape sequence, or text.
PIECE = re.compile(r"\x1b\[([\d;]*)m|\x1b\[[\d;?]*[A-Za-z]|([^\x1b]+)")
# The colours of a terminal (ECMA-48) by their numbers.
COLOUR_OF = {"31": COLOURS[4], "32": COLOURS[2], "34": COLOURS[0], "36": COLOURS[7]}
BACKGROUND = "46"
# A cell ends at two blanks. Each cell is drawn at its own place, so that columns are aligned in any font.
CELL = re.compile(r"\S+(?: \S+)*")


def record(command):
    """Runs the command in a pseudo-terminal. Returns what it writes."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        os.execvpe(command[0], command, {**environment, "TERM": "xterm"})
    written = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit(written.decode(errors="replace"))
    return written.decode()


def cells(line, y):
    """Yields the cells of a line as (column, y, text, colour, whether bold, whether a bar)."""
    column, codes = 0, []
    for piece in PIECE.finditer(line):
        sets, text = piece.groups()
        if sets is not None:
            codes = sets.split(";")
        if text is None:
            continue
        colour = next((COLOUR_OF[code] for code in codes if code in COLOUR_OF), TEXT)
        for cell in CELL.finditer(text):
            yield column + cell.start(), y, cell.group(), colour, "1" in codes, BACKGROUND in codes
        column += len(text)


def frames(written, top):
    """Yields the cells of each frame."""
    for shown in written.split(HOME)[1:]:
        lines = shown.split("\x1b[?1049l")[0].replace("\r", "").split("\n")
        yield [cell for at, line in enumerate(lines) for cell in cells(line, top + LINE * at)]


def shape(cell):
    column, y, text, colour, bold, bar = cell
    x = LEFT + column * SIZE * CHARACTER
    if bar:
        width = len(text) * SIZE * CHARACTER
        return f'<rect x="{coordinate(x)}" y="{y - 10}" width="{coordinate(width)}" height="11" fill="{colour}"/>'
    style = f' fill="{colour}"' if colour != TEXT else ""
    style += ' font-weight="bold"' if bold else ""
    return f'<text x="{coordinate(x)}" y="{y}"{style}>{escape(text)}</text>'


def motion(count):
    """Returns the style that shows frame k in second k of each round."""
    delays = [f".frame:nth-of-type({at + 1}) {{ animation-delay: {at - count}s }}" for at in range(count)]
    return "\n".join([
        "<style>",
        ".frame:not(:last-of-type) { visibility: hidden }",
        "@media (prefers-reduced-motion: no-preference) {",
        f".frame {{ animation: shown {count}s step-end infinite }}",
        *delays,
        "}",
        f"@keyframes shown {{ 0% {{ visibility: visible }} {100 / count:.3f}%, 100% {{ visibility: hidden }} }}",
        "</style>",
    ])


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*: (.*)$", text, re.M)
    return f"{model[1] if model else 'processor without a name'}, {os.cpu_count()} processors"


def draw(command, written):
    picture = Picture("An engine under load", "A recording of tickwheel-perf top, one frame a second.")
    top = picture.below + 32
    shown = list(frames(written, top))
    still = set.intersection(*(set(frame) for frame in shown))
    box = f'x="12" y="{top - 22}" width="{WIDTH - 24}" height="{LINE * ROWS + 20}"'
    picture.parts.append(f'<rect {box} rx="6" fill="#f6f8fa" stroke="#d8dee4"/>')
    picture.parts.append(f'<g font-family="{FIXED_FONT}" font-size="{SIZE}" fill="{TEXT}">')
    picture.parts += [shape(cell) for cell in shown[0] if cell in still]
    for frame in shown:
        picture.parts += ['<g class="frame">', *(shape(cell) for cell in frame if cell not in still), "</g>"]
    picture.parts += ["</g>", motion(len(shown))]
    picture.below = top + LINE * ROWS
    picture.foot(f"{' '.join(['tickwheel-perf', *command[1:]])}: {processor()}, {datetime.date.today().isoformat()}.")
    return picture.svg()


def main():
    command = [sys.argv[1], "top", *sys.argv[2:], "--frames", str(FRAMES)]
    sys.stdout.write(draw(command, record(command)))


if __name__ == "__main__":
    main()
