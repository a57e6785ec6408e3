# SPDX-License-Identifier: MIT
"""A private server of Redis. It has a folder of its own, and a socket in it."""
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SKIP = 77


def encode(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class ReplyError(Exception):
    pass


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        self.socket.sendall(encode(*words))
        return self.reply()

    def many(self, commands):
        """Sends all commands, then returns the replies."""
        self.socket.sendall(b"".join(encode(*words) for words in commands))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise ReplyError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        return rest

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    """A server of Redis. `settings` are more lines for redis.conf. Unless these change it, an acknowledged
    write survives a kill of the server.
    """

    def __init__(self, settings=()):
        self.program, self.process, self.client = shutil.which("redis-server"), None, None
        if self.program is None:
            print("no redis-server is installed: 1..0 # SKIP")
            raise SystemExit(SKIP)
        # The path of a socket has at most 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="twrd", dir="/tmp"))
        self.socket = self.folder / "redis.sock"
        lines = ["port 0", f"unixsocket {self.socket}", f"dir {self.folder}", "save \"\"", "daemonize no", "appendonly yes",
                 "appendfsync always", *settings, ""]
        (self.folder / "redis.conf").write_text("\n".join(lines), encoding="ascii")

    @property
    def address(self):
        return str(self.socket)

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([self.program, str(self.folder / "redis.conf")], stdout=log, stderr=log, cwd="/",
                                            start_new_session=True)
        end = time.monotonic() + 60
        while True:
            try:
                self.client = Client(self.socket)
                self("PING")
                return self
            except (OSError, ReplyError):
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)

    def __call__(self, *words):
        return self.client(*words)

    def kill(self):
        """Ends the server with kill -9."""
        if self.process is None:
            return
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def end(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
