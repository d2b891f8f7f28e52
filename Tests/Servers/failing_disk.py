#!/usr/bin/python3
"""A disk that fails: a file system in user space over a folder, sound until a file tells what is not.

    failing_disk.py FOLDER MOUNT_POINT

FOLDER.fail names it: with `write` every write is answered with EIO, with `full` with ENOSPC; with `sync` every
sync is answered with EIO, and what was written to the file since its last sync is gone, as where a kernel throws
away what it could not write. A number behind it spares files until they have so many bytes. What failed is told
on stdout: `write of 4096 bytes`, where so many were there already.

`power` is a power cut: the process that writes next is killed as by SIGKILL, and of every file all that was written since its
last sync is gone, or a random part of it.
"""
import errno
import os
import random
import signal
import sys

try:
    import fusepy as fuse
except ImportError:
    import fuse

FOLDER, MOUNT_POINT = sys.argv[1:3]
STATUS = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")
SPACE = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_files", "f_ffree", "f_frsize", "f_namemax")


def place(path):
    return FOLDER + path


def fails(what, count):
    """Whether an operation fails on a file of so many bytes."""
    try:
        with open(FOLDER + ".fail") as file:
            words = file.read().split()
    except OSError:
        return False
    failing = words[:1] == [what] and count >= int((words + ["0"])[1])
    if failing:
        print(f"{what} of {count} bytes", flush=True)
    return failing


class Disk(fuse.Operations):
    def __init__(self):
        # What lies there already is on the disk.
        self.synced = {
            os.path.join(folder, name)[len(FOLDER):]: os.lstat(os.path.join(folder, name)).st_size
            for folder, _, names in os.walk(FOLDER) for name in names}

    def cut_power(self):
        """Ends who asks; what was synced stays, and of the rest as much as chance leaves."""
        os.unlink(FOLDER + ".fail")
        for folder, _, names in os.walk(FOLDER):
            for name in names:
                file = os.path.join(folder, name)
                count, kept = os.lstat(file).st_size, self.synced.get(file[len(FOLDER):], 0)
                if count > kept:
                    os.truncate(file, random.choice([kept, random.randint(kept, count)]))
        os.kill(fuse.fuse_get_context()[2], signal.SIGKILL)
        raise fuse.FuseOSError(errno.EIO)

    def getattr(self, path, file=None):
        status = os.lstat(place(path))
        return {name: getattr(status, name) for name in STATUS}

    def statfs(self, path):
        space = os.statvfs(place(path))
        return {name: getattr(space, name) for name in SPACE}

    def readdir(self, path, file):
        return [".", ".."] + os.listdir(place(path))

    def mkdir(self, path, mode):
        os.mkdir(place(path), mode)

    def rmdir(self, path):
        os.rmdir(place(path))

    def unlink(self, path):
        os.unlink(place(path))

    def rename(self, old, new):
        os.rename(place(old), place(new))
        self.synced[new] = self.synced.pop(old, 0)

    def chmod(self, path, mode):
        os.chmod(place(path), mode)

    def chown(self, path, user, group):
        os.chown(place(path), user, group)

    def utimens(self, path, times=None):
        os.utime(place(path), times)

    def open(self, path, flags):
        return os.open(place(path), flags & ~os.O_APPEND)

    def create(self, path, mode, info=None):
        return os.open(place(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

    def truncate(self, path, count, file=None):
        os.truncate(place(path), count)

    def read(self, path, count, offset, file):
        return os.pread(file, count, offset)

    def write(self, path, data, offset, file):
        if fails("write", offset):
            raise fuse.FuseOSError(errno.EIO)
        if fails("power", offset):
            self.cut_power()
        if fails("full", offset):
            raise fuse.FuseOSError(errno.ENOSPC)
        return os.pwrite(file, data, offset)

    def fsync(self, path, data_only, file):
        count = os.fstat(file).st_size
        if fails("sync", count):
            os.truncate(place(path), min(count, self.synced.get(path, 0)))
            raise fuse.FuseOSError(errno.EIO)
        self.synced[path] = count

    def fsyncdir(self, path, data_only, file):
        if fails("sync", 0):
            raise fuse.FuseOSError(errno.EIO)

    def release(self, path, file):
        os.close(file)


fuse.FUSE(
    Disk(), MOUNT_POINT, foreground=True, nothreads=True, direct_io=True, big_writes=True,
    attr_timeout=0, entry_timeout=0)
