#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the output of tw_stats_print, tw_histogram_print and tw_durable_stats_print can be read by the
programs that it is for.

usage: check_print.py SAMPLE SETS|- [PROMTOOL]

Python's parser reads the JSON. A strict parser in this file reads the Prometheus format, and so does
promtool if it is installed. HdrHistogram's format is checked line by line. The figures must be those of
sample.c and sets.c. "-": there are no durable sets.

Seen to fail with these defects: a quotation mark is not escaped; a metric is in two places; buckets are not
cumulative; a sum is in nanoseconds; numbers have a decimal comma; a percentile has another rank.
"""
import json
import re
import subprocess
import sys

SAMPLE, SETS, PROMTOOL = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
ODD = 'back\\slash "quote"\nline\x01'
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
VALUE = re.compile(r"\d+(?:\.\d+)?")


def need(holds, *what):
    if not holds:
        sys.exit("wrong: " + " ".join(map(str, what)))


def written(form, what):
    command = [SETS, form] if what == "sets" else [SAMPLE, form, what]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def check_json():
    engines = json.loads(written("json", "engines"))["engines"]
    need([engine["engine"] for engine in engines] == ["plain", ODD, ""], "names of engines", engines)
    first = engines[0]
    need(first["scheduled"] == 100 and first["slab_bytes"] == 130, "counters", first)
    need(first["latest_ns"] == 1500000000, "latest_ns", first)
    late = first["lateness_ns"]
    need((late["count"], late["sum"], late["min"], late["max"]) == (10000, 50005000, 1, 10000), "lateness", late)
    for name, exact in (("p50", 5000), ("p90", 9000), ("p99", 9900), ("p999", 9990), ("p9999", 9999)):
        need(exact <= late[name] <= exact * 1.01, name, late[name])
    need("lateness_ns" not in engines[1] and "duration_ns" in engines[1], "what was left out", engines[1])
    need(engines[1]["duration_ns"]["max"] == 5000 * 10**9, "the greatest value", engines[1])
    one = json.loads(written("json", "histogram"))
    need(one["name"] == "a:metric_1" and one["ns"] == late, "one histogram", one)


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        need(match, "labels", text)
        labels[match[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match[2])
        at = match.end()
    return labels


def families_of(text):
    """Returns {name: (type, [(sample name, labels, value)])}. Each family must be there once, and in one piece."""
    families, current = {}, None
    need(text.endswith("\n"), "the last line has no end")
    for line in text.splitlines() if "\r" not in text else []:
        if line.startswith("# HELP "):
            need(re.fullmatch(rf"# HELP {NAME} \S.*", line), line)
        elif line.startswith("# TYPE "):
            match = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line)
            need(match and match[1] not in families, line)
            current = match[1]
            families[current] = (match[2], [])
        else:
            match = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (\S+)", line)
            need(match and VALUE.fullmatch(match[3]), line)
            kind, samples = families[current]
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            need(match[1] in [current + suffix for suffix in suffixes], line)
            need(kind != "counter" or current.endswith("_total"), line)
            samples.append((match[1], labels_of(match[2] or ""), float(match[3])))
    return families


def check_histogram(samples, name, owner, count, total, label="engine"):
    mine = [sample for sample in samples if sample[1].get(label) == owner]
    buckets = [(sample[1]["le"], sample[2]) for sample in mine if sample[0] == name + "_bucket"]
    bounds = [float(bound) for bound, _ in buckets]
    counts = [value for _, value in buckets]
    need(buckets[-1][0] == "+Inf" and counts[-1] == count, name, buckets[-1])
    need(bounds == sorted(set(bounds)) and counts == sorted(counts), name, "buckets in order")
    rest = {sample[0]: sample[2] for sample in mine if sample[0] != name + "_bucket"}
    need(rest == {name + "_sum": total, name + "_count": count}, name, rest)
    return buckets


def check_prometheus():
    text = written("prometheus", "engines")
    families = families_of(text)
    need(len(families) == 33, len(families), "families")
    kind, samples = families["tickwheel_scheduled_total"]
    need(kind == "counter" and [sample[1]["engine"] for sample in samples] == ["plain", ODD, ""], samples)
    need(samples[0][2] == 100, samples)
    need(families["tickwheel_latest_seconds"][1][0][2] == 1.5, "seconds")
    kind, samples = families["tickwheel_lateness_seconds"]
    need(kind == "histogram", kind)
    for bound, count in check_histogram(samples, "tickwheel_lateness_seconds", "plain", 10000, 0.050005)[:-1]:
        need(count == min(round(float(bound) * 1e9), 10000), "up to", bound, count)
    samples = families["tickwheel_duration_seconds"][1]
    for engine in ("plain", ODD):
        buckets = check_histogram(samples, "tickwheel_duration_seconds", engine, 1, 5000)
        need(buckets[-2][1] == 0, "beyond all bounds", buckets[-2])
    one = written("prometheus", "histogram")
    check_histogram(families_of(one)["a:metric_1_seconds"][1], "a:metric_1_seconds", None, 10000, 0.050005)
    promtool_check(text)


def promtool_check(text):
    if PROMTOOL:
        result = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        need(result.returncode == 0 and not result.stderr, "promtool:", result.stdout, result.stderr)


def check_percentiles():
    head, blank, *lines = written("percentiles", "histogram").splitlines()
    need(head.split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"] and not blank, head)
    rows = [line.split() for line in lines if not line.startswith("#")]
    tail = [line for line in lines if line.startswith("#")]
    for row in rows[:-1]:
        value, level, count, inverse = map(float, row)
        need(count >= level * 10000 - 1e-6, "count of", row)
        need(level * 10000 - 1e-6 <= value <= max(1, level * 10000) * 1.02 + 1, "value of", row)
        need(abs(inverse - 1 / (1 - level)) <= 0.005 * inverse + 0.01, "inverse of", row)
    levels = [float(row[1]) for row in rows]
    need(levels[:11] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75] and levels[11] == 0.775, levels[:12])
    need(rows[-1] == ["10000.000", "1.000000000000", "10000"], rows[-1])
    need(re.fullmatch(r"#\[Mean    = +5000\.500, StdDeviation   = +(\d+)\.\d{3}\]", tail[0]), tail[0])
    need(abs(float(re.search(r"StdDeviation   = +([\d.]+)", tail[0])[1]) - 2886.75) < 30, tail[0])
    need(re.fullmatch(r"#\[Max     = +10000\.000, Total count    = +10000\]", tail[1]), tail[1])
    need(re.fullmatch(r"#\[Buckets = +36, SubBuckets     = +256\]", tail[2]), tail[2])
    need("#[Mean    = 18446744073709551615.000," in written("percentiles", "greatest"), "the greatest mean")


def check_text():
    lines = written("text", "engines").splitlines()
    need(sum(line.startswith("engine ") for line in lines) == 3, "engines")
    need(re.search(r"^  scheduled +100$", "\n".join(lines), re.M), "scheduled")
    need(max(map(len, lines)) <= 200, "long lines")
    need(re.fullmatch(r'"a:metric_1": count 10000, ns: mean 5000, min 1, p50 \d+, .* max 10000\n', written("text", "histogram")), "one")


def check_sets():
    sets = json.loads(written("json", "sets"))["sets"]
    need([one["set"] for one in sets] == ["plain", ODD, ""], "names of sets", sets)
    need([one["state"] for one in sets] == ["full", "slow", "slow"], "states", sets)
    need(sets[0]["scheduled"] == 100 and sets[0]["lag_ns"] == 1500000000, "counters", sets[0])
    need(sorted(sets[0][name]["count"] for name in ("commit_ns", "ack_ns", "lateness_ns")) == 3 * [10000], sets[0])
    need("commit_ns" not in sets[1] and "ack_ns" in sets[1], "what was left out", sets[1])
    text = written("prometheus", "sets")
    families = families_of(text)
    need(len(families) == len(sets[2]) - 2 + 4, len(families), "families")
    need(families["tickwheel_durable_lag_seconds"][1][0][2] == 1.5, "seconds")
    states = {(sample[1]["set"], sample[1]["state"]): sample[2] for sample in families["tickwheel_durable_state"][1]}
    need(len(states) == 18 and sum(states.values()) == 3 and states["plain", "full"] == states["", "slow"] == 1, states)
    for name, owners in (("commit", ["plain"]), ("ack", ["plain", ODD]), ("lateness", ["plain"])):
        name = f"tickwheel_durable_{name}_seconds"
        need({sample[1]["set"] for sample in families[name][1]} == set(owners), name)
        for owner in owners:
            check_histogram(families[name][1], name, owner, 10000, 0.050005, "set")
    promtool_check(text)
    lines = written("text", "sets")
    need(lines.count("set ") == 3 and re.search(r"^  state +full$", lines, re.M), "text")


for check in (check_json, check_prometheus, check_percentiles, check_text) + ((check_sets,) if SETS != "-" else ()):
    check()
print("print: good" + ("" if PROMTOOL else ", without promtool"))
