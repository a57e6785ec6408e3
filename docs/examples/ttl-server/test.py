#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Drives ttl-server with the real redis-cli and redis-benchmark.

usage: test.py PATH-OF-TTL-SERVER    (exit 77: redis-tools are missing)

Server and test run on one machine with one CLOCK_MONOTONIC. So the test knows exactly which answers are
right: a deadline lies between two instants that the test has read, and an answer was given between
two others. The checks of "not early" and "not after the deadline" have no tolerance.
"""
import csv
import heapq
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

MS = 1_000_000
ACCOUNT = re.compile(r"scheduled (\d+) = expired (\d+) \+ cancelled (\d+) \+ handed back (\d+); lost (\d+)")
# The wheel's own lateness is at most a tick; the rest is for a loaded machine, which may keep a thread waiting.
LATENESS_P99_US = 100_000
LATENESS_MAX_US = 1_000_000


def check(good, *what):
  if not good:
    raise AssertionError(" ".join(str(part) for part in what))


def now():
  return time.monotonic_ns()


def sleep_until(instant):
  time.sleep(max(0, instant - now()) / 1e9)


def resp(*args):
  """Returns a request as clients send it."""
  parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
  return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Server:
  running = []

  def __init__(self, *options):
    command = [sys.argv[1], *sys.argv[2:], "--port", "0", *options]
    self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    Server.running.append(self.process)
    line = self.process.stdout.readline()
    check(line.startswith("listening on 127.0.0.1:"), "first line:", line)
    self.port = int(line.rsplit(":", 1)[1])

  def cli(self, *args, data=None):
    command = ["redis-cli", "-p", str(self.port), *map(str, args)]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=True)
    return done.stdout.decode().rstrip("\n")

  def pipe(self, requests):
    out = self.cli("--pipe", data=b"".join(requests))
    check(f"errors: 0, replies: {len(requests)}" in out, out)

  def benchmark(self, *args):
    """Returns the rate in requests per second."""
    command = ["redis-benchmark", "-p", str(self.port), "--csv", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = [row for row in csv.reader(done.stdout.splitlines()) if len(row) > 1]
    check(rows[0][1] == "rps", done.stdout)
    return float(rows[1][1])

  def info(self):
    pairs = (line.split(":", 1) for line in self.cli("info").splitlines() if ":" in line)
    return {name: int(value) for name, value in pairs if value.strip().lstrip("-").isdigit()}

  def wait_info(self, name, value, seconds):
    """Waits until the figure has the value. Returns all figures."""
    end = now() + int(seconds * 1e9)
    while (figures := self.info())[name] != value:
      check(now() < end, f"{name} is {figures[name]}, not {value}, after {seconds} s")
      time.sleep(0.005)
    return figures

  def connect(self):
    return socket.create_connection(("127.0.0.1", self.port), timeout=20)

  def stop(self, number=signal.SIGTERM):
    """Returns the account: scheduled, expired, cancelled, handed back, lost."""
    self.process.send_signal(number)
    out, _ = self.process.communicate(timeout=60)
    match = ACCOUNT.search(out)
    check(match, "no account:", out)
    account = [int(figure) for figure in match.groups()]
    check(account[4] == 0, out)
    check(account[0] == sum(account[1:4]), out)
    check(self.process.returncode == 0, "exit code", self.process.returncode)
    return account


class Cli:
  """A redis-cli that keeps running and gets its input line by line. So it is fast enough to ask around a deadline."""

  def __init__(self, server):
    self.process = subprocess.Popen(["redis-cli", "-p", str(server.port)], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, bufsize=1)
    check(self.ask("PING")[0] == "PONG", "PING")

  def ask(self, line):
    """Returns the reply, a time before the request was sent, and a time after the reply came."""
    before = now()
    self.process.stdin.write(line + "\n")
    reply = self.process.stdout.readline().rstrip("\n")
    return reply, before, now()

  def close(self):
    self.process.stdin.close()
    check(self.process.wait(timeout=20) == 0, "redis-cli failed")


class Sample:
  """A key whose deadline lies in [after, until]. Each answer must agree with this, and may narrow the interval."""

  def __init__(self, key, after, until):
    self.key = key
    self.after = after
    self.until = until
    self.alive_count = 0
    self.polls = 0

  def take_pttl(self, answer):
    """Narrows the interval by the answer p of PTTL, which rounds up: p - 1 ms < deadline - the server's now <= p."""
    remaining = int(answer[0]) * MS
    check(remaining > 0, self.key, "PTTL of a key that lives:", answer[0])
    self.after = max(self.after, answer[1] + remaining - MS)
    self.until = min(self.until, answer[2] + remaining)
    check(self.after <= self.until, self.key, "has another deadline by", self.after - self.until, "ns")

  def poll(self, cli):
    """Asks once. Returns false if the key is gone."""
    self.polls += 1
    by_get = self.polls % 2 == 0
    answer = cli.ask(("GET " if by_get else "PTTL ") + self.key)
    if answer[0] == ("" if by_get else "-2"):
      check(answer[2] > self.after, self.key, "gone", self.after - answer[2], "ns early")
      return False
    check(answer[1] < self.until, self.key, "answered", answer[1] - self.until, "ns after its deadline")
    if not by_get:
      self.take_pttl(answer)
    self.alive_count += 1
    return True


def poll_around_deadlines(server, spans):
  """Asks for each key from 3 ms before its deadline until the key is gone; `spans` bounds the deadlines.
  Every second key gets a new deadline first. Returns how often a key was still there."""
  cli = Cli(server)
  samples = []
  for i, (key, after, until) in enumerate(spans):
    if i % 2:
      ttl = random.randint(500, 3000)
      _, before, done = cli.ask(f"SET {key} newer PX {ttl}")
      after, until = before + ttl * MS, done + ttl * MS
    samples.append(Sample(key, after, until))
    samples[i].take_pttl(cli.ask("PTTL " + key))
  queue = [(sample.after - 3 * MS, i) for i, sample in enumerate(samples)]
  heapq.heapify(queue)
  while queue:
    instant, i = heapq.heappop(queue)
    sleep_until(instant)
    if samples[i].poll(cli):
      heapq.heappush(queue, (max(now(), instant) + MS // 2, i))
  cli.close()
  return sum(sample.alive_count for sample in samples)


def test_commands():
  server = Server()
  cli = server.cli
  expected = [
    ("PONG", "PING"), ("hello", "PING", "hello"), ("", "GET", "a"), ("-2", "TTL", "a"),
    ("OK", "SET", "a", "1"), ("1", "GET", "a"), ("-1", "TTL", "a"), ("-1", "PTTL", "a"),
    ("1", "EXPIRE", "a", "100"), ("100", "TTL", "a"), ("1", "PERSIST", "a"), ("0", "PERSIST", "a"),
    ("-1", "TTL", "a"), ("1", "PEXPIRE", "a", "90000"), ("90", "TTL", "a"),
    ("OK", "SET", "a", "2", "KEEPTTL"), ("2", "GET", "a"), ("90", "TTL", "a"),
    ("OK", "SET", "a", "3"), ("-1", "TTL", "a"), ("OK", "set", "a", "4", "ex", "50"), ("50", "TTL", "a"),
    ("OK", "SET", "a", "5", "PX", "20000"), ("20", "TTL", "a"), ("", "SET", "a", "6", "NX"),
    ("5", "GET", "a"), ("OK", "SET", "a", "6", "XX"), ("", "SET", "none", "6", "XX"), ("6", "GET", "a"),
    ("0", "EXPIRE", "none", "1"), ("0", "PERSIST", "none"), ("1", "DEL", "a"), ("0", "DEL", "a"),
    ("OK", "SET", "b", "1", "EX", "100"), ("OK", "SET", "c", "2"), ("2", "DBSIZE"),
    ("2", "DEL", "b", "none", "c"), ("0", "DBSIZE"), ("OK", "SET", "d", ""), ("", "GET", "d"),
    ("1", "EXPIRE", "d", "-1"), ("-2", "TTL", "d"), ("OK", "SET", "e", "1", "EX", "9"), ("OK", "FLUSHALL"),
    ("0", "DBSIZE"), ("OK", "CLIENT", "SETNAME", "x"), ("save", "CONFIG", "GET", "save"),
    ("OK", "QUIT"),
  ]
  for want, *command in expected:
    got = cli(*command)
    check(got.rstrip("\n") == want, command, "replied", repr(got), "not", repr(want))
  rejected = [
    ("ERR", "NONSENSE"), ("ERR", "GET"), ("ERR", "SET", "a", "1", "EX"), ("ERR", "SET", "a", "1", "EX", "0"),
    ("ERR", "SET", "a", "1", "PX", "-5"), ("ERR", "SET", "a", "1", "EX", "9223372036854775807"),
    ("ERR", "SET", "a", "1", "EX", "ten"), ("ERR", "SET", "a", "1", "NX", "XX"),
    ("ERR", "SET", "a", "1", "KEEPTTL", "EX", "5"), ("ERR", "SET", "a", "1", "EX", "5", "PX", "5"),
    ("ERR", "EXPIRE", "a", "9223372036854775807"), ("ERR", "EXPIRE", "a", ""), ("NOPROTO", "HELLO", "3"),
  ]
  for want, *command in rejected:
    got = cli(*command)
    check(got.startswith(want + " "), command, "replied", repr(got))
  check(cli("GET", "a") == "", "a rejected SET left a key")
  account = server.stop(signal.SIGINT)
  print(f"commands: {len(expected) + len(rejected)} replies as expected; {account[2]} timeouts cancelled")


def receive(connection, count):
  data = bytearray()
  while len(data) < count and (part := connection.recv(1 << 16)):
    data += part
  return bytes(data)


def test_options():
  for options in (["--help"], ["--zzz"], ["--port"], ["word"], ["--port", "0", "word"], ["--tick-us", "0"]):
    done = subprocess.run([sys.argv[1], *options], capture_output=True, text=True, timeout=10)
    check(done.returncode == 2 and "usage" in done.stderr, options, done)


def test_protocol():
  server = Server()
  connection = server.connect()
  exchange = [
    (b"PING\r\n", b"+PONG\r\n"), (b"\r\n\n*0\r\nping\n", b"+PONG\r\n"),
    (resp("SET", b"\0k\r\n", b"\0v\r\n") + b"DBSIZE\r\n" + resp("GET", b"\0k\r\n"), b"+OK\r\n:1\r\n$4\r\n\0v\r\n\r\n"),
    (resp("SET", "big", b"x" * (4 << 20)), b"+OK\r\n"),
    (resp("GET", "big"), b"$%d\r\n" % (4 << 20) + b"x" * (4 << 20) + b"\r\n"),
    # These are more replies than the server buffers for a client that does not read.
    (resp("GET", "big") * 8, (b"$%d\r\n" % (4 << 20) + b"x" * (4 << 20) + b"\r\n") * 8),
    (b"PING\r\n" * 50000, b"+PONG\r\n" * 50000),
  ]
  for request, reply in exchange:
    connection.sendall(request)
    got = receive(connection, len(reply))
    check(got == reply, request[:80], "replied", got[:80])
  for byte in resp("SET", "slow", "1") + b"GET slow\r\n":
    connection.sendall(bytes([byte]))
    time.sleep(0.0005)
  check(receive(connection, 12) == b"+OK\r\n$1\r\n1\r\n", "byte by byte")
  connection.close()
  bad = [b"*1\r\n:1\r\n", b"*99999999999999999999\r\n", b"*-1\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$999999999\r\n",
         b"*1\r\n$1\r\nxyz\r\n", b"*1x\r\n", b"a" * (64 << 10), b"DEL" + b" k" * 5000 + b"\r\n"]
  for request in bad:
    with server.connect() as connection:
      connection.sendall(request)
      said = receive(connection, 1 << 16)
      check(said.startswith(b"-ERR Protocol error") and said.endswith(b"\r\n"), "accepted", request[:40], said)
  with server.connect() as connection:
    connection.sendall(b"PING\r\nQUIT\r\nPING\r\n")
    check(receive(connection, 1 << 16) == b"+PONG\r\n+OK\r\n", "QUIT")
  with server.connect() as connection:
    connection.sendall(b"PING\r\n*2\r\n$3\r\nGET\r\n$1")
    connection.shutdown(socket.SHUT_WR)
    check(receive(connection, 1 << 16) == b"+PONG\r\n", "half-closed")
  server.wait_info("connections", 1, 10)
  server.stop()
  print(f"protocol: {len(exchange) + 1} exchanges, {len(bad)} malformed requests rejected")


def test_expiry(count=100_000):
  """Sets 100,000 keys of 1 to 5 s. No key may be gone early or answer late. No timeout may be lost."""
  server = Server()
  ttls = [random.randint(1000, 5000) for _ in range(count)]
  begin = now()
  server.pipe([resp("SET", f"key:{i}", "value", "PX", ttl) for i, ttl in enumerate(ttls)])
  end = now()
  figures = server.info()
  check(figures["keys"] + figures["keys_expired"] == count, "loaded:", figures)
  spans = [(f"key:{i}", begin + ttl * MS, end + ttl * MS) for i, ttl in enumerate(ttls)]
  soon = now() + 300 * MS
  alive = poll_around_deadlines(server, random.sample([span for span in spans if span[1] > soon], 300))
  figures = server.wait_info("keys", 0, max(0, end + max(ttls) * MS - now()) / 1e9 + 2)
  check(figures["keys_expired"] == count, "expired:", figures["keys_expired"])
  check(figures["keys_expiring"] == 0 and figures["expired_early"] == 0, figures)
  check(figures["lateness_p99_us"] <= LATENESS_P99_US, figures)
  check(figures["lateness_max_us"] <= LATENESS_MAX_US, figures)
  check(figures["tw_lost"] == 0, figures)
  # The only timeout left is the idle timeout of this redis-cli's connection.
  check(figures["tw_pending"] == figures["connections"], figures)
  account = server.stop()
  check(account[1] == count, "expired timeouts", account)
  print(f"expiry: {count} keys loaded in {(end - begin) / 1e9:.2f} s, all expired, 0 early, "
        f"300 watched ({alive} answers in their last ms), lateness of the release: "
        f"p50 {figures['lateness_p50_us']} us, p99 {figures['lateness_p99_us']} us, "
        f"max {figures['lateness_max_us']} us")


def overwriting_stream(count):
  """Sets each key for 1 ms. Some thousand requests later, at about the time when it expires, gives it a
  newer value in one of four ways."""
  saves = [
    lambda key: [resp("SET", key, "new")],
    lambda key: [resp("SET", key, "new", "EX", 1000)],
    lambda key: [resp("DEL", key), resp("SET", key, "new")],
    lambda key: [resp("SET", key, "new", "PX", 1), resp("SET", key, "new", "EX", 1000)],
  ]
  steps = []
  for i in range(count):
    steps.append((i, [resp("SET", f"key:{i}", "old", "PX", 1)]))
    steps.append((i + random.uniform(1, 2000), saves[i % 4](f"key:{i}")))
  steps.sort(key=lambda step: step[0])
  return [request for _, requests in steps for request in requests]


LOOP = "--loop" in sys.argv


def test_overwritten(count=20_000, kept_count=1000, races=100):
  """A deadline that was removed or moved must never delete the newer value, even if the expiry is already
  on its way from the wheel to the keys. This race must happen at least `races` times."""
  server = Server()
  kept = [resp("SET", f"kept:{i}", "new", "PX", 900) for i in range(kept_count)]
  kept += [resp("PERSIST", f"kept:{i}") if i % 2 else resp("EXPIRE", f"kept:{i}", 1000) for i in range(kept_count)]
  server.pipe(kept)
  stream = overwriting_stream(count)
  rounds = 0
  # Without a worker thread the wheel passes no expiry to another thread, so this race cannot happen.
  wanted = 0 if LOOP else races
  while rounds < 5 or server.info()["alarms_overtaken"] < wanted:
    check(rounds < 50, "the race was not met in", rounds, "rounds")
    server.pipe(stream)
    rounds += 1
  time.sleep(1)
  keys = [f"key:{i}" for i in range(count)] + [f"kept:{i}" for i in range(kept_count)]
  values = server.cli(data="".join(f"GET {key}\n" for key in keys).encode()).split("\n")
  wrong = [key for key, value in zip(keys, values, strict=True) if value != "new"]
  check(not wrong, len(wrong), "overwritten keys lost their value:", wrong[:5])
  expiring = (count + kept_count) // 2
  figures = server.info()
  check(figures["keys"] == len(keys) and figures["keys_expiring"] == expiring, figures)
  check(figures["expired_early"] == 0 and figures["tw_lost"] == 0, figures)
  account = server.stop()
  check(account[3] >= expiring, "handed back", account)
  print(f"overwritten: {len(keys)} keys kept their newer value; {account[2]} timeouts cancelled, "
        f"{figures['alarms_overtaken']} overtaken on their way, {account[3]} handed back at the end")


def test_idle(idle_ms=800, count=50):
  """A connection is closed when it has been silent for the idle time, and not before."""
  server = Server("--idle-ms", str(idle_ms))
  last = {}
  for i in range(2 * count):
    before = now()
    last[server.connect()] = before
  talkers = list(last)[:count]
  talk_until = now() + 2 * idle_ms * MS
  closed = {}
  lateness = []
  while len(closed) < len(last):
    check(now() < talk_until + 20_000 * MS, "not closed:", len(last) - len(closed))
    for connection in talkers if now() < talk_until else []:
      last[connection] = now()
      connection.sendall(b"PING\r\n")
    for connection in select.select([c for c in last if c not in closed], [], [], 0.05)[0]:
      if connection.recv(1 << 16) == b"":
        closed[connection] = now()
        silent = closed[connection] - last[connection]
        check(silent >= idle_ms * MS, "closed after", silent, "ns of silence")
        lateness.append(silent - idle_ms * MS)
  check(all(closed[c] < min(closed[t] for t in talkers) for c in list(last)[count:]), "order")
  figures = server.info()
  check(figures["idle_closed"] == 2 * count, figures)
  for connection in last:
    connection.close()
  server.stop()
  print(f"idle: {2 * count} connections closed after {idle_ms} ms of silence, 0 early, "
        f"the last {max(lateness) / MS:.1f} ms late as the client saw it")


def test_benchmark(count=50_000):
  server = Server()
  rates = {}
  for depth in (1, 16):
    load = ("-n", count, "-r", 100_000, "-c", 50, "-P", depth)
    rates["SET", depth] = server.benchmark(*load, "SET", "key:__rand_int__", "value")
    rates["SET EX", depth] = server.benchmark(*load, "SET", "key:__rand_int__", "value", "EX", "1000")
    rates["GET", depth] = server.benchmark(*load, "GET", "key:__rand_int__")
  figures = server.info()
  check(figures["commands"] >= 6 * count, figures)
  check(figures["keys_expiring"] > 0 and figures["expired_early"] == 0, figures)
  check(figures["tw_lost"] == 0 and figures["tw_scheduled"] > 2 * count, figures)
  account = server.stop()
  check(account[3] >= figures["keys_expiring"], "handed back", account)
  for (name, depth), rate in rates.items():
    print(f"redis-benchmark: {name:7} pipeline {depth:2}: {rate:9.0f} requests/s")
  print(f"redis-benchmark: {account[0]} timeouts scheduled, {account[4]} lost")


def main():
  if not (shutil.which("redis-cli") and shutil.which("redis-benchmark")):
    print("redis-cli or redis-benchmark is missing (package redis-tools)")
    sys.exit(77)
  try:
    for test in (test_options, test_commands, test_protocol, test_expiry, test_overwritten, test_idle, test_benchmark):
      begin = time.monotonic()
      test()
      print(f"  {test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
  finally:
    for process in Server.running:
      process.kill()


if __name__ == "__main__":
  main()
