# SPDX-License-Identifier: MIT
"""What tickwheel-perf says of itself: the text of cli_usage in perf/cli.c, taken apart."""
import ast
import re

BRIEF = "measures tickwheel, and timers of others beside it"
DESCRIPTION = (
    "Without a command it makes a tour of under a minute: what the parts of the machine cost, and all "
    "workloads. Each repeat runs in a process of its own; times are medians. What lies behind the figures, "
    "and how to get ones that compare, is in docs/perf.md."
)
FUNCTION = re.compile(r"^void cli_usage\(.*?^\}", re.M | re.S)
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMAND = re.compile(r"^(?:usage:|      ) (tickwheel-perf.*?)(?:  +(.*))?$")
OPTION = re.compile(r"^  (--.*?)(?:  +| (?=[a-z]))(\S.*)$")
GOES_ON = re.compile(r"^ {10,}(\S.*)$")


class Usage:
    """commands and options as (form, meaning), and the exit status in words."""

    def __init__(self, source):
        function = FUNCTION.search(source).group()
        text = "".join(ast.literal_eval(one) for one in LITERAL.findall(function))
        self.commands, self.options, self.status = [], [], ""
        for line in text.split("\n"):
            self.take(line)
        if len(self.commands) < 5 or len(self.options) < 10 or not self.status:
            raise ValueError("perf/cli.c: cli_usage is not understood")

    def take(self, line):
        command, option, rest = (pattern.match(line) for pattern in (COMMAND, OPTION, GOES_ON))
        if line.startswith("exit code: "):
            self.status = line.removeprefix("exit code: ") + "."
        elif command:
            self.commands.append((command.group(1), command.group(2) or ""))
        elif option:
            self.options.append(option.groups())
        elif rest and (self.options or self.commands):
            there = self.options or self.commands
            there[-1] = (there[-1][0], f"{there[-1][1]} {rest.group(1)}".strip())
        elif line:
            raise ValueError(f"perf/cli.c: not understood in cli_usage: {line!r}")
