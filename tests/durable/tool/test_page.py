#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands of docs/operating-durable.md on a file of make_file.c. They must do what the page says.

usage: test_page.py TICKWHEEL_DURABLE MAKE_FILE PAGE

Seen to fail with these defects: a query uses a column that does not exist; a rename leaves a timer under the
old name; a rename fails because the file already has the new name.
"""
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

TOOL, MAKE, PAGE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).read_text(encoding="utf-8")


def tool(path, *arguments):
    return subprocess.run([TOOL, str(path), *arguments], capture_output=True, text=True, check=True).stdout


def queries_check(path):
    """Runs each query of the page. Returns {comment: rows}."""
    queries = re.findall(r'^# (.*)\nsqlite3 -readonly timers\.db "(.*)"$', PAGE, re.M)
    assert len(queries) == 4, queries
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rows = {comment: database.execute(sql).fetchall() for comment, sql in queries}
    version = re.search(r'sqlite3 -readonly timers\.db "(PRAGMA user_version)"`; now (\d+)', PAGE)
    assert database.execute(version[1]).fetchone() == (int(version[2]),)
    database.close()
    lines = [json.loads(line) for line in tool(path, "dump").splitlines()[1:-1]]
    overdue = {}
    assert rows["new timers that were not yet filed by their deadline"][0][0] > 0
    for line in lines:
        # All deadlines of the file are in the past.
        if not line.get("dead"):
            overdue[line["kind"]] = overdue.get(line["kind"], 0) + 1
    seen = dict(rows["timers that are overdue by more than a minute, by kind"])
    assert seen == overdue, (seen, overdue)
    assert rows["timers whose attempts are many"] == []
    dead = sum(line.get("dead", False) for line in lines)
    assert dead > 0 and sum(row[2] for row in rows["dead letters by kind and day"]) == dead


def started_check(path):
    command = re.search(r"`(tickwheel-durable timers\.db list [^`]* grep started)`", PAGE)[1]
    command = command.replace("tickwheel-durable", TOOL).replace("timers.db", str(path))
    found = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, check=True).stdout.splitlines()
    assert found and len(found) == tool(path, "dump").count('"started":true')


def copy_command(path, new, word):
    """Returns the page's command that writes a copy and contains the word."""
    commands = re.findall(r"`(tickwheel-durable timers\.db dump \| [^`]* load -)`", PAGE)
    command, = (command for command in commands if word in command)
    return command.replace("tickwheel-durable", TOOL).replace("timers.db", str(path)).replace("new.db", new)


def rename_check(path):
    command = copy_command(path, f"{path}-new", "kind").replace('"old"', '"mail"').replace('"new"', '"letter"')
    subprocess.run(["sh", "-ec", command], check=True)
    before, after = tool(path, "dump"), tool(f"{path}-new", "dump")
    assert '"mail"' in before and '"mail"' not in after
    assert before.replace('"mail"', '"letter"') == after


def rename_twice_check(path):
    """Renames a kind twice. The file may already have the new name, at any position among the kinds."""
    kinds = json.loads(tool(path, "dump").splitlines()[0])["kinds"]
    for number, place in enumerate((1, len(kinds))):
        both = path.parent / f"both-{number}"
        head, rest = tool(path, "dump").split("\n", 1)
        head = json.dumps({**json.loads(head), "kinds": [*kinds[:place], "letter", *kinds[place:]]}, separators=(",", ":"))
        subprocess.run([TOOL, str(both), "load", "-"], input=f"{head}\n{rest}", text=True, check=True)
        command = copy_command(both, f"{both}-new", "kind").replace('"old"', '"mail"').replace('"new"', '"letter"')
        subprocess.run(["sh", "-ec", command], check=True)
        after = json.loads(tool(f"{both}-new", "dump").splitlines()[0])
        assert after["kinds"] == ["letter" if kind == "mail" else kind for kind in kinds], after


def clock_check(path):
    """Runs the page's command on a file with a wrong highest time. The file must then have the present time,
    and must be otherwise unchanged.
    """
    wrong = path.parent / "wrong"
    dump = re.sub(r'"highest_ns":\d+', '"highest_ns":9000000000000000000', tool(path, "dump"), count=1)
    subprocess.run([TOOL, str(wrong), "load", "-"], input=dump, text=True, check=True)
    assert tool(wrong, "dump") == dump
    subprocess.run(["sh", "-ec", copy_command(wrong, f"{wrong}-new", "highest")], check=True)
    after = tool(f"{wrong}-new", "dump")
    highest = json.loads(after.splitlines()[0])["highest_ns"]
    assert 1.7e18 < highest < 8e18, highest
    assert after.replace(f'"highest_ns":{highest}', '"highest_ns":9000000000000000000') == dump


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "made"
        subprocess.run([MAKE, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        queries_check(path)
        started_check(path)
        rename_check(path)
        rename_twice_check(path)
        clock_check(path)
    print("the page's commands: good")


main()
