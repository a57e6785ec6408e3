# SPDX-License-Identifier: MIT
"""Runs the shop for the two tests of this folder."""
import json
import pathlib
import subprocess
import urllib.error
import urllib.request


class Shop:
    def __init__(self, program, folder, seconds):
        self.command = [program, f"{folder}/orders", f"{folder}/closed", "0", str(seconds)]
        self.closed_file = pathlib.Path(folder) / "closed"
        self.process = self.url = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        said = self.process.stdout.readline()
        if not said.startswith("serving "):
            raise SystemExit(f"the shop does not start: {said}")
        self.url = said.split()[1]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.terminate()
        code = self.process.wait()
        self.process.stdout.close()
        if code != 0:
            raise SystemExit(f"the shop ended with {code}")

    def ask(self, path, post=True):
        """Returns the status and the answer. None: there was no answer, so the outcome is unknown."""
        request = urllib.request.Request(self.url + path, method="POST" if post else "GET")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, {}
        except (OSError, ValueError):
            return None

    def open_orders(self):
        return self.ask("orders", post=False)[1]["orders"]

    def closed(self):
        """Returns the names in the file, with repetitions."""
        return self.closed_file.read_text(encoding="ascii").split() if self.closed_file.exists() else []
