# SPDX-License-Identifier: MIT
"""Runs a private named, the server of BIND, in a folder of its own. A module of preload.py."""
import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

import dns

HOSTS = 1000
IDLE_SECONDS = 3  # after this time named closes an idle connection that did not ask for a longer one
CONFIGURATION = """
options {{
	directory "{folder}";
	listen-on port {port} {{ 127.0.0.1; }};
	listen-on-v6 {{ none; }};
	pid-file none;
	lock-file none;
	recursion no;
	notify no;
	dnssec-validation no;
	tcp-clients {clients};
	tcp-listen-queue 4096;
	tcp-initial-timeout 1200;
	tcp-idle-timeout {idle};
	tcp-keepalive-timeout 36000;
	tcp-advertised-timeout 36000;
}};
controls {{ }};
zone "example" {{ type primary; file "example.zone"; }};
"""
ZONE = """$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
www A 192.0.2.2
www TXT "one"
long TXT {long}
"""
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def free_port():
    """Returns a port below those that the system gives to connections. So no client of another program takes it."""
    for _ in range(100):
        port = random.randrange(20000, 32000)
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise OSError("no free port")


def user():
    for name in ("bind", "named", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


class Named:
    """A server that runs from its creation until stop()."""

    def __init__(self, folder, library=None, clients=20000):
        self.folder = Path(folder)
        self.library = library
        for _ in range(5):
            self.port = free_port()
            self.write_files(clients)
            self.start()
            if self.wait_until_it_answers():
                return
            self.process.kill()
            self.process.wait()
        raise RuntimeError("named does not answer:\n" + self.log())

    def write_files(self, clients):
        lines = [f"h{number} A 192.0.2.{number % 256}\n" for number in range(HOSTS)]
        zone = ZONE.format(long=" ".join('"' + "x" * 200 + '"' for _ in range(5)))
        (self.folder / "example.zone").write_text(zone + "".join(lines), encoding="utf-8")
        (self.folder / "questions").write_text(
            "".join(f"h{number}.example A\n" for number in range(HOSTS)), encoding="utf-8"
        )
        text = CONFIGURATION.format(folder=self.folder, port=self.port, clients=clients, idle=IDLE_SECONDS * 10)
        (self.folder / "named.conf").write_text(text, encoding="utf-8")

    def start(self):
        command = [shutil.which("named"), "-g", "-c", str(self.folder / "named.conf")]
        if os.geteuid() == 0 and user() is not None:
            os.chown(self.folder, user().pw_uid, user().pw_gid)
            command += ["-u", user().pw_name]
        environment = dict(os.environ)
        if self.library is not None:
            environment["LD_PRELOAD"] = str(self.library)
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )

    def wait_until_it_answers(self):
        for _ in range(600):
            # Until named has loaded the zone, it answers with SERVFAIL.
            with contextlib.suppress(OSError):
                answer = dns.ask_udp(self.port, dns.question("example", "SOA", 1), 1)
                if self.process.poll() is None and answer[3] & 15 == 0:
                    return True
            time.sleep(0.1)
            if self.process.poll() is not None or "address in use" in self.log():
                return False
        return False

    def log(self):
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def cpu_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss_bytes(self):
        return int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="utf-8").split()[1]) * PAGE

    def has_mapped(self, library):
        return str(library) in Path(f"/proc/{self.process.pid}/maps").read_text(encoding="utf-8")

    def stop(self):
        """Returns the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def binds_to(library):
    """Returns whether the dynamic linker gives named's calls of uv_timer_start to the library."""
    environment = dict(os.environ, LD_PRELOAD=str(library), LD_DEBUG="bindings", LD_BIND_NOW="1")
    done = subprocess.run([shutil.which("named"), "-v"], env=environment, capture_output=True, text=True, check=False)
    ends = (line for line in done.stderr.splitlines() if line.endswith("symbol `uv_timer_start'"))
    return any("libisc" in line.partition(" to ")[0] and str(library) in line.partition(" to ")[2] for line in ends)
