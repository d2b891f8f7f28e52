"""A child process that ends when the process that started it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import BinaryIO, Sequence

# Stays between both processes, and passes on one SIGTERM, however many arrive: Broadside takes a second one
# as a wish to await no response, and rows in flight would be unknown. The kernel's request (prctl(2)) is
# repeated for each thread of a process that is killed: each takes over the child and ends in its turn.
# SIGTERM and not SIGKILL: Broadside sends no new request, awaits the responses in flight and records
# them. If the launcher itself is killed, the kernel sends Broadside the one SIGTERM. The parent may have
# ended before a request: then its process id is not the one expected. In a session of its own, because the
# daemon of Python workers sends SIGHUP to its process group, and SIGHUP means something else to Broadside.
_LAUNCHER = """
import ctypes, os, sys
from signal import SIG_BLOCK, SIG_DFL, SIG_UNBLOCK, SIGCHLD, SIGTERM, pthread_sigmask, signal, sigwait
PR_SET_PDEATHSIG = 1
def end_with(parent):
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0:
        sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
    if os.getppid() != parent:
        sys.exit("the process that started it has ended")
end_with(int(sys.argv[1]))
signal(SIGCHLD, SIG_DFL)
pthread_sigmask(SIG_BLOCK, (SIGCHLD, SIGTERM))
launcher = os.getpid()
child = os.fork()
if child == 0:
    end_with(launcher)
    pthread_sigmask(SIG_UNBLOCK, (SIGCHLD, SIGTERM))
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit("broadside: --broadside " + sys.argv[2] + ": can't be started: " + error.strerror)
stopped = False
while True:
    if sigwait((SIGCHLD, SIGTERM)) == SIGTERM:
        if not stopped:
            os.kill(child, SIGTERM)
        stopped = True
        continue
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        break
code = os.waitstatus_to_exitcode(status)
if code < 0:
    if -code == SIGTERM:
        pthread_sigmask(SIG_UNBLOCK, (SIGTERM,))
    os.kill(launcher, -code)
sys.exit(code if code >= 0 else 1)
"""


def start(command: Sequence[str], errors: BinaryIO) -> subprocess.Popen[bytes]:
    """Starts a command that receives SIGTERM, once, when the calling thread ends.

    Args:
        command: Program and arguments.
        errors: A file that takes standard output and standard error. Not a pipe: the command must be
            able to end in order when no process reads any more.

    Returns:
        A launcher that ends as the command does. SIGTERM reaches the command through it, no other signal.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True)


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a child in order and waits for it; `--request-timeout` bounds how long that takes."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        child.wait()
