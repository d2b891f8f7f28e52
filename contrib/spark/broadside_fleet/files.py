"""Files that are complete or missing after a crash, never partial."""

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
"""Number of bytes to read or compress at a time."""

STATE_BYTES_LIMIT = 16 << 20
"""The most bytes of a JSON file in a work directory."""


def sync_directory(path: Path) -> None:
    """Syncs a directory, so that new names in it are durable."""
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
        durable: Whether the file must survive a power cut; false for a file that is replaced each second.
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
        value: A value that `json` can write.
        durable: As for `replacing`.
    """
    with replacing(path, durable) as file:
        file.write((json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def read_json(path: Path, durable: bool = True) -> Optional[dict[str, Any]]:
    """The object in a JSON file; None if there is no such file.

    Args:
        path: The file.
        durable: The value with which the file was written. If false, an empty file counts as missing, because a power
            cut may have emptied it.

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
