"""Parts of a list: the same whenever they are made, and never of another input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import BROADSIDE, token

from broadside_fleet.campaign import read_campaign
from broadside_fleet.errors import FleetError
from broadside_fleet.files import read_json
from broadside_fleet.freeze_arrow import ArrowTable, make_parts
from broadside_fleet.freeze_command import main as freeze_main
from broadside_fleet.tokens import part_of, token_hash
from broadside_fleet.work import Work

from devices import Table, table


def test_the_campaign_file_is_read_by_broadside(table: Table) -> None:
    campaign = read_campaign(table.campaign, BROADSIDE)
    assert (campaign.columns, campaign.rate, campaign.canary, campaign.max_invalid) == (
        ["name"], 700, 30, 10)
    assert not {"tokens", "rate", "canary"} & campaign.options.keys()
    # What all parts have in common: the payload's bytes, but not credentials.
    table.campaign.write_text(table.campaign.read_text().replace("provider-token", "./provider-token"))
    assert read_campaign(table.campaign, BROADSIDE).digest == campaign.digest
    (table.directory / "payload.json").write_text('{"aps":{"alert":"Ho {{name}}"}}')
    assert read_campaign(table.campaign, BROADSIDE).digest != campaign.digest
    table.campaign.write_text('{"payload": "payload.json", "limit": 5}')
    with pytest.raises(FleetError, match="limit does not go with parts"):
        read_campaign(table.campaign, BROADSIDE)
    table.campaign.write_text('{"payloads": 1}')
    with pytest.raises(FleetError, match="payloads") as error:
        read_campaign(table.campaign, BROADSIDE)
    assert error.value.exit_code == 2


def test_every_token_is_in_its_part_once(table: Table) -> None:
    manifest = table.freeze()
    assert (manifest["rows"], manifest["rows_without_token"]) == (1000, 2)
    seen = []
    for part in (1, 2, 3):
        text = pa.input_stream(str(table.work.part_file(part)), compression="zstd").read().decode()
        header, *lines = text.splitlines()
        assert header == "token,name"
        tokens = [line.split(",")[0] for line in lines]
        assert all(part_of(token_hash(found), 3) == part for found in tokens)
        hashes = [token_hash(found) for found in tokens]
        assert hashes == sorted(hashes) and tokens != sorted(tokens)
        assert manifest["files"][part - 1]["rows"] == len(lines)
        seen += tokens
    assert sorted(seen) == sorted(token(n) for n in range(1000))


def test_an_interrupted_freeze_makes_only_what_is_missing(table: Table) -> None:
    def interrupted(work: Work, source: ArrowTable, pin: dict[str, Any], missing: list[int]) -> None:
        make_parts(work, source, pin, missing[:2])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.freeze(make=interrupted)
    assert not table.work.manifest.exists()
    first = table.work.part_file(1).stat()
    pin = read_json(table.work.pin)
    assert pin is not None
    asked = []

    def rest(work: Work, source: ArrowTable, pin: dict[str, Any], missing: list[int]) -> None:
        asked.extend(missing)
        make_parts(work, source, pin, missing)

    manifest = table.freeze(make=rest)
    assert asked == [2, 3]
    assert manifest["campaign_id"] == pin["campaign_id"]
    assert table.work.part_file(1).stat().st_ino == first.st_ino
    whole = Work(table.directory / "whole")
    table.work = whole
    again = table.freeze()
    assert [file["sha256"] for file in again["files"]] == [
        file["sha256"] for file in manifest["files"]]
    assert again["campaign_id"] != manifest["campaign_id"]


def test_another_input_is_refused_with_the_difference(table: Table) -> None:
    table.freeze()
    table.freeze()
    for change, message in (
        (lambda: table.freeze(parts=4), "--parts 3, not 4"),
        (lambda: table.freeze(filter="name = 'x'"), "--filter None, not name"),
        (lambda: table.freeze(registered_column="name2"), "columns"),
    ):
        with pytest.raises(FleetError, match=message) as error:
            change()
        assert error.value.exit_code == 2
    (table.path / "_SUCCESS").write_text("")
    table.freeze()
    pq.write_table(pa.table({"token": [token(1)], "name": ["x"]}), table.path / "1.parquet")
    with pytest.raises(FleetError, match="1.parquet has changed: .* bytes of .*, was"):
        table.freeze()
    (table.path / "1.parquet").unlink()
    with pytest.raises(FleetError, match="1.parquet was part of the input and is not any more"):
        table.freeze()


def test_an_input_that_changes_while_it_is_read_is_refused(table: Table) -> None:
    def make(work: Work, source: ArrowTable, pin: dict[str, Any], missing: list[int]) -> None:
        make_parts(work, source, pin, missing)
        pq.write_table(pa.table({"token": [token(1)], "name": ["x"]}), table.path / "2.parquet")

    with pytest.raises(FleetError, match="changed while it was frozen") as error:
        table.freeze(make=make)
    assert error.value.exit_code == 5
    assert not table.work.manifest.exists()


def test_a_wrong_token_column_is_noticed_before_anything_is_sent(table: Table) -> None:
    blank = pa.table({"token": pa.array([None] * 300, pa.string()), "name": ["x"] * 300})
    pq.write_table(blank, table.path / "3.parquet")
    with pytest.raises(FleetError, match="302 of 1,302 rows have no token"):
        table.freeze()


def test_the_freeze_command(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--input", str(table.path), "--campaign", str(table.campaign), "--parts", "3",
                 "--work", str(table.directory / "w"), "--broadside", BROADSIDE]
    assert freeze_main(arguments) == 0, capsys.readouterr().err
    assert "1,000 rows in 3 parts, 2 without a token" in capsys.readouterr().out
    assert freeze_main([*arguments, "--token-column", "toke"]) == 2
    assert capsys.readouterr().err == (
        "broadside-freeze: column 'toke' is not in the input: it has token, name\n")
    assert freeze_main([*arguments, "--parts", "2000"]) == 2
    with Work(table.directory / "w").lock():
        held = subprocess.run(
            [sys.executable, "-c", "from broadside_fleet.freeze_command import main; import sys;"
             "sys.exit(main(sys.argv[1:]))", *arguments],
            cwd=Path(__file__).parent.parent, capture_output=True, text=True)
    assert held.returncode == 7 and "another start is using it" in held.stderr


def test_a_part_that_was_swapped_is_refused(table: Table) -> None:
    manifest = table.freeze()
    for part in (1, 2, 3):
        table.work.check_part(part, manifest)
    table.work.part_file(1).write_bytes(table.work.part_file(2).read_bytes())
    with pytest.raises(FleetError, match="part-0001.csv.zst: is not the file that was frozen"):
        table.work.check_part(1, manifest)
