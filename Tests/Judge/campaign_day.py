"""A campaign in all time zones with arms, a holdout, a filter, opt-outs, duplicates, dead tokens and a cap over earlier
ledgers. It is stopped and killed between and during its waves. Python's `zoneinfo` and `hashlib` and this file's own
implementation of the rules decide the expected outcome, arm and time of each row, and how often it is sent.

    campaign_day.py COMMAND FOLDER SEED ROWS NIGHTS STOPS [DAY AT]

The clock of the command stands still (libfaketime) until this program moves it. It moves it only while the command
waits for a wave, so the load of the machine does not matter. The server is `simulate`: its responses can be computed,
and its journal and deliveries show the requests. DAY and AT are the day and time of delivery; without them, the seed
chooses both. In odd seeds, devices are erased during the campaign; in even seeds, the ledger keeps no tokens. Prints
`sound: ...`.
"""
import collections
import csv
import datetime
import hashlib
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import zoneinfo

import stale_clocks
import zone_times
from zone_times import ZONES, utc

command, folder = map(os.path.abspath, sys.argv[1:3])
seed, row_count, night_count, stop_count = map(int, sys.argv[3:7])
choose = random.Random(seed)
os.chdir(folder)
LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
DAY_SECONDS = 86400
SALT = f"spring {seed}"
ARMS = [("holdout", 10), ("a", 30.25), ("b", 30), ("c", 29.75)]
COLLAPSE = {"a": "from-a", "b": "from-b", "c": ""}
# Counted back from the campaign, these times never end exactly at an earlier ledger.
CAP, PERIOD, DEAD_FOR = 2, 20 * DAY_SECONDS - 3600, 12 * DAY_SECONDS - 3600
UNREGISTERED, BAD_TOKEN = 0.02, 0.004
keeps_tokens = seed % 2 == 1
# Seconds after which a process counts as hanging, even on a busy machine.
LIMIT = 900
history = []


def fail(*words):
    print("seed", seed, "failed:", *words, "rule", rule, "history", history)
    sys.exit(1)


def check(condition, *words):
    if not condition: fail(*words)


# The rules, as the documentation describes them.


def answer(token):
    """Returns the simulator's response: status, reason and timestamp."""
    mask = (1 << 64) - 1
    value = (int(token[:16].ljust(16, "0"), 16) ^ seed) + 0x9E3779B97F4A7C15 & mask
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    value ^= value >> 31
    share = value / 2**64
    if share < BAD_TOKEN: return 400, "BadDeviceToken", ""
    if share < BAD_TOKEN + UNREGISTERED: return 410, "Unregistered", str(1700000000000 + value % 86400000)
    return 200, "", ""


def arm_of(token):
    digest = hashlib.sha256(f"{SALT}:{token}".encode()).digest()
    position, end = int.from_bytes(digest[:8], "big") * 10_000 >> 64, 0
    for name, percent in ARMS:
        end += round(percent * 100)
        if position < end: return name
    raise AssertionError("the shares add up to 100")


def matches(country, age):
    """Whether a row matches --where 'country=FR,BE,"Bonaire, Saba"' and --where 'age>=18'."""
    try:
        return country in ("FR", "BE", "Bonaire, Saba") and float(age) >= 18
    except ValueError:
        return False


# The list, the opt-outs, and the earlier nights. Their responses make tokens dead, or count towards the cap.


def write_table(name, head, lines):
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([head, *lines])


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


devices = ["%064x" % choose.getrandbits(256) for _ in range(row_count)]
opted_out = set(choose.sample(devices, max(1, row_count // 30)))
rows = []
for number in range(row_count):
    token = devices[number] if not rows or choose.random() > 0.06 else rows[choose.randrange(len(rows))][0].lower()
    if choose.random() < 0.1: token = token.upper()
    if choose.random() < 0.01: token = choose.choice(["no token", token[:63], ""])
    zone = choose.choice(ZONES)
    if choose.random() < 0.03: zone = choose.choice(zone_times.NO_ZONES)
    country = choose.choice(["FR", "FR", "BE", "BE", "Bonaire, Saba", "DE", ""])
    age = choose.choice(["18", "30", "44.5", "1.8e1", "99", "18.0", "17.9", "17", "", "old"])
    rows.append((token, zone, country, age))
write_table("list.csv", ("token", "tz", "country", "age"), rows)
write("opt-outs.txt", "".join(token + "\n" for token in sorted(opted_out)))
write("payload.json", '{"aps":{"alert":"hi"}}')
for name in ("a", "b"): write(name + ".json", json.dumps({"aps": {"alert": "To " + name}}))
day = sys.argv[7] if len(sys.argv) > 7 else zone_times.DAYS[seed % len(zone_times.DAYS)]
rule, options = zone_times.choose_rule(choose, day)
start = zone_times.choose_start(choose, day)
if len(sys.argv) > 8:
    rule = {"day": day, "at": sys.argv[8], "late": "next-day", "quiet": None, "default": "Asia/Kolkata"}
    options = ["--zone-column", "tz", "--deliver-at", rule["at"], "--on", day, "--late", rule["late"],
               "--zone-default", rule["default"]]
split = ["--split", ",".join(f"{name}={percent}" for name, percent in ARMS), "--split-salt", SALT]
options += split + [
    "--arm", "a=a.json", "--arm", "b=b.json", "--arm-collapse-id", "a=from-a", "--arm-collapse-id", "b=from-b",
    "--where", 'country=FR,BE,"Bonaire, Saba"', "--where", "age>=18", "--suppress", "opt-outs.txt",
    "--duplicates", "skip", "--skip-dead", "nights", "--dead-for", f"{DEAD_FOR // 3600}h",
    "--cap", f"{CAP}/{PERIOD // 3600}h", "--history", "nights", "--max-invalid", "100"]
if not keeps_tokens: options += ["--keep-tokens", "no"]


class Server:
    """The simulator, while it runs. It records the requests."""

    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            ["timeout", "3000", command, "simulate", "--listen", "127.0.0.1:0", "--state", "state", "--journal",
             name + ".journal", "--deliveries", name + ".deliveries", "--latency", "5ms", "--seed", str(seed),
             "--unregistered", str(UNREGISTERED), "--bad-token", str(BAD_TOKEN)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.endpoint = self.process.stdout.readline().split()[-1]

    def end(self):
        """Ends the simulator. Returns the number of requests for each token, and its deliveries with their collapse
        IDs."""
        self.process.terminate()
        self.process.wait()
        with open(self.name + ".journal") as file:
            next(file)
            requests = collections.Counter(line.split(",", 5)[4] for line in file)
        deliveries = collections.defaultdict(list)
        with open(self.name + ".deliveries", newline="") as file:
            for line in csv.DictReader(file): deliveries[line["token"]].append(line["collapse_id"])
        return requests, deliveries


def set_clock(second):
    """Moves the clock of the command. The clock's file is complete at any time."""
    write("clock.new", datetime.datetime.fromtimestamp(second, utc).strftime("%Y-%m-%d %H:%M:%S"))
    os.rename("clock.new", "clock")


def begin(words, errors):
    stale_clocks.remove()
    environment = dict(
        os.environ, TZ="UTC", LD_PRELOAD=LIBRARY, FAKETIME_TIMESTAMP_FILE=os.path.abspath("clock"),
        FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1", NO_FAKE_STAT="1", SWIFT_BACKTRACE="enable=no")
    # `timeout` comes first, because libfaketime changes the environment of the first process that loads it.
    with open(errors, "w") as file:
        return subprocess.Popen(
            ["timeout", "2000", command, "send", "--payload", "payload.json", "--certificate", "state/client.pem",
             "--private-key", "state/client.key", "--topic", "com.example.Broadside", "--ca-file", "state/ca.pem",
             "--progress", "none", *words],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)


def broadside(*words, codes=(0,)):
    done = subprocess.run([command, *words], capture_output=True, text=True)
    check(done.returncode in codes, words, "exit", done.returncode, done.stderr[-600:])
    return done.stdout


def send_nights():
    """Sends the earlier nights. Returns when each token was accepted, and when it was last refused as dead."""
    os.mkdir("nights")
    server = Server("nights-server")
    accepted, dead, expected = collections.defaultdict(list), {}, collections.Counter()
    for night in range(night_count):
        at = start - (night_count - night) * DAY_SECONDS * 30 // night_count + choose.randrange(-1800, 1800)
        chosen = choose.sample(devices, row_count // (20 if row_count < 100_000 else 40))
        write("night.txt", "".join(token + "\n" for token in chosen))
        set_clock(at)
        has_arms = choose.random() < 0.5
        process = begin(
            ["--tokens", "night.txt", "--endpoint", server.endpoint, "--ledger", f"nights/{night:02}",
             *(split if has_arms else [])], "night.errors")
        check(process.wait() == 0, "night", night, open("night.errors").read()[-600:])
        for token in chosen:
            if has_arms and arm_of(token) == "holdout": continue
            expected[token] += 1
            status = answer(token)[0]
            if status == 200: accepted[token].append(at)
            if status == 410: dead[token] = at
    requests, _ = server.end()
    check(requests == expected, "the nights sent", sum(requests.values()), "requests, not", sum(expected.values()))
    return accepted, dead


def expect(accepted, dead):
    """Returns the expected state, reason and arm of each row, and its zone if it is sent."""
    expected, sent = [], set()
    times = {name: zone_times.due(zoneinfo.ZoneInfo(name), rule, start) for name in ZONES}
    for text, zone, country, age in rows:
        token = text.lower()
        is_due = matches(country, age)
        if len(token) != 64:
            expected.append(("invalid", "MalformedToken", "", None) if is_due else ("skipped", "Filtered", "", None))
            continue
        arm = arm_of(token)
        name = zone if zone in times else rule["default"]
        reason = ("Suppressed" if token in opted_out else "Duplicate" if token in sent
                  else "Filtered" if not is_due else "DeadToken" if dead.get(token, 0) >= start - DEAD_FOR
                  else "FrequencyCap" if sum(at >= start - PERIOD for at in accepted.get(token, ())) >= CAP
                  else "Holdout" if arm == "holdout" else None)
        if reason is None and name is not None and times[name] is None: reason = "Late"
        if reason:
            expected.append(("skipped", reason, arm, None))
        elif name is None:
            expected.append(("invalid", "BadZone", arm, None))
        else:
            sent.add(token)
            status, reason, _ = answer(token)
            expected.append(("accepted" if status == 200 else "rejected", reason, arm, name))
    return expected, times


class Day:
    """The runs of the campaign. Moves the clock from wave to wave, and records the times at which the rows of each zone
    may have been sent."""

    def __init__(self, endpoint, sizes, times):
        self.words = [
            "--tokens", "list.csv", "--endpoint", endpoint, "--ledger", "ledger", "--summary", "summary",
            "--connections", "2", "--reactors", choose.choice(["1", "2"]), *options]
        self.zones = {name: zoneinfo.ZoneInfo(name) for name in sizes}
        self.sizes, self.times = sizes, times
        self.left = set(sizes)
        self.sent_at = collections.defaultdict(set)
        self.now, self.process = start, None
        self.forgotten = set()
        self.expected = []
        # Rows that may have been sent when their device was erased.
        self.doubtful = set()
        self.may_be_settled = False

    # The process.

    def ask(self, request):
        """Sends a request to the control socket. Returns the response line, or None if there is none."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            try:
                connection.connect("ledger/control")
                connection.sendall(request.encode() + b"\n")
                return connection.makefile().readline()
            except OSError:
                return None

    def status(self):
        text = self.ask("status")
        return json.loads(text) if text else None

    def run(self):
        """Returns the number of the ledger's latest run, and whether the run has a segment. It has none before its wave
        begins."""
        try:
            number = json.load(open("ledger/manifest.json"))["epochs"][-1]["number"]
        except (OSError, IndexError):
            return 0, False
        return number, os.path.exists("ledger/segment-%04d-00" % number)

    def is_waiting(self, first):
        """Whether the process waits for a wave, in the run `first` or a later one."""
        number, has_segment = self.run()
        if number < first or has_segment: return False
        status = self.status()
        return bool(status) and status["phase"] == "waiting" and self.run() == (number, False)

    def wait(self, first):
        """Waits until the process waits for a wave, or ends."""
        begun = time.monotonic()
        while self.process.poll() is None:
            if self.is_waiting(first): return True
            # A stop during a wave may come after the wave's last row is settled. Then no row is due.
            if self.may_be_settled and time.monotonic() > begun + 5 and self.is_waiting(first - 1): return True
            check(time.monotonic() < begun + LIMIT, "it neither waits nor ends", first, self.run(), self.status())
            time.sleep(0.01)
        return False

    def start(self, more):
        number, _ = self.run()
        history.append(("start", self.now, *more))
        set_clock(self.now)
        self.process = begin(self.words + more, "errors")
        # If rows are due, one run sends them. The run that waits is the next one.
        return number + (2 if self.due() else 1)

    # The rules.

    def time_of(self, name, now):
        time = self.times[name]
        return time if now <= time else zone_times.settle(self.zones[name], now, rule["quiet"])

    def due(self):
        return {name for name in self.left if self.time_of(name, self.now) <= self.now}

    def next(self):
        """Returns the next time at which the process sends rows, or checks for them."""
        return min((time for name in self.sizes if (time := self.time_of(name, self.now)) > self.now), default=None)

    # The day.

    def go(self, more, stops):
        """Runs the campaign to its end. `stops` are pairs: the number of waves before a stop, and the way in which it
        stops."""
        first, waves = self.start(more), 0
        while True:
            due = self.due()
            for name in due: self.sent_at[name].add(self.now)
            is_inside, how = False, None
            if stops and stops[0][0] <= waves:
                is_inside, how = stops[0][1]
                is_inside = is_inside and sum(self.sizes[name] for name in due) >= 10 and waves > 0
            if is_inside: is_inside = self.await_half(first, due)
            if not is_inside:
                if not self.wait(first):
                    return self.process.wait()
                self.left -= due
                check(self.left, "it waits, and all was sent", self.status())
            if how:
                stops.pop(0)
                self.stop(is_inside, how, len(stops))
                first = self.start(["--resume"])
                waves += 1
                continue
            time_of_wave = self.next()
            check(time_of_wave, "it waits, and nothing is due later", self.status())
            is_slow = bool(stops) and stops[0][0] <= waves + 1 and stops[0][1][0]
            self.move(time_of_wave, is_slow)
            first = self.run()[0] + 1
            set_clock(self.now)
            waves += 1

    def move(self, to, is_slow):
        """Moves the clock to the next wave, sometimes with a stop one second before it."""
        number, has_segment = self.run()
        if choose.random() < 0.2 and to - 1 > self.now:
            set_clock(to - 1)
            time.sleep(0.3)
            check(self.run() == (number, has_segment), "it began a wave a second too early", self.now, to)
        self.now, self.may_be_settled = to, False
        rows = sum(self.sizes[name] for name in self.due())
        self.ask(f"rate {max(10, rows // 2)}" if is_slow else "rate unlimited")
        history.append(("wave", self.now, rows))

    def await_half(self, first, due):
        """Waits until a part of a wave is sent. Returns False if the whole wave is sent."""
        before, rows = (self.status() or {}).get("settled", 0), sum(self.sizes[name] for name in due)
        while self.process.poll() is None and not self.is_waiting(first):
            settled = (self.status() or {}).get("settled", 0)
            if settled > before + rows // 10: return True
            time.sleep(0.01)
        return False

    def stop(self, is_inside, how, more):
        """Stops the process. Waves may begin before it starts again, if enough waves are left for `more` stops."""
        history.append(("inside" if is_inside else "between", how))
        if how == "kill": os.killpg(self.process.pid, signal.SIGKILL)
        elif how == "signal": self.process.terminate()
        else: self.ask("stop")
        self.may_be_settled = is_inside
        code = self.process.wait()
        check(code == (-9 if how == "kill" else 3), "stopped by", how, "exit", code, open("errors").read()[-600:])
        later = self.now + choose.randrange(60, 5 * 3600)
        waves = {self.time_of(name, later) for name in self.left}
        if choose.random() < 0.5 and sum(wave > later for wave in waves) > more + 1: self.now = later
        if keeps_tokens and choose.random() < 0.6: self.forget()

    def forget(self):
        """Erases devices while the campaign is stopped. They stay in the campaign's list, but get nothing more."""
        some = choose.sample(devices, max(1, row_count // 200))
        self.forgotten.update(some)
        self.expect_nothing_more(set(some))
        write("erase.txt", "".join(token + "\n" for token in some))
        before = counts_of("ledger")
        broadside("ledger", "forget", "--tokens", "erase.txt", "--ledger", "ledger")
        check(counts_of("ledger") == before, "the erasure changed", before, counts_of("ledger"))
        history.append(("forget", len(some)))

    def expect_nothing_more(self, erased):
        """Changes what is expected of the rows of devices that are about to be erased. Rows that were not sent are
        skipped. Rows that may have been sent are unknown, and stay so."""
        open_rows = csv.DictReader(io.StringIO(broadside(
            "ledger", "export", "--state", "remaining", "--state", "in-doubt", "--state", "unknown",
            "--ledger", "ledger")))
        for row in open_rows:
            number = int(row["line"]) - 2
            if row["token"].lower() not in erased: continue
            if row["state"] == "remaining" or row["state"] == "in-doubt" and not self.expected[number][3]:
                self.expected[number] = ("skipped", "Suppressed", "", None)
            else:
                self.doubtful.add(number)
                arm = row["arm"] if row["state"] == "unknown" else ""
                self.expected[number] = ("unknown", "ConnectionLost", arm, None)


def counts_of(ledger):
    """Returns all counts of a ledger, including those of its arms."""
    return json.loads(broadside("ledger", "stats", "--json", "--ledger", ledger))


def judge_rows(day, expected, requests, unknown, in_kill):
    """Compares each row of the export. Returns the rows that are unknown. `unknown` are rows that were unknown before,
    and are now sent a second time: then no row may be unknown."""
    found = csv.reader(io.StringIO(broadside("ledger", "export", "--ledger", "ledger")))
    head = next(found)
    place = {name: head.index(name) for name in head}
    columns = [place[name] for name in ("line", "token", "state", "reason", "arm", "status", "apns_timestamp_ms")]
    settled_at, now_unknown, number = place["settled_at_ms"], set(), -1
    for number, fields in enumerate(found):
        check(number < row_count, "more rows than the list has")
        line, token, state, reason, arm, status, stamp = (fields[column] for column in columns)
        text, (want_state, want_reason, want_arm, zone) = rows[number], expected[number]
        what = (f"row {number}", text, "expected", expected[number], "found", fields)
        check(int(line) == number + 2, "another line", *what)
        check(arm == want_arm, "another arm", *what)
        lower = text[0].lower()
        check(token.lower() == lower or lower in day.forgotten and token.startswith("forgotten-"), "token", *what)
        if state == "unknown" and in_kill and number not in day.doubtful:
            now_unknown.add(number)
            continue
        check((state, reason) == (want_state, want_reason), *what)
        if zone is None: continue
        want = answer(lower)
        check((status, stamp) == (str(want[0]), want[2]), "another answer", want, *what)
        second = int(fields[settled_at]) / 1000
        if number in unknown:
            check(second >= day.times[zone] and not zone_times.inside(day.zones[zone], second, rule["quiet"]),
                  "sent again at a wrong time", *what)
        else:
            check(second in day.sent_at[zone], "sent at", second, "not in", day.sent_at[zone], *what)
    check(number + 1 == row_count, "only", number + 1, "rows")
    return now_unknown


def main():
    accepted, dead = send_nights()
    expected, times = expect(accepted, dead)
    sizes = collections.Counter(zone for *_, zone in expected if zone)
    server = Server("server")
    day = Day(server.endpoint, sizes, times)
    day.expected = expected
    waves = len(set(times[zone] for zone in sizes))
    # In each group of five stops: two kills and three other stops, in any order.
    ways = (["kill", "signal", "kill", "stop", choose.choice(["signal", "stop"])] * (stop_count // 5 + 1))[:stop_count]
    choose.shuffle(ways)
    moments = sorted(choose.randrange(max(1, waves * 2 // 3)) for _ in ways)
    stops = [(moment, (choose.random() < 0.6, how)) for moment, how in zip(moments, ways)]
    code = day.go([], stops)
    check(code in (0, 6), "exit", code, open("errors").read()[-600:])
    broadside("ledger", "verify", "--ledger", "ledger")
    unknown = judge_rows(day, expected, None, set(), True)
    was_killed = ("inside", "kill") in history or ("between", "kill") in history
    check(bool(unknown or day.doubtful) == (code == 6) and (was_killed or not unknown), len(unknown),
          "rows are unknown, exit", code)
    if unknown:
        day.left = {expected[number][3] for number in unknown} - {None}
        code = day.go(["--resume", "--retry", "unknown"], [])
        check(code == (6 if day.doubtful else 0), "the unknown rows: exit", code, open("errors").read()[-600:])
        left = judge_rows(day, expected, None, unknown, False)
        check(not left, left, "are still unknown")
    judge_requests(server, expected, unknown, {rows[number][0].lower() for number in day.doubtful})
    judge_counts(expected, times, sizes)
    judge_erasure(day, expected)
    counts = collections.Counter(reason or state for state, reason, _, _ in expected)
    arms = collections.Counter(arm for _, _, arm, zone in expected if zone)
    print("sound:", json.dumps({
        "seed": seed, "rule": rule, "rows": counts, "sent": arms, "waves": waves, "unknown": len(unknown),
        "stops": [event for event in history if event[0] in ("inside", "between", "forget")]}))


def judge_requests(server, expected, unknown, doubtful):
    """Compares the requests that the server received: one for each row, with the headers of its arm; at most two for
    rows that were unknown. The tokens `doubtful` were erased when they may have been sent: at most one for these."""
    requests, deliveries = server.end()
    wanted = collections.Counter(rows[number][0].lower() for number, entry in enumerate(expected) if entry[3])
    again = collections.Counter(rows[number][0].lower() for number in unknown if expected[number][3])
    for token in doubtful: check(requests.pop(token, 0) <= 1, "an erased device was sent again:", token)
    check(set(requests) == set(wanted), "other tokens were sent:", list(set(requests) ^ set(wanted))[:5])
    for token, count in wanted.items():
        check(count <= requests[token] <= count + again[token], token, "was sent", requests[token], "times")
        is_accepted = answer(token)[0] == 200
        check(deliveries[token] == [COLLAPSE[arm_of(token)]] * (requests[token] if is_accepted else 0), token,
              "arrived as", deliveries[token])


def judge_counts(expected, times, sizes):
    """Compares the counts of the summary, of the ledger and of its arms, and the waves."""
    summary, statistics = json.load(open("summary")), counts_of("ledger")
    states = collections.Counter(state for state, *_ in expected)
    by_arm = collections.defaultdict(collections.Counter)
    for state, _, arm, _ in expected:
        if arm: by_arm[arm][state] += 1
    for told in (summary, statistics):
        for state in ("accepted", "rejected", "invalid", "skipped", "failed", "unknown", "remaining"):
            check(told[state] == states[state], state, told, states)
        for arm, counts in by_arm.items():
            check({state: count for state, count in told["arms"][arm].items() if count and state in states} == counts,
                  arm, told["arms"][arm], counts)
    reasons = collections.Counter(reason for _, reason, _, _ in expected if reason)
    check(statistics["reasons"] == reasons, statistics["reasons"], reasons)
    waves = collections.defaultdict(dict)
    for zone, count in sizes.items(): waves[times[zone]][zone] = count
    want = [(at, at <= start, sum(zones.values()), sorted(zones)) for at, zones in sorted(waves.items())]
    told = [(int(datetime.datetime.fromisoformat(wave["at"]).timestamp()), wave["at_once"], wave["rows"],
             sorted(wave["zones"])) for wave in summary["waves"]]
    check(told == want, "waves", told, want)


def judge_erasure(day, expected):
    """Erases devices at the end. All counts stay, including those of arms, and no data of the devices is left."""
    judge = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forgotten_devices.py")
    sample = choose.sample(devices, min(row_count, 50 if row_count < 100_000 else 5))
    write("erase.txt", "".join(token + "\n" for token in sample))
    before = counts_of("ledger")
    shutil.copytree("ledger", "before", ignore=shutil.ignore_patterns("control"))
    broadside("ledger", "forget", "--tokens", "erase.txt", "--ledger", "ledger")
    check(counts_of("ledger") == before, "the erasure changed", before, counts_of("ledger"))
    broadside("ledger", "verify", "--ledger", "ledger")
    done = subprocess.run(
        [sys.executable, "-B", judge, "before", "ledger", "erase.txt", *([] if keeps_tokens else ["--absent"])],
        capture_output=True, text=True)
    check(done.returncode == 0, done.stdout[-600:], done.stderr[-600:])
    if keeps_tokens:
        gone = sum(int(word) for word in done.stdout.split()[1:4:2])
        check(gone > len(sample) // 2, "only", done.stdout)
    check(os.path.getsize("ledger/manifest.json") > 0, "no manifest")


main()
