"""Errors that end a command with one line and a documented exit code."""

from __future__ import annotations


class FleetError(Exception):
    """What made the work impossible.

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
    """The message of the `FleetError` that ended a Spark job's task, one line; else the error's first line."""
    lines = [line.strip() for line in str(error).splitlines()] or [type(error).__name__]
    told = [line for line in lines if "FleetError: " in line]
    return told[-1].split("FleetError: ", 1)[1] if told else lines[0]
