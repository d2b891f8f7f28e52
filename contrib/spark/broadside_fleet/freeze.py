"""The beginning and the end of a freeze, for every engine that makes the parts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from .campaign import CampaignFile
from .errors import FleetError
from .files import read_json, write_json
from .part_files import Origin, missing_parts, write_manifest, write_parts_list
from .tokens import PARTS_LIMIT
from .work import Work

FILES_LIMIT = 100_000
"""The most files of an input."""

InputFiles = list[dict[str, Any]]
"""`path`, `bytes` and `modified_ms` (Unix milliseconds) of each file, in the order of their paths."""


@dataclass(frozen=True)
class FreezeOptions:
    """The options of a freeze.

    Attributes:
        input: The table, as it was named.
        token_column: The column of tokens.
        parts: From 1 to 1,023.
        filter: A condition in SQL; None: all rows.
        registered_column: A column that `prune` compares with APNs' timestamps; None: none.
    """

    input: str
    token_column: str
    parts: int
    filter: Optional[str] = None
    registered_column: Optional[str] = None

    def columns(self, campaign: CampaignFile) -> list[str]:
        """The columns that parts need, each once; the token's column is the first."""
        names = [self.token_column, *campaign.columns]
        if self.registered_column:
            names.append(self.registered_column)
        return list({name.lower(): name for name in reversed(names)}.values())[::-1]


MakeParts = Callable[[dict[str, Any], list[int]], None]


def freeze(
    work: Work, options: FreezeOptions, campaign: CampaignFile, files: Callable[[], InputFiles],
    columns: Sequence[str], make_parts: MakeParts
) -> dict[str, Any]:
    """Freezes a list, or continues a freeze that was interrupted.

    Args:
        work: The work directory; the caller holds its lock.
        options: The options of the freeze.
        campaign: The campaign of the list.
        files: Lists the input's files; called before and after they are read.
        columns: The columns as the input names them; the token's column is the first.
        make_parts: Makes the parts with these numbers; number 0 stands for the count of rows without a token.

    Returns:
        The manifest.

    Raises:
        FleetError: Exit code 2 if the work directory holds another freeze, with the difference, or is a
            copy; 5 if the input changed while it was read, or if a file of the freeze is lost.
    """
    if not 1 <= options.parts <= PARTS_LIMIT:
        raise FleetError(f"--parts {options.parts}: is not a number from 1 to {PARTS_LIMIT:,}")
    asked: dict[str, Any] = {
        "parts": options.parts, "columns": list(columns), "filter": options.filter,
        "registered_column": options.registered_column, "campaign": campaign.digest, "files": files(),
    }
    if not asked["files"]:
        raise FleetError(f"--input {options.input}: holds no file")
    if len(asked["files"]) > FILES_LIMIT:
        raise FleetError(f"--input {options.input}: more than {FILES_LIMIT:,} files")
    pin = read_json(work.pin)
    if pin is None:
        _refuse_lost_pin(work)
        pin = {**asked, "campaign_id": secrets.token_hex(8), "work": str(work.root)}
        write_json(work.pin, pin)
    else:
        _refuse_copy(work, pin)
        problem = difference(pin, asked)
        if problem:
            raise FleetError(f"--work {work.root}: {problem}: {CONTINUE}")
    manifest = read_json(work.manifest)
    if manifest is not None:
        _refuse_other_manifest(work, pin, manifest)
    campaign.write(work, pin["campaign_id"], pin["columns"][0])
    if manifest is None:
        missing = missing_parts(work, Origin.of(pin))
        if missing:
            make_parts(pin, missing)
            problem = difference(pin, {**asked, "files": files()})
            if problem:
                # It is unknown which parts were made before the change.
                for part in missing:
                    work.part_record(part).unlink(missing_ok=True)
                raise FleetError(
                    f"--input {options.input}: changed while it was frozen: {problem}: restore it, or remove"
                    f" {work.frozen} to freeze it as it is now: nothing was sent", 5)
        manifest = write_manifest(work, pin, campaign.max_invalid)
    write_parts_list(work, manifest)
    for left in work.frozen.glob(".*.new"):
        left.unlink(missing_ok=True)
    return manifest


CONTINUE = (
    "give what its first start was given to continue; another --work is another campaign, which sends to all"
    " again")
"""The advice if a work directory holds another freeze than the requested one."""


def _refuse_lost_pin(work: Work) -> None:
    """Refuses a work directory whose pin is lost: a new pin would have a new campaign id."""
    if work.has_begun():
        raise FleetError(
            f"{work.pin}: is lost, and parts were sent: restore it from a backup; a new freeze would send to"
            " all again", 5)
    if work.manifest.exists() or any(work.frozen.glob("part-*.json")):
        raise FleetError(
            f"{work.pin}: is lost: restore it, or remove {work.frozen} to freeze again: nothing was sent", 5)


def _refuse_copy(work: Work, pin: dict[str, Any]) -> None:
    """Refuses a copy at another path: the original may have sent parts that look unsent in the copy."""
    if pin.get("work", str(work.root)) != str(work.root):
        raise FleetError(
            f"--work {work.root}: was frozen as {pin['work']} and is a copy, or was moved: use that one; a copy"
            " does not know what the other has sent (if it was moved with all that is in it, correct 'work' in"
            f" {work.pin})")


def _refuse_other_manifest(work: Work, pin: dict[str, Any], manifest: dict[str, Any]) -> None:
    same = all(manifest[key] == pin[key] for key in ("campaign_id", "parts", "columns"))
    if not same or manifest.get("origin", Origin.of(pin).digest) != Origin.of(pin).digest:
        raise FleetError(
            f"{work.manifest}: is of another freeze than {work.pin.name}: restore both from the same backup", 5)


def difference(pin: dict[str, Any], asked: dict[str, Any]) -> Optional[str]:
    """The first difference between the freeze and the requested one; None if there is none."""
    for key, name in (
        ("parts", "--parts"), ("columns", "the columns"), ("filter", "--filter"),
        ("registered_column", "--registered-column"),
    ):
        if pin[key] != asked[key]:
            return f"was frozen with {name} {pin[key]}, not {asked[key]}"
    if pin["campaign"] != asked["campaign"]:
        return "the campaign's payload, topic or headers are not those of its first start"
    before = {file["path"]: file for file in pin["files"]}
    now = {file["path"]: file for file in asked["files"]}
    for path in sorted(before.keys() | now.keys()):
        if path not in now:
            return f"{path} was part of the input and is not any more"
        if path not in before:
            return f"{path} was not part of the input"
        if before[path] != now[path]:
            was, is_ = before[path], now[path]
            return (
                f"{path} has changed: {is_['bytes']:,} bytes of {is_['modified_ms']}, was"
                f" {was['bytes']:,} bytes of {was['modified_ms']}")
    return None


def local_files(path: Path) -> InputFiles:
    """The files of a table on a local file system, without hidden ones, as Spark lists them."""
    if not path.exists():
        raise FleetError(f"--input {path}: does not exist")
    paths = [path] if path.is_file() else sorted(
        found for found in path.rglob("*") if found.is_file() and not any(
            name.startswith((".", "_")) for name in found.relative_to(path).parts))
    return [
        {"path": str(found.resolve()), "bytes": found.stat().st_size,
         "modified_ms": found.stat().st_mtime_ns // 1_000_000}
        for found in paths
    ]
