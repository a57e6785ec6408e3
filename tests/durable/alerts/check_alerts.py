#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each alert of docs/monitoring must fire for the metrics of a set in its condition, and none may fire for a
good set.

usage: check_alerts.py PROMTOOL RULES PAGE PROGRAM [its arguments]

PROGRAM (alerts.c) brings sets into the conditions. Its two readings for a condition become a series: the
first at the start, the second one minute later. From then on, counters continue to grow as in that minute.
promtool evaluates the rules after ten minutes.

Seen to fail with these defects: a rule uses a metric that does not exist; a threshold can never be reached;
a rule fires for a good set; the page does not name a rule.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROMTOOL, RULES, PAGE, *PROGRAM = sys.argv[1:]
# The alerts that must fire in each condition.
WANTED = {
    "good": [],
    "failed": ["DurableFailed", "DurableUnknown"],
    "full": ["DurableFull"],
    "slow": ["DurableSlow"],
    "clock_stepped": ["DurableClockStepped"],
    "stuck": ["DurableStuck"],
    "late": ["DurableLate"],
    "dead_letters": ["DurableDeadLetters"],
    "unknown_kinds": ["DurableUnknownKinds"],
}
TIMES = 10


def samples(path):
    lines = path.read_text(encoding="ascii").splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def values(name, before, after, restarted):
    """Returns a metric's values. A counter that grew between the readings continues to grow; any other metric
    stays as it is.
    """
    grown = "_total{" in name and after > before and not restarted
    return f"{before:.9f} {after:.9f}" + (f"+{after - before:.9f}x{TIMES}" if grown else f"+0x{TIMES}")


def series_of(folder, condition):
    before, after = (samples(folder / f"{condition}.{part}") for part in (0, 1))
    assert before.keys() == after.keys(), condition
    for name in before:
        text = values(name, before[name], after[name], condition == "unknown_kinds")
        yield f"      - series: '{name}'\n        values: '{text}'\n"


def rules_test(folder, condition, alerts):
    text = f"rule_files: ['{RULES}']\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n"
    text += "".join(series_of(folder, condition)) + "    alert_rule_test:\n"
    for alert in alerts:
        fires = alert in WANTED[condition]
        text += f"      - {{eval_time: {TIMES}m, alertname: {alert}, exp_alerts: {expected(alert) if fires else '[]'}}}\n"
    path = folder / f"{condition}.yml"
    path.write_text(text, encoding="ascii")
    return path


def expected(alert):
    """Returns a test for promtool that expects the alert. promtool compares all labels and annotations, so the
    test expects a label that never matches. fired() reads the real ones.
    """
    return f"[{{exp_labels: {{wanted: {alert}}}}}]"


def fired(folder, condition, alerts):
    """Returns the alerts that fire. promtool reports what it got for each alert, because none matches what was
    expected.
    """
    ran = subprocess.run([PROMTOOL, "test", "rules", str(rules_test(folder, condition, alerts))],
                         capture_output=True, text=True, check=False)
    said = ran.stdout + ran.stderr
    if "cannot" in said or "error" in said.lower() or "parse" in said:
        sys.exit(f"{condition}: {said}")
    return sorted(set(re.findall(r'got:\[\s*\d+:\s*Labels:\{alertname="(\w+)"', said))), said


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    subprocess.run(PROGRAM, check=True, env=os.environ | {"ALERTS_FOLDER": str(folder)}, stdout=subprocess.DEVNULL)
    alerts = re.findall(r"- alert: (\w+)", pathlib.Path(RULES).read_text(encoding="ascii"))
    wrong = []
    if sorted(alerts) != sorted(set(sum(WANTED.values(), []))):
        wrong.append("not each alert has a condition here")
    page = pathlib.Path(PAGE).read_text(encoding="utf-8")
    wrong += [f"the page does not name {alert}" for alert in alerts if f"`{alert}`" not in page]
    wrong += [f"{RULES} does not have {alert}" for alert in re.findall(r"`(Durable\w+)`", page) if alert not in alerts]
    if subprocess.run([PROMTOOL, "check", "rules", RULES], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        wrong.append("promtool rejects the rules")
    for condition, wanted in WANTED.items():
        got, said = fired(folder, condition, alerts)
        if got != sorted(wanted):
            wrong.append(f"{condition}: {got} instead of {wanted}\n{said}")
    print("\n".join(wrong) or f"{len(alerts)} alerts: good")
    sys.exit(1 if wrong else 0)


main()
