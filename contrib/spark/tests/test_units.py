"""What can be decided without Spark and without a simulator."""

from __future__ import annotations

import datetime
import decimal
import os
import random
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pytest

from conftest import token, wait_for

from broadside_fleet import child
from broadside_fleet.campaign import filter_columns, template_columns
from broadside_fleet.driver import canary_passed
from broadside_fleet.errors import FleetError, task_message
from broadside_fleet.exit_codes import Decision, decide
from broadside_fleet.files import read_json, replacing
from broadside_fleet.metrics import MetricsEndpoint, MetricsFile, metrics_target, metrics_text
from broadside_fleet.progress import duration, progress_line
from broadside_fleet.rate import RateDivider, read_share
from broadside_fleet.rows import check_columns, lines_of
from broadside_fleet.tokens import is_blank, normalized, part_of, token_hash
from broadside_fleet.work import Work


def test_tokens_are_read_as_broadside_reads_them() -> None:
    assert normalized("AB12") == "ab12"
    assert normalized(" \tab12\r") == "ab12"
    assert normalized("<ab12 CD34>") == "ab12cd34"
    assert normalized("a" * 200) == "a" * 200
    for text in ("", "abc", "a" * 202, "ab 12", "xy", "ab12\n", "<>", "ab\u0131\u0131", "１２"):
        assert normalized(text) is None, text
    assert is_blank(" \t") and not is_blank("-")


def test_the_part_of_a_token_never_changes() -> None:
    # CRC-32's check value, so that parts that other machines froze fit.
    assert token_hash("123456789") == 0xCBF43926
    assert part_of(0xCBF43926, 64) == 0xCBF43926 % 64 + 1
    counts = [0] * 64
    for number in range(64_000):
        counts[part_of(token_hash(token(number)), 64) - 1] += 1
    assert 800 < min(counts) and max(counts) < 1200


def test_exit_codes_decide() -> None:
    assert [decide(code).value for code in range(8)] == [
        "finished", "retry", "cancel", "retry", "cancel", "retry", "finished", "wait"]
    # Killed, and what no version documents.
    assert decide(-9) is decide(125) is Decision.RETRY


def test_columns_of_templates() -> None:
    assert template_columns("{{ name }} {{badge:int}} {{city|your {town}}} {{{{not}} {{a:b:bool}}") == [
        "name", "badge", "city", "a:b"]
    assert template_columns("{{open") == []


def test_columns_of_conditions() -> None:
    assert filter_columns(["country=FR", " app >= 5.2.0", '"a ""=b"  != "x>y"']) == ["country", "app", 'a "=b']
    assert filter_columns("n != 1") == ["n"] and filter_columns([]) == []


def test_cells_have_one_text() -> None:
    batch = pa.RecordBatch.from_pydict({
        "token": ["AA", None, " ", "x,\"y\"", "<bb bb>"],
        "n": pa.array([1, 2, 3, None, -5], pa.int64()),
        "b": [True, False, True, None, False],
        "d": pa.array([decimal.Decimal("1.10")] * 5), "day": [datetime.date(2026, 1, 2)] * 5,
        "s": ["a;b", "", "", " c", "é"]})
    lines = lines_of(batch, 1, frozenset((0, 1))).to_pylist()
    assert [line["line"] for line in lines] == [
        'aa,1,true,1.10,2026-01-02,"a;b"\n', '"x,""y""",,,1.10,2026-01-02," c"\n',
        "bbbb,-5,false,1.10,2026-01-02,é\n", "blank", "malformed"]
    assert [(line["part"], line["hash"]) for line in lines[-2:]] == [(0, 2), (0, 1)]
    assert len(lines_of(batch, 1, frozenset())) == 0


def test_columns_that_have_no_one_text_are_refused() -> None:
    schema = pa.schema([("Token", pa.string()), ("f", pa.float64()), ("A", pa.string()),
                        ("a", pa.string())])
    assert check_columns(schema, ["token", "a"]) == ["Token", "a"]
    for columns, message in (
        (["f"], "of type double"), (["x"], "not in the input"), (["Token", "F"], "double"),
    ):
        with pytest.raises(FleetError, match=message) as error:
            check_columns(schema, columns)
        assert error.value.exit_code == 2
    ambiguous = pa.schema([("NAME", pa.string()), ("Name", pa.string())])
    with pytest.raises(FleetError, match="more than once"):
        check_columns(ambiguous, ["name"])


def test_files_are_complete_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        with replacing(tmp_path / "a") as file:
            file.write(b"half")
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "b").write_text("[1")
    with pytest.raises(FleetError) as error:
        read_json(tmp_path / "b")
    assert error.value.exit_code == 5


def test_a_rate_is_never_exceeded_and_never_left_unused(tmp_path: Path) -> None:
    """Parts start, apply shares late, end and die in any order: what they may use stays below the total."""
    random.seed(20)
    for _ in range(60):
        total = random.choice([1, 3, 50, 1000])
        divider = RateDivider(total)
        waiting: set[int] = set()
        applied: dict[int, tuple[int, int]] = {}  # of running parts: number and share
        file = tmp_path / "rate.json"
        file.unlink(missing_ok=True)
        ended: set[int] = set()
        for _ in range(300):
            part = random.randint(1, 8)
            if part not in ended | applied.keys() and random.random() < 0.2:
                waiting.add(part)
            if part in waiting | applied.keys():
                found = read_share(file, part) if file.exists() else None
                if found:
                    applied[part] = found
                    waiting.discard(part)
            if part in applied and random.random() < 0.03:
                del applied[part]
                ended.add(part)
            assert sum(share for _, share in applied.values()) <= total
            if random.random() < 0.5:
                divider.write(file, divider.divide({
                    **{part: 0 for part in waiting}, **{k: v[0] for k, v in applied.items()}}))
            assert len(divider.published) <= 8
            assert all(len(shares) < 310 for shares in divider.published.values())
            if len(ended) == 8:
                break
        for _ in range(20):
            divider.write(file, divider.divide({
                **{part: 0 for part in waiting}, **{k: v[0] for k, v in applied.items()}}))
            for part in (waiting | applied.keys()) - ended:
                found = read_share(file, part)
                if found:
                    applied[part] = found
                    waiting.discard(part)
        if applied:
            used = sum(share for _, share in applied.values())
            assert total - len(applied) < used <= total


@pytest.mark.parametrize("text,message", [
    ("\nAn exception was thrown from the Python worker.\nTraceback (most recent call last):\n  File \"x.py\", line 1\n"
     "    raise OSError\nOSError: [Errno 28] No space left on device: '/w'\n", "[Errno 28] No space left on device: '/w'"),
    ("Job aborted due to stage failure: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
     "broadside_fleet.errors.FleetError: part 3: code 5\n\tat org.apache.spark.Executor.run(Executor.scala:1)\n"
     "Caused by: java.lang.RuntimeException: again\n", "part 3: code 5"),
    ("An error occurred while calling o98.collectToPython.\n: org.apache.spark.SparkException: [FAILED_READ_FILE] file x\n"
     "\tat org.apache.spark.Executor.run(Executor.scala:1)\nCaused by: java.lang.RuntimeException: no footer\n",
     "[FAILED_READ_FILE] file x"),
    ("\n[PARSE_SYNTAX_ERROR] Syntax error at end of input. (line 1, pos 6)\n\n== SQL ==\nnope =\n",
     "[PARSE_SYNTAX_ERROR] Syntax error at end of input. (line 1, pos 6)"),
    ("", "RuntimeError")])
def test_what_ended_a_job_in_one_line(text: str, message: str) -> None:
    assert task_message(RuntimeError(text)) == message


def test_progress_in_one_line() -> None:
    manifest = {"rows": 3000, "files": [{"part": n, "rows": 1000 * (n > 1)} for n in (1, 2, 3, 4)]}
    line = progress_line(
        manifest, [{"summary": {"rows": 1000, "remaining": 0, "rejected": 7}}],
        [{"state": "running", "progress": {"settled": 500, "rate": 250, "rejected": 3}},
         {"state": "waiting", "progress": {}}])
    assert line == (
        "parts 1 of 3, running 1, rows 1,500 of 3,000 (50.0%), 250 per second, rejected 10, ETA 6s")
    nearly = progress_line({"rows": 3000, "files": []}, [{"summary": {"rows": 3000, "remaining": 1}}], [])
    assert "rows 2,999 of 3,000 (99.9%)" in nearly
    assert [duration(seconds) for seconds in (59, 61, 3661)] == ["59s", "1m01s", "1h01m"]


def test_metrics_of_all_parts() -> None:
    """Their sums are the campaign's, part by part."""
    manifest = {"campaign_id": "c0ffee", "rows": 3000, "files": [
        {"part": n, "rows": 1000 * (n > 1)} for n in (1, 2, 3, 4)]}
    text = metrics_text(
        manifest, {2: {"summary": {"rows": 1000, "accepted": 993, "rejected": 7}}},
        {3: {"state": "running", "progress": {"accepted": 496, "rejected": 4, "in_flight": 12}},
         4: {"state": "waiting", "progress": {}}}, 2500.5)
    values: dict[str, float] = {}
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            kinds[line.split()[2]] = line.split()[3]
        elif line.startswith("# HELP "):
            helped.add(line.split()[2])
        else:
            sample, value = line.rsplit(" ", 1)
            assert sample not in values, sample
            values[sample] = float(value)
    assert {sample.split("{")[0] for sample in values} == kinds.keys() == helped
    assert kinds["broadside_rows_settled_total"] == "counter"

    def total(name: str, *labels: str) -> float:
        return sum(value for sample, value in values.items()
                   if sample.startswith(name) and all(label in sample for label in labels))

    assert total("broadside_list_rows") == 3000
    assert total("broadside_rows_settled_total") == 1500
    assert total("broadside_rows_settled_total", 'state="rejected"') == 11
    assert total("broadside_rows_settled_total", 'fleet_part="3"') == 500
    assert total("broadside_requests_in_flight") == 12
    assert [total("broadside_fleet_parts", f'"{state}"') for state in ("finished", "running", "waiting")] == [
        1, 1, 1]
    assert total("broadside_fleet_parts") == 3
    assert values["broadside_rate_limit_requests_per_second"] == 2500.5
    assert "rate_limit" not in metrics_text(manifest, {}, {}, None)


def test_a_part_that_has_not_reported_progress_has_no_samples_of_rows() -> None:
    """A counter that falls to 0 would count all rows of a part again when its task starts again."""
    manifest = {"campaign_id": "c0ffee", "rows": 2000, "files": [{"part": n, "rows": 1000} for n in (1, 2)]}
    text = metrics_text(
        manifest, {},
        {1: {"state": "running", "progress": {}}, 2: {"state": "running", "progress": {"accepted": 0}}}, None)
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    of_rows = [line for line in samples if "rows_settled" in line or "in_flight" in line]
    assert {part for line in of_rows for part in re.findall('fleet_part="(.)"', line)} == {"2"}
    assert sum("list_rows" in line for line in samples) == 2
    assert 'broadside_fleet_parts{state="running"} 2' in samples


def test_each_sample_has_the_labels_of_the_campaign(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.frozen.mkdir()
    work.labels.write_text('list=a "b" \\c=d\nfleet_part=x\nteam=\n', encoding="utf-8")
    labels = work.read_labels()
    assert labels == {"list": 'a "b" \\c=d', "fleet_part": "x", "team": ""}
    text = metrics_text(
        {"campaign_id": "c0ffee", "rows": 9, "files": [{"part": 1, "rows": 9}]}, {},
        {1: {"state": "running", "progress": {"accepted": 4}}}, 5, labels)
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    for line in samples:
        assert 'list="a \\"b\\" \\\\c=d"' in line and 'team=""' in line, line
    # The part's own label takes precedence.
    assert any(line.startswith('broadside_rows_settled_total{fleet_part="1",') for line in samples)
    work.labels.write_text("")
    assert work.read_labels() == {}


def test_metrics_go_to_a_file_or_an_endpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.prom"
    target = metrics_target(str(path))
    assert isinstance(target, MetricsFile)
    before = os.umask(0o077)
    for text in ("one\n", "another\n"):
        target.write(text)
        assert path.read_text() == text and path.stat().st_mode & 0o777 == 0o644
    os.umask(before)
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.prom"]
    target = metrics_target(str(tmp_path / "none" / "metrics.prom"))
    for text in ("one\n", "another\n"):
        target.write(text)
    assert capsys.readouterr().err == (
        f"broadside_spark: warning: --metrics {tmp_path}/none/metrics.prom: can't be written:"
        " No such file or directory\n")
    for value, address in (("127.0.0.1:0", "127.0.0.1"), (":0", "127.0.0.1"), ("[::1]:0", "[::1]")):
        target = metrics_target(value)
        assert isinstance(target, MetricsEndpoint)
        for text in ("one\n", "another\n"):
            target.write(text)
            with urllib.request.urlopen(f"http://{address}:{target.port}/metrics") as response:
                assert response.read().decode() == text
                assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://{address}:{target.port}/")
    for value in ("127.0.0.1:http", ":", "127.0.0.1:65536", "192.0.2.1:1"):
        with pytest.raises(FleetError) as error:
            metrics_target(value)
        assert error.value.exit_code == 2 and "--metrics" in error.value.message


def test_a_child_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """In order: it receives SIGTERM, and may finish what it does."""
    script = (
        "import sys, time, pathlib; sys.path.insert(0, sys.argv[1]);"
        "from broadside_fleet import child;"
        "log = open(sys.argv[2], 'wb');"
        "p = child.start(['/bin/sh', '-c', 'trap \"echo ended; exit\" TERM; echo ready;"
        " while :; do sleep 0.05; done'], log);"
        "time.sleep(3600)")
    log = tmp_path / "log"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent.parent), str(log)])
    wait_for(lambda: log.exists() and "ready" in log.read_text(), parent)
    parent.kill()
    parent.wait()
    wait_for(lambda: "ended" in log.read_text())


COUNTING = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
print("ready", flush=True)
count = 0
while not os.path.exists(sys.argv[1]):
    if signal.sigtimedwait((signal.SIGTERM,), 0.05):
        count += 1
        print("signal", flush=True)
while signal.sigtimedwait((signal.SIGTERM,), 0):
    count += 1
print(count, "in all", flush=True)
"""


def test_a_child_receives_one_signal(tmp_path: Path) -> None:
    """From a process that ends it and is then killed with several threads: a second signal loses responses."""
    script = (
        "import pathlib, sys, threading, time; sys.path.insert(0, sys.argv[1]);"
        "from broadside_fleet import child;"
        "[threading.Thread(target=time.sleep, args=(3600,), daemon=True).start() for _ in range(8)];"
        "log = pathlib.Path(sys.argv[2]);"
        "process = child.start([sys.executable, '-c', *sys.argv[3:]], open(log, 'wb'));"
        "[time.sleep(0.05) for _ in iter(lambda: 'ready' in log.read_text(), True)];"
        "child.end(process)")
    log, go = tmp_path / "log", tmp_path / "go"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent.parent), str(log), COUNTING, str(go)])
    wait_for(lambda: log.exists() and "signal" in log.read_text(), parent)
    parent.kill()
    parent.wait()
    go.touch()
    wait_for(lambda: "in all" in log.read_text())
    assert "1 in all" in log.read_text(), log.read_text()


def test_a_child_ends_in_order_if_its_launcher_is_killed(tmp_path: Path) -> None:
    log, go = tmp_path / "log", tmp_path / "go"
    with open(log, "wb") as output:
        launcher = child.start([sys.executable, "-c", COUNTING, str(go)], output)
    wait_for(lambda: "ready" in log.read_text(), launcher)
    launcher.kill()
    launcher.wait()
    go.touch()
    wait_for(lambda: "1 in all" in log.read_text())


def test_a_child_ends_as_its_command_does(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as output:
        for command, code in (
            ("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", -9), ("kill -TERM $$", -15),
        ):
            assert child.start(["/bin/sh", "-c", command], output).wait() == code, command
        assert child.start(["/nowhere"], output).wait() == 1
    assert (tmp_path / "log").read_text() == (
        "broadside: --broadside /nowhere: can't be started: No such file or directory\n")


@pytest.mark.parametrize("word,accepted,passed", [
    ("pending", 1, False), ("refused", 1, False), ("passed", 1, True), ("passed", 0, False), ("assumed", 1, False),
    (None, 1, False)])
def test_other_parts_wait_for_the_word_of_the_canarys_part(
    word: str | None, accepted: int, passed: bool
) -> None:
    """A canary of which APNs has accepted no row, all suppressed or gone, proves nothing."""
    told = {"guards": None if word is None else {"canary": word}, "accepted": accepted}
    assert not canary_passed({}, {})
    assert canary_passed({3: {"progress": told}}, {2: {"summary": {}}}) == passed
    assert canary_passed({2: {"progress": {}}}, {3: {"summary": told}}) == passed
