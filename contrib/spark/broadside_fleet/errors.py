"""Errors that end a command with one line and a documented exit code."""

from __future__ import annotations

import contextlib
import re
from typing import Iterator

_NAMED = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception): ")
"""The beginning of a line that contains an error: the name of an exception class."""


class FleetError(Exception):
    """An error that ends the command.

    Attributes:
        message: What is wrong and how to fix it, one line without a final period.
        exit_code: One of Broadside's exit codes: 1, 2, 3, 4, 5 or 7.
    """

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message, exit_code)
        self.message = message
        self.exit_code = exit_code

    def __str__(self) -> str:
        return self.message


def task_message(error: BaseException) -> str:
    """The one-line message of the `FleetError` that ended a Spark job's task, or of another error.

    A Python trace ends with its error. A Java trace begins with it, after a line that only names the call.
    """
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines()]
    for name in (re.compile(".*FleetError: "), _NAMED):
        if told := [line for line in lines if name.match(line)]:
            return name.sub("", told[-1], count=1)
    return next(filter(None, lines), type(error).__name__)


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Reports the error that ended a Spark job in one line, with exit code 5: most often, a file can't be read."""
    try:
        yield
    except FleetError:
        raise
    except Exception as error:  # Spark has many kinds.
        raise FleetError(task_message(error), 5) from error
