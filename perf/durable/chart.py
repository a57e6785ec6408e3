# SPDX-License-Identifier: MIT
"""Draws the figures that compare.py measures: a panel for each column of its table, with a dot for each keeper.

A keeper is a system that stores timers."""
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "report"))
import svg

ROW, DOT, NAMES, VALUE_ROOM, BETWEEN = 18, 4.5, 230, 80, 40
OURS_COLOUR, PEER_COLOUR = svg.COLOURS[0], svg.COLOURS[5]


def thousands(value):
    return f"{value / 1000:,.0f} k" if value >= 10000 else f"{value / 1000:,.1f} k"


def middles(measured, column):
    """Returns the median of each keeper that has this column."""
    found = {title: [one[column] for one in figures if column in one] for title, figures in measured.items()}
    return {title: statistics.median(values) for title, values in found.items() if values}


def panel(picture, axis, heading, values, titles):
    top = picture.below + BETWEEN
    bottom = top + ROW * len(titles)
    picture.text(axis.begin, top - 8, heading, svg.PLAIN, bold=True)
    for value, label in axis.ticks:
        picture.line([(axis.at(value), top), (axis.at(value), bottom)], svg.GRID)
        picture.text(axis.at(value), bottom + 15, label, svg.SMALL, anchor="middle", colour=svg.SOFT)
    for i, title in enumerate(titles):
        y = top + ROW * i + ROW / 2
        ours = title.startswith("tickwheel")
        picture.text(NAMES - 8, y + 4, title.replace("`", ""), svg.SMALL, anchor="end", bold=ours)
        picture.dot(axis.at(values[title]), y, OURS_COLOUR if ours else PEER_COLOUR, DOT)
        picture.text(axis.at(values[title]) + DOT + 4.5, y + 4, thousands(values[title]), svg.SMALL, bold=ours, over=True)
    picture.below = bottom + 18


def draw(measured, columns, about):
    """Returns the picture as SVG. `columns`: pairs of a key of the figures and its heading."""
    picture = svg.Picture("Durable timers beside other keepers", "Timers a second, in batches of 1,000, on a logarithmic scale; more is better.")
    panels = [(heading, middles(measured, key)) for key, heading in columns]
    every = [value for _, values in panels for value in values.values()]
    for heading, values in panels:
        axis = svg.logarithmic("", min(every) / 1.2, max(every), thousands).lies(NAMES, svg.WIDTH - VALUE_ROOM)
        panel(picture, axis, heading, values, sorted(values, key=values.get, reverse=True))
    picture.foot(about)
    return picture.svg()
