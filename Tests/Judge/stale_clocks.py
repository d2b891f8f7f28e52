"""libfaketime stores a process's clock in shared memory that is named after the process's number. A process that is
killed leaves it behind, and a later process with the same number fails because of it."""
import os
import re

FOLDER = "/dev/shm"


def remove():
    """Removes the shared memory of processes that no longer exist."""
    for name in os.listdir(FOLDER):
        found = re.fullmatch(r"(?:sem\.faketime_sem_|faketime_shm_)(\d+)", name)
        if found and not os.path.exists(f"/proc/{found[1]}"):
            try:
                os.unlink(os.path.join(FOLDER, name))
            except FileNotFoundError:
                pass
