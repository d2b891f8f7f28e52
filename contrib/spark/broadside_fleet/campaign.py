"""The campaign file as Broadside reads it. Options of the whole campaign are separated from those of a part."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .errors import FleetError
from .files import replacing, write_json
from .work import Work

# What makes a campaign another one. `payload` and `payload-by` count with the bytes of their files.
_IDENTITY = (
    "topic", "push-type", "priority", "expiration", "collapse-id", "environment", "duplicates",
    "suppress", "where", "protocol", "binary-command",
)
# The same, of options that came later: they count only where they are set, so that older freezes stay the same.
_LATER_IDENTITY = (
    "split", "split-salt", "arm-collapse-id", "arm-priority", "deliver-at", "zone-column", "zone-default", "on",
    "late", "quiet", "skip-dead", "registered-column", "dead-for", "cap", "history", "keep-tokens",
)
# What each part has of its own, or what the driver decides.
_PER_PART = (
    "tokens", "format", "token-column", "ledger", "resume", "resume-or-begin", "must-resume", "retry", "summary", "report",
    "metrics", "control", "progress", "log", "trace-frames", "part", "campaign-id", "assume-canary",
    "canary", "rate", "yes",
)
_REFUSED = ("shard", "limit", "to", "preview", "dry-run")

PAYLOADS_LIMIT = 4096
"""The most payload files of a campaign."""


@dataclass(frozen=True)
class CampaignFile:
    """A campaign file, read.

    Attributes:
        options: What each part is sent with, by the long names of options.
        columns: Columns that payloads, headers and conditions of `where` use, in order of their first use.
        digest: SHA-256 of what all parts must have in common, in hexadecimal digits.
        rate: Requests per second in all; None: unlimited.
        canary: Rows of part 1 that go first; None if the file names none.
        max_invalid: Percent of rows that may be invalid.
        payload: The bytes of the payload file that are in the digest; None if there is none.
        payloads_by: Those of the files for single values of a column, by their names.
        arms: Those of the files for single arms, by the arms' names.
    """

    options: dict[str, Any]
    columns: list[str]
    digest: str
    rate: Optional[float]
    canary: Optional[int]
    max_invalid: float
    payload: Optional[bytes]
    payloads_by: dict[str, bytes]
    arms: dict[str, bytes]

    @property
    def waits(self) -> bool:
        """Whether rows may wait for their local time."""
        return "deliver-at" in self.options or "quiet" in self.options

    def write(self, work: Work, campaign_id: str, token_column: str) -> None:
        """Copies the campaign and its payloads into the work directory, for all machines.

        With its id, so that `send --campaign` needs only a part's list, number and ledger.
        """
        # Invalid rows are judged over the whole table, before anything is sent: parts are too small for it.
        options = {
            **self.options, "campaign-id": campaign_id, "token-column": token_column, "max-invalid": 100}
        if self.payload is not None:
            _write(work.frozen / "payload.json", self.payload)
            options["payload"] = "payload.json"
        if "payload-by" in options:
            target = work.frozen / "payloads"
            target.mkdir(mode=0o700, exist_ok=True)
            for name, data in self.payloads_by.items():
                _write(target / name, data)
            options["payload-by"] = f"{str(options['payload-by']).split('=', 1)[0]}={target.name}"
        if self.arms:
            target = work.frozen / "arms"
            target.mkdir(mode=0o700, exist_ok=True)
            for arm, data in self.arms.items():
                _write(target / f"{arm}.json", data)
            options["arm"] = [f"{arm}=arms/{arm}.json" for arm in self.arms]
        write_json(work.campaign, options)
        # `part.sh` adds the part's own label, and a label on a command line replaces those of the file.
        labels = options.get("label", [])
        labels = [labels] if isinstance(labels, str) else labels
        _write(work.labels, "".join(f"{label}\n" for label in labels).encode())


def read_campaign(path: Path, broadside: str) -> CampaignFile:
    """Reads a campaign file through `broadside send --print-campaign`.

    Raises:
        FleetError: Exit code 2 with Broadside's own message if the file is wrong.
    """
    # The list is each part's own: any file will do here, and it is not read.
    printed = run(
        broadside, "send", "--campaign", str(path), "--tokens", os.devnull, "--print-campaign")
    options = json.loads(printed)
    for name in _REFUSED:
        if name in options:
            raise FleetError(f"{path}: {name} does not go with parts: remove it")
    if "deliver-at" in options and "on" not in options:
        raise FleetError(
            f"{path}: deliver-at needs a date, as parts may begin on different ones: add on: \"YYYY-MM-DD\"")
    digest = hashlib.sha256()
    for name in _IDENTITY:
        digest.update(json.dumps([name, options.get(name)]).encode())
    for name in _LATER_IDENTITY:
        if name in options:
            digest.update(json.dumps([name, options[name]]).encode())
    files: list[Path] = []
    by: list[Path] = []
    read: dict[Path, bytes] = {}
    columns: dict[str, None] = {}
    if "payload-by" in options:
        column, directory = str(options["payload-by"]).split("=", 1)
        columns[column] = None
        by = _payload_files(Path(directory))
        files += by
    if "payload" in options:
        files.append(Path(options["payload"]))
    arms = {arm: Path(file) for arm, _, file in (text.partition("=") for text in _texts(options.get("arm")))}
    for arm, file in arms.items():
        digest.update(json.dumps(["arm", arm, file.name]).encode())
    files += arms.values()
    for file in files:
        try:
            data = read[file] = file.read_bytes()
            _collect(json.loads(data), columns)
        except OSError as error:
            raise FleetError(f"{file}: {error.strerror}") from error
        except ValueError as error:
            raise FleetError(f"{file}: is not JSON: {error}") from error
        digest.update(json.dumps([file.name, hashlib.sha256(data).hexdigest()]).encode())
    for name in ("collapse-id", "topic", "arm-collapse-id"):
        _collect(options.get(name), columns)
    for name in ("zone-column", "registered-column"):
        columns.update(dict.fromkeys(_texts(options.get(name))))
    columns.update(dict.fromkeys(filter_columns(options.get("where", []))))
    payload = read[Path(options["payload"])] if "payload" in options else None
    return CampaignFile(
        options={key: value for key, value in options.items() if key not in _PER_PART},
        columns=list(columns), digest=digest.hexdigest(), rate=_number(options.get("rate")),
        canary=None if "canary" not in options else int(options["canary"]),
        max_invalid=float(str(options.get("max-invalid", 10)).rstrip("%")),
        payload=payload, payloads_by={file.name: read[file] for file in by},
        arms={arm: read[file] for arm, file in arms.items()})


def _texts(value: Any) -> list[str]:
    """The values of an option that may be repeated."""
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


def run(*command: str) -> str:
    """Runs Broadside to its end and returns what it printed.

    Raises:
        FleetError: With the last line of its errors and its exit code.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise FleetError(f"--broadside {command[0]}: can't be started: {error.strerror}") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        code = done.returncode if done.returncode > 0 else 1
        raise FleetError(said[-1].removeprefix("broadside: "), code)
    return done.stdout


def _number(value: Any) -> Optional[float]:
    return None if value is None else float(value)


def _payload_files(directory: Path) -> list[Path]:
    files = sorted(directory.glob("*.json"))
    if len(files) > PAYLOADS_LIMIT:
        raise FleetError(f"{directory}: more than {PAYLOADS_LIMIT:,} payload files")
    return files


def _collect(value: Any, columns: dict[str, None]) -> None:
    """Adds the columns of all templates in a JSON value, which need not be in any order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            columns.update(dict.fromkeys(template_columns(item)))
        elif isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, dict):
            waiting += reversed([*item.keys(), *item.values()])


def filter_columns(conditions: str | list[str]) -> list[str]:
    """The columns that conditions of `where` compare: what precedes the operator, perhaps in double quotes.

    Conditions that are wrong are left to Broadside's own check.
    """
    columns = []
    for text in [conditions] if isinstance(conditions, str) else conditions:
        quoted = re.match(r'\s*"((?:[^"]|"")*)"', text)
        column = quoted[1].replace('""', '"') if quoted else re.split("[=!<>]", text, maxsplit=1)[0]
        columns.append(column.strip(" \t\r"))
    return columns


def template_columns(text: str) -> list[str]:
    """The columns that `{{column}}`, `{{column:int}}` and `{{column|default}}` name in a text.

    Braces that are not closed, and names that are wrong, are left to Broadside's own check.
    """
    columns = []
    offset = 0
    while (offset := text.find("{{", offset)) >= 0:
        if text.startswith("{{{{", offset):
            offset += 4
            continue
        end = text.find("}}", offset + 2)
        if end < 0:
            break
        name = text[offset + 2:end].split("|", 1)[0]
        name = name.rsplit(":", 1)[0] if ":" in name else name
        columns.append(name.strip())
        offset = end + 2
    return columns
