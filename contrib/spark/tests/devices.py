"""A table of devices, and a campaign that uses their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import BROADSIDE, token

from broadside_fleet.campaign import read_campaign
from broadside_fleet.freeze import FreezeOptions, freeze, local_files
from broadside_fleet.freeze_arrow import ArrowTable, make_parts
from broadside_fleet.work import Work


class Table:
    """A table of devices, and a campaign that uses their names."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "devices.parquet"
        self.path.mkdir()
        for file in range(2):
            pq.write_table(
                pa.table({
                    "token": [token(n) for n in range(file * 500, file * 500 + 500)] + [None],
                    "name": [f"name {n}" for n in range(501)]}),
                self.path / f"{file}.parquet")
        (directory / "payload.json").write_text('{"aps":{"alert":"Hi {{name}}"}}')
        self.campaign = directory / "evening.json5"
        self.campaign.write_text(json.dumps({
            "payload": "payload.json", "topic": "com.example.App", "auth-token-file": "provider-token",
            "rate": 700, "canary": 30}))
        # Of the form that is checked; it is never sent.
        (directory / "provider-token").write_text(
            "eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQ0RFRkdISUoifQ"
            ".eyJpc3MiOiJBQkNERUZHSElKIiwiaWF0IjoxNzAwMDAwMDAwfQ." + "A" * 86)
        self.work = Work(directory / "work")

    def freeze(self, parts: int = 3, make: Any = make_parts, **options: Any) -> dict[str, Any]:
        self.work.make()
        campaign = read_campaign(self.campaign, BROADSIDE)
        table = ArrowTable([file["path"] for file in local_files(self.path)], "parquet")
        asked = FreezeOptions(str(self.path), "token", parts, **options)
        with self.work.lock():
            return freeze(
                self.work, asked, campaign, lambda: local_files(self.path), asked.columns(campaign),
                lambda pin, missing: make(self.work, table, pin, missing))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)
