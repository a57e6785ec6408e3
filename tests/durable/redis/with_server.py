#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program with a private server. The program finds the server's address in TICKWHEEL_REDIS.

usage: with_server.py PROGRAM...
"""
import os
import subprocess
import sys

from server import Server

server = Server(["appendonly no"] if os.environ.get("TESTS_REDIS_QUICK") else [])
try:
    server.start()
    # The program also gets the server's process id, so that it can end the server.
    environment = {**os.environ, "TICKWHEEL_REDIS": server.address, "TICKWHEEL_REDIS_PID": str(server.process.pid)}
    code = subprocess.run(sys.argv[1:], env=environment, check=False).returncode
finally:
    server.end()
sys.exit(code if code >= 0 else 128 - code)
