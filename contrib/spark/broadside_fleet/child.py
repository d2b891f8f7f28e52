"""A child process that ends when the process that started it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import BinaryIO, Sequence

# The launcher is a process between parent and Broadside that passes on only the first SIGTERM. After a second
# SIGTERM, Broadside waits for no response, and rows in flight would become unknown. But when the parent is
# killed, the kernel (prctl(2)) sends a signal for each of the parent's threads, because each thread that is
# left adopts the child until it ends. The signal is SIGTERM, not SIGKILL: Broadside sends no new request, waits for
# the responses in flight and records them. If the launcher itself is killed, the kernel sends Broadside one
# SIGTERM. If the parent ended before the call of prctl, the parent's process id has changed. The launcher has a
# separate session, because the daemon of Python workers sends SIGHUP to its process group, and SIGHUP makes
# Broadside reread its credentials.
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
        The launcher. It ends with the exit code or signal of the command, and passes on only SIGTERM.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command],
        stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True)


def end(child: subprocess.Popen[bytes]) -> None:
    """Stops a child with SIGTERM and waits for its end, about `--request-timeout` at most."""
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        child.wait()
