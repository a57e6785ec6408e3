# SPDX-License-Identifier: MIT
"""A private server of PostgreSQL. It has a folder of its own, a socket in it, and does not run as root."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

SKIP = 77


def programs():
    """Returns the folder with initdb and postgres, or None."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if folders and (folders[-1] / "initdb").exists():
        return folders[-1]
    found = shutil.which("initdb")
    return pathlib.Path(found).parent if found and shutil.which("postgres") else None


def user():
    """Returns the user that the server runs as: None for this user, or another user's entry if this user is root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise SystemExit(SKIP)


def schema_text(name):
    """Returns the SQL that makes a schema."""
    folder = pathlib.Path(__file__).resolve().parents[3] / "src/durable/postgres"
    return "".join((folder / file).read_text(encoding="ascii") for file in ("schema.sql", "functions.sql")).replace("@schema@", name)


class Server:
    """settings: lines of postgresql.conf."""

    def __init__(self, settings=(), environment=None):
        self.bin = programs()
        if self.bin is None:
            print("no server of PostgreSQL is installed: 1..0 # SKIP")
            raise SystemExit(SKIP)
        self.user, self.process, self.environment = user(), None, environment
        # The path of a socket has at most 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="twpg", dir="/tmp"))
        if self.user:
            shutil.chown(self.folder, self.user)
        self.run("initdb", "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust", "--no-instructions", "-E", "UTF8", "--locale=C")
        with open(self.folder / "data/postgresql.conf", "a", encoding="ascii") as file:
            file.write("\n".join([f"unix_socket_directories = '{self.folder}'", "listen_addresses = ''", "max_connections = 60",
                                  "shared_buffers = 64MB", "client_min_messages = warning", *settings, ""]))

    def run(self, program, *arguments):
        subprocess.run([str(self.bin / program), *arguments], user=self.user, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, cwd="/")

    @property
    def address(self):
        return f"host={self.folder} user=postgres dbname=postgres"

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([str(self.bin / "postgres"), "-D", str(self.folder / "data")], user=self.user, stdout=log,
                                            stderr=log, cwd="/", start_new_session=True, env=self.environment)
        end = time.monotonic() + 60
        while subprocess.run([str(self.bin / "pg_isready"), "-q", "-h", str(self.folder)], check=False).returncode != 0:
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)
        return self

    def kill(self):
        """Ends the server as kill -9 does: it writes nothing more, and recovers at the next start."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.process = None

    def sql(self, text, database="postgres"):
        """Returns the rows; each is a list of strings. Tries again if the text and a worker's statement were a deadlock."""
        while True:
            ran = subprocess.run([str(self.bin / "psql"), "-h", str(self.folder), "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1",
                                  "-XAtq", "-F", "\t", "-c", text], check=False, capture_output=True, text=True)
            if "deadlock detected" not in ran.stderr:
                ran.check_returncode()
                return [line.split("\t") for line in ran.stdout.splitlines()]

    def end(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
