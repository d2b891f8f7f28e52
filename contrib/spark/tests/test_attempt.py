"""A part, with a command in Broadside's place that ends as a test says."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for

from broadside_fleet.attempt import PartAttempt, Sending
from broadside_fleet.errors import FleetError
from broadside_fleet.files import read_json, write_json

from devices import Table, table


class FakeBroadside:
    """A command that ends with one exit code after the other, and notes its arguments."""

    def __init__(self, directory: Path, *codes: int) -> None:
        self.directory = directory
        self.codes = directory / "codes"
        self.codes.write_text(" ".join(map(str, codes)) + " ")
        self.path = directory / "fake-broadside"
        self.path.write_text(
            "#!/bin/sh\n"
            f"echo \"$@\" >>{directory}/calls\n"
            "while [ $# -gt 0 ]; do case $1 in --ledger) l=$2;; --summary) s=$2;; esac; shift; done\n"
            f"mkdir -p $l; read -r code rest <{self.codes}; echo \"$rest \" >{self.codes}\n"
            "[ $code = 2 ] || echo {} >$l/manifest.json\n"
            "echo '{\"rows\": 5, \"remaining\": 0}' >$s\n"
            "echo \"broadside: code $code: do this\" >&2; exit $code\n")
        self.path.chmod(0o755)

    def calls(self) -> list[str]:
        return (self.directory / "calls").read_text().splitlines()


def sending(table: Table, fake: FakeBroadside, **changes: Any) -> Sending:
    values = {"work": table.work, "broadside": str(fake.path), "rated": False, "canary": 30,
              "canary_part": 1, "start": "s"}
    return Sending(**{**values, **changes})


def test_an_attempt_follows_exit_codes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    table.freeze()
    fake = FakeBroadside(table.directory, 3, 7, 7, 5, 6)
    result = PartAttempt(sending(table, fake), 2).run()
    assert (result["code"], result["summary"]["rows"]) == (6, 5)
    calls = fake.calls()
    assert len(calls) == 5
    assert "--part 2/3" in calls[0] and "--assume-canary" in calls[0] and "--canary " not in calls[0]
    assert [[word for word in call.split() if word.startswith("--resume")] for call in calls] == (
        [["--resume-or-begin"]] + [["--resume"]] * 4)
    assert read_json(table.work.state("result", 2)) == result


def test_an_attempt_gives_up_after_a_bounded_number(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    table.freeze()
    fake = FakeBroadside(table.directory, *[3] * 50)
    with pytest.raises(FleetError, match="part 2: code 3: do this") as error:
        PartAttempt(sending(table, fake), 2).run()
    assert error.value.exit_code == 3 and len(fake.calls()) == 5
    assert sending(table, fake).cancelled() is None


@pytest.mark.parametrize("code", [2, 4])
def test_a_wrong_campaign_is_cancelled(table: Table, code: int) -> None:
    table.freeze()
    fake = FakeBroadside(table.directory, code)
    common = sending(table, fake)
    with pytest.raises(FleetError):
        PartAttempt(common, 1).run()
    assert common.cancelled() == {"start": "s", "part": 1, "code": code,
                                  "message": f"code {code}: do this"}
    assert "--canary 30" in fake.calls()[0]
    # No other part starts, and a later start of the driver is not bound by it.
    with pytest.raises(FleetError, match="part 1: code"):
        PartAttempt(common, 2).run()
    assert len(fake.calls()) == 1
    assert sending(table, fake, start="t").cancelled() is None


def test_a_script_that_is_gone_is_not_the_campaigns_fault(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine whose mount is gone: the shell's own exit code is 2."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    table.freeze()
    common = sending(table, FakeBroadside(table.directory, 0))
    table.work.script.unlink()
    with pytest.raises(FleetError) as error:
        PartAttempt(common, 2).run()
    assert error.value.exit_code == 5 and common.cancelled() is None


def test_a_part_waits_for_its_share(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.freeze()
    fake = FakeBroadside(table.directory, 0)
    common = sending(table, fake, rated=True)
    waits = []

    def sleep(_: float) -> None:
        waits.append(read_json(table.work.state("status", 2)))
        if len(waits) == 3:
            write_json(common.rate_file, {"sequence": 9, "total": 5, "shares": {"2": 5}})

    monkeypatch.setattr(time, "sleep", sleep)
    write_json(common.rate_file, {"sequence": 8, "total": 5, "shares": {"1": 5}})
    PartAttempt(common, 2).run()
    assert waits[0] and waits[0]["state"] == "waiting"
    assert "--rate 5" in fake.calls()[0] and len(fake.calls()) == 1


def test_a_part_that_waits_says_why(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.freeze()
    fake = FakeBroadside(table.directory, 7, 7, 0)
    reasons = []
    monkeypatch.setattr(
        time, "sleep", lambda _: reasons.append((read_json(table.work.state("status", 2)) or {}).get("reason")))
    PartAttempt(sending(table, fake), 2).run()
    assert reasons.count("code 7: do this") == 2


def test_what_is_left_of_an_earlier_start_ends(table: Table) -> None:
    """It has a share of a rate that is divided again without it."""
    table.freeze()
    fake = FakeBroadside(table.directory, 0)
    fake.path.write_text(
        "#!/bin/sh\n"
        f"trap 'echo ended >>{table.directory}/calls; exit 3' TERM\n"
        f"echo begun >>{table.directory}/calls\nwhile :; do sleep 0.05; done\n")
    common = sending(table, fake)
    write_json(common.start_file, {"start": common.start})
    errors: list[FleetError] = []

    def send() -> None:
        try:
            PartAttempt(common, 2).run()
        except FleetError as error:
            errors.append(error)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    wait_for(lambda: (table.directory / "calls").exists())
    write_json(common.start_file, {"start": "newer"})
    thread.join(20)
    assert not thread.is_alive() and errors[0].exit_code == 7
    assert fake.calls() == ["begun", "ended"]
    assert read_json(table.work.state("status", 2))["state"] == "running"  # It overwrites no newer status.
