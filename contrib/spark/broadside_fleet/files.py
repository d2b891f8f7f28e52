"""Files that survive a crash: complete under their name, or not there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any, BinaryIO, Iterator, Optional

from .errors import FleetError

COPY_BYTES = 1 << 20
"""Bytes that are read or compressed at a time."""

STATE_BYTES_LIMIT = 16 << 20
"""The most bytes of a JSON file in a work directory."""


def sync_directory(path: Path) -> None:
    """Makes new names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """Writes a file under a temporary name, and renames it when the block ends without an error.

    Args:
        path: The file; its directory exists.
        durable: Whether it must survive a power cut; a file that is replaced each second need not.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
    try:
        with open(temporary, "xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            sync_directory(path.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def write_json(path: Path, value: Any, durable: bool = True) -> None:
    """Replaces a JSON file as a whole.

    Args:
        path: The file; its directory exists.
        value: What `json` can write.
        durable: As for `replacing`.
    """
    with replacing(path, durable) as file:
        file.write((json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def read_json(path: Path, durable: bool = True) -> Optional[dict[str, Any]]:
    """The object in a JSON file; None if there is no such file.

    Args:
        path: The file.
        durable: As it was written; one that a power cut may have emptied counts as missing.

    Raises:
        FleetError: Exit code 5 if the file can't be read or does not hold an object.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(STATE_BYTES_LIMIT + 1)
        value = json.loads(data) if len(data) <= STATE_BYTES_LIMIT else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FleetError(f"{path}: can't be read: {error.strerror}", 5) from error
    except ValueError:
        value = None
    if not isinstance(value, dict):
        if not durable:
            return None
        raise FleetError(f"{path}: is damaged: restore it from a backup", 5)
    return value


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(COPY_BYTES):
            digest.update(data)
    return digest.hexdigest()
