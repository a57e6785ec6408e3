# SPDX-License-Identifier: MIT
"""Makes the beginning of the manual's start page, as Markdown whose links are relative to the root of the tree.

The sentence and the section on installation are copied from the README, and the code from the quick start.
"""
import re

CODE = "docs/examples/quickstart.c"
CODE_BEGINS = "/* clang-format off */\n"
PICTURE = "docs/pictures/way.svg"
PICTURE_SAYS = (
    "Schedule, queue, wheel, callback, with the state of the timeout at each step; a cancel takes it out of the queue or "
    "the wheel, or comes too late; stop hands back the rest"
)
INSTALL = re.compile(r"^## Install the library\n(.*?)(?=^## )", re.M | re.S)
# The first paragraph of the README after its title and the links to translations.
SENTENCE = re.compile(r"^[A-Z][^\n]*\n(?:[^\n]+\n)*", re.M)

TEXT = """# tickwheel

{sentence}
```c
{code}```

![{says}]({picture})

## Install
{install}"""


def read(root, path):
    return (root / path).read_text(encoding="utf-8")


def text(root):
    """Returns the Markdown. Raises ValueError if the README or the example has another form than expected."""
    readme, code = read(root, "README.md"), read(root, CODE)
    sentence, install = SENTENCE.search(readme), INSTALL.search(readme)
    if None in (sentence, install) or "```sh\n" not in install.group(1) or CODE_BEGINS not in code:
        raise ValueError(f"the start page finds no sentence, no section of the installation, or no code in README.md and {CODE}")
    return TEXT.format(
        sentence=sentence.group(), code=code.partition(CODE_BEGINS)[2], picture=PICTURE, says=PICTURE_SAYS, install=install.group(1)
    )
