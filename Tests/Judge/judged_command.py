"""The command to check, a server that shares no code with it, and a key for the server."""
import collections
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SERVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Servers")


class Difference(Exception):
    """The command's results differ from the expected results."""


def fate(token):
    """Returns the server's reason for a token. It is computed from the token, so that a judge can expect it."""
    value = int(token[:4].ljust(4, "0"), 16)
    if value % 7 == 1:
        return "Unregistered"
    if value % 11 == 2:
        return "BadDeviceToken"
    return None


def expect(condition, text, *details):
    if not condition:
        raise Difference(text + "".join(f"\n    {detail!r}"[:6000] for detail in details))


class Command:
    """Runs the command in a directory."""

    def __init__(self, path, directory):
        self.path, self.directory = os.path.abspath(path), directory

    def __call__(self, *arguments, input=None, codes=None):
        done = subprocess.run([self.path, *arguments], cwd=self.directory, input=input or b"",
                              capture_output=True, timeout=300)
        self.said = done.stderr.decode("utf-8", "replace")
        expect(done.returncode >= 0, "ended by a signal", arguments, self.said)
        expect(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
                             self.said), "control characters on the terminal", self.said)
        if codes is not None:
            expect(done.returncode in codes, f"exit code {done.returncode}, not {codes}",
                   " ".join(arguments), self.said)
        self.code = done.returncode
        return done.stdout


class Server:
    """A local APNs in Python whose responses can be computed."""

    def __init__(self, directory, program="dead_by_token.py", behaviour="by-token"):
        self.directory = directory
        for line in (
                "openssl ecparam -name prime256v1 -genkey -noout -out ec.pem",
                "openssl pkcs8 -topk8 -nocrypt -in ec.pem -out AuthKey_ABCDEFGHIJ.p8",
                "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
                " -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out ca.pem"):
            subprocess.run(line.split(), cwd=directory, check=True, capture_output=True)
        os.chmod(f"{directory}/AuthKey_ABCDEFGHIJ.p8", 0o600)
        self.record = f"{directory}/record"
        own = os.path.join(os.path.dirname(os.path.abspath(__file__)), program)
        self.process = subprocess.Popen(
            [sys.executable, own, "--certificate", "ca.pem", "--key", "key.pem", "--record",
             "record", "--behaviour", behaviour, "--bodies", "--detail", "0"],
            cwd=directory, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[-1])
        self.seen = 0

    def options(self):
        return ["--endpoint", f"127.0.0.1:{self.port}", "--ca-file", "ca.pem", "--auth-key",
                "AuthKey_ABCDEFGHIJ.p8", "--key-id", "ABCDEFGHIJ", "--team-id", "KLMNOPQRST",
                "--topic", "com.example.app"]

    def requests(self, wanted=0):
        """Returns (token, body) of each request since the last call, in order.

        The server records a request after its response, so the last of `wanted` requests may come late.
        """
        found, until = [], time.monotonic() + 20
        while True:
            self.read(found)
            if len(found) >= wanted or time.monotonic() > until:
                return found
            time.sleep(0.02)

    def read(self, found):
        with open(self.record, "rb") as file:
            file.seek(self.seen)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.seen += len(line)
                entry = json.loads(line)
                if entry["event"] == "answer":
                    found.append((entry["path"].rsplit("/", 1)[-1], entry["body"]))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def exported(text):
    """Returns the rows of an export, read with Python's csv module."""
    return list(csv.DictReader(io.StringIO(text.decode(), newline="")))


def judge(name, default, limit, begin, told, end=lambda: None):
    """Runs the trials that the command line selects. If some differ, ends with 1 and prints their seeds.

    The command line is `BROADSIDE [COUNT [FIRST-SEED]]`. `begin(seed, command, home)` runs a trial and returns its
    result; `told(results, failed)` returns the last line. The directory of a trial that differs is kept.
    """
    path = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else default
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    home = tempfile.mkdtemp(prefix=f"judge-{name}-")
    results, failed = collections.Counter(), []
    try:
        for seed in range(first, first + count):
            directory = f"{home}/{seed}"
            os.mkdir(directory)
            try:
                results[begin(seed, Command(path, directory), home)] += 1
                shutil.rmtree(directory)
            except (Difference, ValueError, KeyError) as difference:
                # Output that can't be read is also a difference.
                failed.append(seed)
                print(f"seed {seed} ({directory}): {difference}", flush=True)
                if len(failed) >= limit:
                    break
    finally:
        end()
    print(told(results, len(failed)))
    if failed:
        print("seeds: " + " ".join(map(str, failed)) + f"; kept in {home}")
        sys.exit(1)
    shutil.rmtree(home)


class ServedTrials:
    """Trials that share one server. Each has the server's keys in its directory."""

    def __init__(self, run, *program):
        self.run, self.program, self.server = run, program, None

    def begin(self, seed, command, home):
        if not self.server:
            self.server = Server(home, *self.program)
        for name in ("ca.pem", "AuthKey_ABCDEFGHIJ.p8"):
            os.link(f"{home}/{name}", f"{command.directory}/{name}")
        try:
            return self.run(seed, command, self.server)
        except Exception:
            # The next trial must not see requests of this one.
            self.server.requests()
            raise

    def end(self):
        if self.server:
            self.server.stop()
