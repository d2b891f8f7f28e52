#!/usr/bin/python3
"""A disk that fails: a file system in user space over a folder, sound until a file tells what is not.

    failing_disk.py FOLDER MOUNT_POINT

FOLDER.fail names it: with `write` every write is answered with EIO; with `sync` every sync is, and what was
written to the file since its last sync is gone, as where a kernel throws away what it could not write.
"""
import errno
import os
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


def fails(what):
    try:
        with open(FOLDER + ".fail") as file:
            return what in file.read()
    except OSError:
        return False


class Disk(fuse.Operations):
    def __init__(self):
        self.synced = {}

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

    def write(self, path, octets, offset, file):
        if fails("write"):
            raise fuse.FuseOSError(errno.EIO)
        return os.pwrite(file, octets, offset)

    def fsync(self, path, data_only, file):
        if fails("sync"):
            os.truncate(place(path), min(os.fstat(file).st_size, self.synced.get(path, 0)))
            raise fuse.FuseOSError(errno.EIO)
        self.synced[path] = os.fstat(file).st_size

    def fsyncdir(self, path, data_only, file):
        if fails("sync"):
            raise fuse.FuseOSError(errno.EIO)

    def release(self, path, file):
        os.close(file)


fuse.FUSE(
    Disk(), MOUNT_POINT, foreground=True, nothreads=True, direct_io=True, attr_timeout=0,
    entry_timeout=0)
