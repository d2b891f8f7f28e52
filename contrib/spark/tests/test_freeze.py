"""Parts of a list: the same whenever they are made, and never of another input."""

from __future__ import annotations

import json
import os
import resource
import shutil
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
from broadside_fleet.files import read_json, write_json
from broadside_fleet.freeze_arrow import ArrowTable, make_parts
from broadside_fleet.freeze_command import check_with_broadside
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


@pytest.mark.parametrize("rules, later", [
    ({"cap": "1/7d", "history": "history"}, {"cap": "2/7d"}),
    ({"cap": "1/7d", "history": "history"}, {"history": "other"}),
    ({"skip-dead": "history"}, {"skip-dead": ["history", "other"]}),
    ({"skip-dead": "history"}, {"dead-for": "10d"}),
    ({"skip-dead": "history", "registered-column": "name"}, {"registered-column": "token"}),
    ({}, {"keep-tokens": "no"}),
])
def test_a_campaign_with_other_rules_about_earlier_ledgers_is_another_one(
    table: Table, rules: dict[str, Any], later: dict[str, Any]
) -> None:
    for name in ("history", "other"):
        (table.directory / name).mkdir()
    first = json.loads(table.campaign.read_text())
    digests = set()
    for options in (first, {**first, **rules}, {**first, **rules, **later}):
        table.campaign.write_text(json.dumps(options))
        digests.add(read_campaign(table.campaign, BROADSIDE).digest)
    assert len(digests) == 2 + bool(rules)


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


def lines_of_part(table: Table, part: int) -> list[str]:
    text = pa.input_stream(str(table.work.part_file(part)), compression="zstd").read().decode()
    return list(text.splitlines()[1:])


def test_an_input_that_can_not_be_read_is_one_line(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether the first of its files or another one, with DuckDB or without."""
    def fails(*options: str) -> str:
        assert freeze_main([
            "--input", str(table.path), "--campaign", str(table.campaign), "--parts", "3", "--work",
            str(table.work.root), "--broadside", BROADSIDE, *options]) == 2
        shutil.rmtree(table.work.root, ignore_errors=True)
        errors = capsys.readouterr().err
        assert errors.startswith("broadside-freeze: ") and errors.count("\n") == 1, errors
        return errors

    pq.write_table(pa.table({"token": [1], "name": ["x"]}), table.path / "0.parquet")
    assert "Failed to parse string" in fails()
    (table.path / "0.parquet").unlink()
    (table.path / "2.parquet").write_bytes(b"garbage" * 100)
    assert "2.parquet" in fails()
    assert "2.parquet" in fails("--filter", "name <> ''")
    # Two texts, the first of which ends with a byte that UTF-8 does not have.
    offsets = pa.array([0, 3, 5], pa.int32()).buffers()[1]
    wrong = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"ab\xffab"))
    pq.write_table(pa.table({"token": wrong, "name": ["x", "y"]}), table.path / "2.parquet")
    assert "column 'token': a text is not UTF-8" in fails()


def test_a_lost_pin_is_no_new_campaign(table: Table) -> None:
    """Parts of another freeze never become parts of this one."""
    manifest = table.freeze()
    pin = table.work.pin.read_text()
    table.work.pin.unlink()
    for parts in (3, 5):
        with pytest.raises(FleetError, match="pin.json: is lost: restore it, or remove") as error:
            table.freeze(parts=parts)
        assert error.value.exit_code == 5
    table.work.manifest.unlink()
    with pytest.raises(FleetError, match="is lost"):
        table.freeze(parts=4)
    (table.work.root / "started" / "1").touch()
    with pytest.raises(FleetError, match="parts were sent: restore it from a backup"):
        table.freeze(parts=4)
    table.work.pin.write_text(pin)
    assert table.freeze() == manifest

    # Of another backup.
    write_json(table.work.pin, {**json.loads(pin), "campaign_id": "0" * 16})
    with pytest.raises(FleetError, match="manifest.json: is of another freeze than pin.json") as error:
        table.freeze()
    assert error.value.exit_code == 5
    # What another freeze made is made again.
    table.work.manifest.unlink()
    asked = []

    def make(work: Work, source: ArrowTable, pin: dict[str, Any], missing: list[int]) -> None:
        asked.extend(missing)
        make_parts(work, source, pin, missing)

    assert table.freeze(make=make)["rows"] == 1000
    assert asked == [0, 1, 2, 3]


def test_parts_of_an_input_that_changed_are_made_again(table: Table) -> None:
    kept = table.path / "1.parquet"
    before = kept.read_bytes(), kept.stat().st_mtime_ns

    def make(work: Work, source: ArrowTable, pin: dict[str, Any], missing: list[int]) -> None:
        pq.write_table(pa.table({"token": [token(1)], "name": ["x"]}), kept)
        make_parts(work, ArrowTable([str(kept)], "parquet"), pin, missing)

    with pytest.raises(FleetError, match="changed while it was frozen") as error:
        table.freeze(make=make)
    assert error.value.exit_code == 5
    kept.write_bytes(before[0])
    os.utime(kept, ns=(before[1], before[1]))
    assert table.freeze()["rows"] == 1000
    assert sum(len(lines_of_part(table, part)) for part in (1, 2, 3)) == 1000


def test_a_copy_at_another_path_is_refused(table: Table) -> None:
    table.freeze()
    original = table.work
    shutil.copytree(original.root, table.directory / "copy")
    table.work = Work(table.directory / "copy")
    with pytest.raises(FleetError, match="is a copy, or was moved") as error:
        table.freeze()
    assert error.value.exit_code == 2
    sent = send_part(table, 1, 3)
    assert sent.returncode == 2 and "a copy does not know" in sent.stderr
    # By a person's word, it was moved.
    table.work.pin.write_text(table.work.pin.read_text().replace(str(original.root), str(table.work.root)))
    table.freeze()
    assert send_part(table, 1, 3).returncode == 0


def test_invalid_rows_are_judged_over_the_whole_table(table: Table) -> None:
    """Equal texts are all in one part; where that is more than a tenth of it, no part is refused."""
    pq.write_table(pa.table({"token": ["none"] * 100, "name": ["x"] * 100}), table.path / "none.parquet")
    manifest = table.freeze(parts=20)
    assert manifest["rows"] == 1100
    # Of the part that has them all, rows with tokens are chosen.
    part = max(manifest["files"], key=lambda file: int(file["rows"]))
    assert part["rows"] > 130
    check_with_broadside(table.work, {**manifest, "files": [part]}, BROADSIDE, 10)
    assert json.loads(table.work.campaign.read_text())["max-invalid"] == 100

    # More of them: refused before anything is sent, and the advice helps.
    table.work = Work(table.directory / "another")
    pq.write_table(pa.table({"token": ["none"] * 120, "name": ["x"] * 120}), table.path / "none.parquet")
    with pytest.raises(FleetError, match="122 of 1,122 rows have no token .2 are blank.*raise max-invalid"):
        table.freeze(parts=20)
    campaign = json.loads(table.campaign.read_text())
    table.campaign.write_text(json.dumps({**campaign, "max-invalid": "20"}))
    assert table.freeze(parts=20)["rows"] == 1120
    assert table.freeze(parts=20)["rows"] == 1120


def test_a_payload_that_most_rows_lack_is_noticed_before_anything_is_sent(table: Table) -> None:
    pq.write_table(
        pa.table({"token": [token(n) for n in range(500)], "name": ["x" * 5000] * 500}),
        table.path / "0.parquet")
    manifest = table.freeze()
    with pytest.raises(FleetError, match="PayloadTooLarge|payload") as error:
        check_with_broadside(table.work, manifest, BROADSIDE, 10)
    assert error.value.exit_code == 2


def test_as_many_parts_as_there_may_be(table: Table) -> None:
    """A file for each is open at a time, and most systems allow 1,024 unless a process asks for more."""
    pq.write_table(
        pa.table({"token": [token(n) for n in range(20_000)], "name": ["x"] * 20_000}), table.path / "1.parquet")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        files = table.freeze(parts=1023)["files"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(files) == 1023 and all(file["rows"] for file in files)


def test_a_part_without_any_token_is_refused_by_the_freeze(table: Table) -> None:
    pq.write_table(pa.table({"token": [token(1), "none"], "name": ["x"] * 2}), table.path / "0.parquet")
    (table.path / "1.parquet").unlink()
    table.campaign.write_text(table.campaign.read_text().replace("{", '{"max-invalid": 60,', 1))
    with pytest.raises(FleetError, match="has a token, and Broadside sends no such list: remove .* fewer parts"):
        table.freeze(parts=1000)


def send_part(table: Table, part: int, parts: int, *, codes: str = "0") -> subprocess.CompletedProcess[str]:
    """Runs `part.sh` with a command in Broadside's place that notes its arguments and makes no ledger."""
    fake = table.directory / "fake-broadside"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{table.directory}/calls\nexit {codes}\n')
    fake.chmod(0o755)
    return subprocess.run(
        ["sh", str(table.work.script), str(part), str(parts), "--rate", "5"], capture_output=True, text=True,
        env={**os.environ, "BROADSIDE": str(fake)})


def test_only_the_frozen_list_is_sent(table: Table) -> None:
    table.freeze(parts=1023)
    files = table.work.read_manifest()["files"]
    empty = next(file["part"] for file in files if not file["rows"])
    one, other = [file["part"] for file in files if file["rows"]][:2]
    assert send_part(table, one, 1023).returncode == 0
    assert send_part(table, empty, 1023).returncode == 0
    calls = (table.directory / "calls").read_text().splitlines()
    assert len(calls) == 1 and f"--part {one}/1023" in calls[0] and calls[0].endswith("--resume-or-begin --rate 5")
    for part, parts, message in (
        (one, 64, "was frozen in 1023 parts, not 64"), (1024, 1023, "is it the right number?"),
    ):
        refused = send_part(table, part, parts)
        assert refused.returncode == 2 and message in refused.stderr
    table.work.part_file(one).write_bytes(table.work.part_file(other).read_bytes())
    refused = send_part(table, one, 1023)
    assert refused.returncode == 2 and "is not the file that was frozen" in refused.stderr
    table.work.part_file(one).unlink()
    assert "is missing: restore it" in send_part(table, one, 1023).stderr
    assert len((table.directory / "calls").read_text().splitlines()) == 1


@pytest.mark.parametrize("label", ["kind=evening", ["kind=evening", "shop=north and south"]])
def test_a_part_has_the_campaigns_labels_and_its_own(table: Table, label: str | list[str]) -> None:
    table.campaign.write_text(json.dumps({**json.loads(table.campaign.read_text()), "label": label}))
    table.freeze()
    assert send_part(table, 2, 3).returncode == 0
    words = (table.directory / "calls").read_text()
    for each in [*([label] if isinstance(label, str) else label), "fleet_part=2"]:
        assert words.count(f"--label {each}") == 1
    # Broadside takes them so.
    sent = subprocess.run(
        ["sh", str(table.work.script), "2", "3", "--dry-run"], capture_output=True, text=True,
        env={**os.environ, "BROADSIDE": BROADSIDE})
    assert sent.returncode == 0, sent.stderr


def test_a_part_whose_ledger_was_lost_is_not_begun_again(table: Table) -> None:
    table.freeze()

    def mode(part: int) -> str:
        send_part(table, part, 3, codes="3")
        return (table.directory / "calls").read_text().splitlines()[-1].split()[-3]

    ledgers = table.work.root / "ledgers"
    # Attempts that ended before there was a ledger are repeated.
    assert [mode(1), mode(1), mode(2)] == ["--resume-or-begin"] * 3
    # With a ledger, or the claim of one that there was.
    claim = ledgers / ".broadside-0123456789abcdef-1-3.1"
    claim.touch()
    assert [mode(1), mode(2)] == ["--resume", "--resume-or-begin"]
    claim.unlink()
    table.work.ledger(1).mkdir()
    (table.work.ledger(1) / "manifest.json").touch()
    assert mode(1) == "--resume"
    # With the folder itself lost, for each part that was begun.
    ledgers.rename(table.directory / "elsewhere")
    assert [mode(1), mode(2), mode(3)] == ["--resume", "--resume", "--resume-or-begin"]


def test_what_this_machine_cannot_do_is_not_the_campaigns_fault(table: Table) -> None:
    """Exit 2 would end all parts; a file that is missing here alone may be read elsewhere."""
    table.freeze()
    script = table.work.script
    for name in ("parts.txt", "labels.txt"):
        (script.parent / name).rename(table.directory / name)
        failed = send_part(table, 2, 3)
        assert failed.returncode == 5 and name in failed.stderr, failed.stderr
        (table.directory / name).rename(script.parent / name)
    # Where notes and ledgers are to be, something else is.
    started = table.work.root / "started"
    started.rmdir() if started.exists() else None
    started.write_text("")
    assert send_part(table, 2, 3).returncode == 5
    started.unlink()
    # A list that is there and can't be read: a folder in its place, for root may read every file.
    part = table.work.part_file(2)
    part.rename(table.directory / "part")
    part.mkdir()
    failed = send_part(table, 2, 3)
    assert failed.returncode == 5 and "can't be read" in failed.stderr, failed.stderr
    part.rmdir()
    (table.directory / "part").rename(part)
    missing = subprocess.run(
        ["sh", str(script), "2", "3"], capture_output=True, text=True, env={**os.environ, "BROADSIDE": "/nowhere"})
    assert missing.returncode == 127 and "can't be started on this machine" in missing.stderr
    assert not (table.directory / "calls").exists()
    assert send_part(table, 2, 3).returncode == 0


def test_payloads_are_those_of_the_campaigns_identity(table: Table) -> None:
    """A payload that changes after it was read is not copied; and a file is replaced as a whole."""
    folder = table.directory / "languages"
    folder.mkdir()
    (folder / "de.json").write_text('{"aps":{"alert":"Hallo {{name}}"}}')
    campaign_file = read_json(table.campaign)
    assert campaign_file is not None
    table.campaign.write_text(json.dumps({**campaign_file, "payload-by": "name=languages"}))
    campaign = read_campaign(table.campaign, BROADSIDE)
    table.work.make()
    for path, copy in ((table.directory / "payload.json", "payload.json"), (folder / "de.json", "payloads/de.json")):
        before = path.read_bytes()
        path.write_text("{}")
        campaign.write(table.work, "0123456789abcdef", "token")
        first = table.work.frozen / copy
        number = first.stat().st_ino
        assert first.read_bytes() == before
        campaign.write(table.work, "0123456789abcdef", "token")
        assert first.stat().st_ino != number
