# SPDX-License-Identifier: MIT
"""Reads the examples of functions: marked parts of the programs in docs/examples/manual.

A part begins with a line that names the functions of which it is the example, and ends with another line:

    /* example: tw_clock_set tw_clock_now */
    ...
    /* end */
"""
import dataclasses
import re

FOLDER = "docs/examples/manual"
BEGIN, END = "/* example: ", "/* end */"
PART = re.compile(r"^/\* example: (?P<names>[\w ]+) \*/\n(?P<code>.*?)\n/\* end \*/$", re.M | re.S)
# Empty lines do not count.
LINES_MIN, LINES_MAX = 3, 12
# The 80 columns of a terminal, less the indents of a page and of its code, less one.
COLUMNS = 68


class ExampleError(Exception):
    """Raised for a part that breaks a rule."""


@dataclasses.dataclass
class Example:
    """The code of an example, and the path of its program in the source tree."""

    program: str
    code: str


def checked(name, code):
    lines = [line for line in code.split("\n") if line.strip()]
    if not re.search(rf"\b{name}\b", re.sub(r"/\*.*?\*/", "", code, flags=re.S)):
        raise ExampleError(f"the example of {name} does not use it")
    if not LINES_MIN <= len(lines) <= LINES_MAX:
        raise ExampleError(f"the example of {name} has {len(lines)} lines, not {LINES_MIN} to {LINES_MAX}")
    for line in lines:
        if len(line.expandtabs(8)) > COLUMNS:
            raise ExampleError(f"the example of {name} has a line of more than {COLUMNS} columns: {line}")
    return code


def parts(text):
    """Yields (name, code) for each function of which the program has an example."""
    found = list(PART.finditer(text))
    if not text.count(BEGIN) == text.count(END) == len(found):
        raise ExampleError(f"{text.count(BEGIN)} lines begin an example, and {text.count(END)} end one")
    for part in found:
        for name in part.group("names").split():
            yield name, checked(name, part.group("code"))


def read(paths):
    """Returns a dictionary from the names of functions to their examples."""
    found = {}
    for path in paths:
        try:
            for name, code in parts(path.read_text(encoding="utf-8")):
                if name in found:
                    raise ExampleError(f"{name} has another example in {found[name].program}")
                found[name] = Example(f"{FOLDER}/{path.name}", code)
        except ExampleError as error:
            raise ExampleError(f"{path.name}: {error}") from error
    return found
