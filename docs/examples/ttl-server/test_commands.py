#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests, over a socket, the commands that ttl-server answers as redis does, and its limits.

usage: test_commands.py PATH-OF-TTL-SERVER [--loop]

Seen to fail with each of these defects: a SCAN ends at the size that the table had when the SCAN began, so
it misses keys after the table has doubled; EXPIREAT does not read the wall clock; a rejection closes the
connection at once.
"""
import random
import time

from test import Server, check, resp

WRONG = "ERR wrong number of arguments for '%s' command"
INVALID = "ERR invalid expire time in '%s' command"
INTEGER = "ERR value is not an integer or out of range"
LIMIT_BYTES = 8 << 20
OVERFLOW = "ERR increment or decrement would overflow"


class Client:
  def __init__(self, server):
    self.socket = server.connect()
    self.stream = self.socket.makefile("rb")

  def reply(self):
    line = self.stream.readline().decode().rstrip("\r\n")
    kind, rest = line[0], line[1:]
    if kind == "$":
      return None if rest == "-1" else self.stream.read(int(rest) + 2)[:-2].decode()
    if kind == "*":
      return [self.reply() for _ in range(int(rest))]
    return int(rest) if kind == ":" else rest

  def ask(self, *words):
    self.socket.sendall(resp(*words))
    return self.reply()

  def expect(self, want, *words):
    got = self.ask(*words)
    check(got in want if isinstance(want, range) else got == want, words, "replied", repr(got), "not", repr(want))

  def close(self):
    self.stream.close()
    self.socket.close()


COMMANDS = [
  ("OK", "SET", "a", "1"), ("OK", "SETEX", "b", 1000, "x"), (range(500, 1001), "TTL", "b"), ("x", "GET", "b"),
  ("OK", "PSETEX", "b", 900_000, "y"), (range(400, 901), "TTL", "b"), ("y", "GET", "b"), (3, "EXISTS", "a", "none", "b", "a"),
  (0, "EXISTS", "none"), (2, "INCR", "a"), ("2", "GET", "a"), (1, "INCR", "new"), (-1, "TTL", "new"),
  ("OK", "SET", "n", "-1", "EX", 100), (0, "INCR", "n"), (range(1, 101), "TTL", "n"), (INTEGER, "INCR", "b"),
  ("OK", "SET", "n", 2**63 - 1), (OVERFLOW, "INCR", "n"), (str(2**63 - 1), "GET", "n"),
  (0, "EXPIREAT", "none", 1), (1, "EXPIREAT", "a", 1), (0, "EXISTS", "a"), (INTEGER, "EXPIREAT", "b", "soon"),
  (INVALID % "setex", "SETEX", "b", 0, "x"), (INVALID % "psetex", "PSETEX", "b", -1, "x"), (INTEGER, "SETEX", "b", "x", "x"),
  (INVALID % "set", "SET", "b", "x", "EX", 0), (INVALID % "expire", "EXPIRE", "b", 2**63 - 1),
  (INVALID % "expireat", "EXPIREAT", "b", 2**63 - 1), (WRONG % "get", "GET"), (WRONG % "setex", "sEtEx", "a", 1),
  (WRONG % "exists", "EXISTS"), (WRONG % "incr", "INCR", "a", "b"), (WRONG % "expireat", "EXPIREAT", "a"),
  (WRONG % "scan", "SCAN"), ("ERR unknown command 'foo'", "foo", "bar"), ("ERR unknown command 'a??b'", "a\r\nb"),
  (f"ERR unknown command '{'x' * 64}'", "x" * 1000), ("ERR invalid cursor", "SCAN", "x"), ("ERR syntax error", "SCAN", 0, "MATCH"),
  ("ERR syntax error", "SCAN", 0, "COUNT", 0), (INTEGER, "SCAN", 0, "COUNT", "x"), ("y", "GET", "b"), ("OK", "FLUSHALL"),
  (["0", []], "SCAN", 0),
]


def test_expireat(client):
  """The wall clock and the engine's clock run at one rate: the remaining time agrees, and then the key is gone."""
  client.expect("OK", "SET", "far", "1")
  client.expect(1, "EXPIREAT", "far", int(time.time()) + 1000)
  client.expect(range(500, 1001), "TTL", "far")
  client.expect("OK", "SET", "near", "1")
  at_ms = int(time.time() * 1000) + 300
  client.expect(1, "PEXPIREAT", "near", at_ms)
  while client.ask("EXISTS", "near"):
    check(time.time() * 1000 < at_ms + 20_000, "not gone")
  check(time.time() * 1000 >= at_ms, "gone early by", at_ms - time.time() * 1000, "ms")


def scan_all(client, *options, between=lambda: None):
  cursor, keys = "0", []
  while True:
    cursor, some = client.ask("SCAN", cursor, *options)
    keys += some
    if cursor == "0":
      return keys
    between()


def test_scan(client):
  """All keys that stay are returned, while others come (and double the table) and go."""
  client.expect("OK", "FLUSHALL")
  stay = {f"stay:{i}" for i in range(1000)}
  for key in stay:
    client.ask("SET", key, "1")
  check(sorted(scan_all(client)) == sorted(stay), "at rest each key once")
  check(len(client.ask("SCAN", 0, "COUNT", 100)[1]) >= 100, "COUNT")
  check(set(scan_all(client, "MATCH", "stay:[1-3]?", "COUNT", 50)) == {f"stay:{i}" for i in range(10, 40)}, "MATCH")
  for pattern, count in (("*:*9*", 271), ("[^s]*", 0), ("stay\\:7", 1), ("st[a-c]y:?", 10), ("*9", 100), ("stay", 0)):
    check(len(scan_all(client, "MATCH", pattern)) == count, "MATCH", pattern)
  coming = iter(range(100_000))

  def change():
    for i in (next(coming) for _ in range(15)):
      client.ask("SET", f"come:{i}", "1")
      client.ask("DEL", f"come:{random.randint(0, i)}")

  for _ in range(3):
    missing = stay - set(scan_all(client, "COUNT", 10, between=change))
    check(not missing, len(missing), "keys that stayed were not returned")
  client.ask("SET", "gone", "1", "PX", 1)
  time.sleep(0.002)
  check("gone" not in scan_all(client, "MATCH", "g*"), "an expired key was returned")


def test_too_large(server):
  """The server reads the whole request from the client, which then reads why it was rejected."""
  whole = Client(server)
  whole.expect("OK", "SET", "big", "x" * LIMIT_BYTES)
  for request in (resp("SET", "big", b"x" * (20 << 20)), b"a" * (20 << 20), resp("DEL", *["k"] * 5000),
                  resp("MSET", *[b"x" * LIMIT_BYTES] * 9)):
    client = Client(server)
    client.socket.sendall(request)
    got = client.reply()
    check(got.startswith("ERR Protocol error: request too large: at most 4096 arguments, 8 MiB"), got)
    check(client.stream.read() == b"", "more than the error")
    client.close()
  check(len(whole.ask("GET", "big")) == LIMIT_BYTES, "a rejected SET changed the key")
  whole.close()


def main():
  try:
    server = Server()
    client = Client(server)
    for want, *words in COMMANDS:
      client.expect(want, *words)
    test_expireat(client)
    test_scan(client)
    test_too_large(server)
    client.close()
    server.stop()
    print(f"{len(COMMANDS)} replies, EXPIREAT, SCAN and requests beyond the limits as expected")
  finally:
    for process in Server.running:
      process.kill()


if __name__ == "__main__":
  main()
