# SPDX-License-Identifier: MIT
"""Parses the usage text in the source of a program."""
import ast
import re


class Program:
    def __init__(self, source, brief, description):
        self.source, self.brief, self.description = source, brief, description


PROGRAMS = {
    "tickwheel-perf": Program(
        "perf/cli.c",
        "measures tickwheel, and timers of others beside it",
        "Without a command it makes a tour of under a minute: what the parts of the machine cost, and all "
        "workloads. Each repeat runs in a process of its own; times are medians. What lies behind the figures, "
        "and how to get ones that compare, is in docs/perf.md.",
    ),
    "tickwheel-durable": Program(
        "src/durable/tool/main.c",
        "shows, checks, copies and changes a file of durable timers",
        "It reads the file as it is at one moment. A process may have it open meanwhile, but not if the command "
        "is cancel or revive: then the message names the process. An ID is what the commands print. In lines of JSON, "
        "bytes that are not printable are hexadecimal digits, and the name is key_hex or payload_hex. The first line "
        "of a dump is its head, the last one the number of the others. A load writes FILE-load and renames it when it "
        "is whole: after a failure there is no file, and the message has the line. If a load was killed, remove "
        "FILE-load and load again.",
    ),
}
TEXT = re.compile(r"^(?:void cli_usage\(.*?^\}|static const char usage_text\[\] =.*?;$)", re.M | re.S)
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMAND = re.compile(r"^(?:usage:|      ) (tickwheel-.*?)(?:  +(.*))?$")
OPTION = re.compile(r"^  (--.*?)(?:  +| (?=[a-z]))(\S.*)$")
GOES_ON = re.compile(r"^ {10,}(\S.*)$")


class Usage:
    """Commands and options of a program, as (form, meaning) each, and the text about its exit status."""

    def __init__(self, name, source):
        self.name, self.program = name, PROGRAMS[name]
        found = TEXT.search(source).group()
        text = "".join(ast.literal_eval(one) for one in LITERAL.findall(found))
        self.commands, self.options, self.status = [], [], ""
        for line in text.split("\n"):
            self.take(line)
        if len(self.commands) < 5 or len(self.options) < 3 or not self.status:
            raise ValueError(f"{self.program.source}: the usage is not understood")

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
            raise ValueError(f"{self.program.source}: not understood in the usage: {line!r}")
