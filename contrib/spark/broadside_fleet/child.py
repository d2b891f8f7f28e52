"""A child process that ends when the process that started it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import BinaryIO, Sequence

# Asks the kernel for SIGTERM at the end of its parent and becomes the command: the request survives
# execve (prctl(2)). The parent may have ended before: then its process id is not the one expected.
# SIGTERM and not SIGKILL: Broadside sends no new request, awaits the responses in flight and records
# them, so that no row becomes unknown. In a session of its own, because the daemon of Python workers sends
# SIGHUP to its process group, and SIGHUP means something else to Broadside.
_LAUNCHER = """
import ctypes, os, sys
PR_SET_PDEATHSIG = 1
if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, %d, 0, 0, 0) != 0:
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started it has ended")
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit("broadside: --broadside " + sys.argv[2] + ": can't be started: " + error.strerror)
""" % signal.SIGTERM


def start(command: Sequence[str], errors: BinaryIO) -> subprocess.Popen[bytes]:
    """Starts a command that receives SIGTERM when the calling thread ends.

    Args:
        command: Program and arguments.
        errors: A file that takes standard output and standard error. Not a pipe: the command must be
            able to end in order when no process reads any more.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True)


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a child in order and waits for it; `--request-timeout` bounds how long that takes."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        child.wait()
