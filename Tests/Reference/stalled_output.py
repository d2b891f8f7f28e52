#!/usr/bin/env python3
"""Runs a send whose output nobody takes, and stops it.

    stalled_output.py WHERE EVENT BROADSIDE ARGUMENTS...

WHERE: pipe (stderr and stdout are pipes that are full), pty (a terminal whose output is stopped),
fifo (stderr is a named pipe that is full). EVENT: int, int-twice, term, deadline, control. Waits for
the ledger's first outcomes before the event. Prints the exit code, or "hangs".
"""
import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time


def fill(descriptor):
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    try:
        while True:
            os.write(descriptor, b"x")
    except BlockingIOError:
        pass
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)


def outputs(where):
    if where == "pty":
        _, terminal = pty.openpty()
        termios.tcflow(terminal, termios.TCOOFF)
        return terminal, terminal
    if where == "fifo":
        with tempfile.TemporaryDirectory() as directory:
            os.mkfifo(f"{directory}/fifo")
            kept = os.open(f"{directory}/fifo", os.O_RDWR)
        fill(kept)
        return subprocess.DEVNULL, kept
    ends = [os.pipe()[1], os.pipe()[1]]
    for end in ends:
        fill(end)
    return ends[0], ends[1]


def main():
    where, event, command, *arguments = sys.argv[1:]
    # Both ends of each pipe stay open here: it is full, not closed.
    stdout, stderr = outputs(where)
    process = subprocess.Popen([command, *arguments], stdin=subprocess.DEVNULL, stdout=stdout,
                               stderr=stderr)
    ledger = arguments[arguments.index("--ledger") + 1]
    for _ in range(600):
        time.sleep(0.1)
        shown = subprocess.run([command, "ledger", "stats", "--ledger", ledger, "--json"],
                               capture_output=True, text=True)
        if process.poll() is not None or (
                shown.returncode == 0 and json.loads(shown.stdout)["accepted"] >= 300):
            break
    # Long enough for any output to be in the way.
    time.sleep(1)
    if event.startswith("int"):
        process.send_signal(signal.SIGINT)
    if event == "int-twice":
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    if event == "term":
        process.send_signal(signal.SIGTERM)
    if event == "control":
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(arguments[arguments.index("--control") + 1])
            control.settimeout(30)
            control.sendall(b"stop\n")
            control.recv(1000)
    try:
        print(process.wait(timeout=60))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        print("hangs")


main()
