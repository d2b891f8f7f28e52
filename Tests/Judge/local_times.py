"""A campaign at local times that is stopped and killed repeatedly during a simulated day. Python's `zoneinfo` decides
the expected outcome of each row, and the time before which it must not be sent.

    local_times.py COMMAND FOLDER SEED ROWS STOPS [REPORT]

Each trial has one list, one set of options and one day; clocks change on some of the days. The clock of the command is
libfaketime's. The server is `simulate`, whose journal shows the requests. Prints `sound: ...`."""
import collections, csv, datetime, json, os, random, signal, subprocess, sys, time, zoneinfo
import stale_clocks, zone_times
from zone_times import DAYS, NO_ZONES, ZONES, due, inside, shown, utc

command, folder, seed, row_count, stops = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
choose = random.Random(seed)
SPEED = 3600

# The list: its zones, some of them unknown or missing, some rows without a valid token, some excluded by a filter.
rows = []
zones = choose.sample(ZONES, choose.choice([3, 12, 38]))
for number in range(row_count):
    token = "%064x" % choose.getrandbits(256)
    if choose.random() < 0.02: token = "no token"
    zone = choose.choice(zones)
    if choose.random() < 0.05: zone = choose.choice(NO_ZONES)
    rows.append((token, zone, choose.choice(["a", "b", "c", "d"])))
with open(folder + "/list.csv", "w", newline="") as file:
    csv.writer(file).writerows([("token", "tz", "group")] + rows)
with open(folder + "/payload.json", "w") as file: file.write('{"aps":{"alert":"hi"}}')
day = choose.choice(DAYS)
start = zone_times.choose_start(choose, day)
rule, options = zone_times.choose_rule(choose, day)
options += ["--where", "group!=d", "--max-invalid", "100"]
if choose.random() < 0.3: options += ["--canary", "20"]
if choose.random() < 0.3: options += ["--rate", "2000"]

server = subprocess.Popen(
    ["timeout", "500", command, "simulate", "--listen", "127.0.0.1:0", "--state", folder + "/state",
     "--journal", folder + "/journal", "--latency", "20ms"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
endpoint = server.stdout.readline().split()[-1]
state = folder + "/state"
base = [
    command, "send", "--tokens", folder + "/list.csv", "--payload", folder + "/payload.json", "--certificate",
    state + "/client.pem", "--private-key", state + "/client.key", "--topic", "com.example.Broadside", "--endpoint",
    endpoint, "--ca-file", state + "/ca.pem", "--ledger", folder + "/ledger", "--progress", "none", "--summary",
    folder + "/summary", "--connections", "2", "--reactors", choose.choice(["1", "2"])] + options
library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
clock = start


def recorded():
    """Returns what the ledger's latest run has recorded; None before the first."""
    try:
        with open(folder + "/ledger/manifest.json", "rb") as file: return file.read()
    except FileNotFoundError: return None


def run(more, wait, how):
    """Runs the command from the time at which the last run ended. Returns its exit code, or None after a kill."""
    global clock
    stale_clocks.remove()
    moment = datetime.datetime.fromtimestamp(clock, utc).strftime("%Y-%m-%d %H:%M:%S")
    clock = float(int(clock))
    begun, before = time.monotonic(), recorded()
    environment = dict(
        os.environ, TZ="UTC", LD_PRELOAD=library, FAKETIME="@%s x%d" % (moment, SPEED),
        FAKETIME_DONT_FAKE_MONOTONIC="1", NO_FAKE_STAT="1", SWIFT_BACKTRACE="enable=no")
    # `timeout` comes first, because libfaketime changes the environment of the first process that loads it.
    process = subprocess.Popen(
        ["timeout", "400"] + base + more, env=environment, stderr=subprocess.PIPE, text=True,
        start_new_session=True)
    try:
        _, errors = process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        # Before a run has recorded itself, a signal kills it.
        while how == "signal" and process.poll() is None and recorded() == before: time.sleep(0.01)
        if how == "kill": os.killpg(process.pid, signal.SIGKILL)
        elif how == "signal": process.terminate()
        else: subprocess.run([command, "control", "--ledger", folder + "/ledger", "stop"], capture_output=True)
        _, errors = process.communicate()
    clock += (time.monotonic() - begun) * SPEED
    return (None if how == "kill" and process.returncode < 0 else process.returncode), errors


code, errors, ends = 3, "", []
while len(ends) <= stops and code in (None, 3):
    isLast = len(ends) == stops
    how = "end" if isLast else choose.choice(["kill", "signal", "stop", "kill"])
    begun = os.path.exists(folder + "/ledger/manifest.json")
    # Some stops come early in a process, some much later.
    wait = 300 if isLast else choose.choice([0.3, 0.7, 1.5, 4, 8]) * (0.5 + choose.random())
    code, errors = run(["--resume-or-begin"] if begun or ends else [], wait, how)
    ends.append((how, code))
server.terminate()
server.wait()

def fail(text):
    print("seed", seed, "failed:", text, rule, options, ends, errors[-600:])
    sys.exit(1)

if code not in (0, 6): fail("exit code %s" % code)
verified = subprocess.run([command, "ledger", "verify", "--ledger", folder + "/ledger"], capture_output=True, text=True)
if verified.returncode != 0: fail("verify: " + verified.stdout + verified.stderr)
exported = subprocess.run(
    [command, "ledger", "export", "--ledger", folder + "/ledger"], capture_output=True, text=True).stdout
found = list(csv.DictReader(exported.splitlines()))
if len(found) != len(rows): fail("%d rows of %d" % (len(found), len(rows)))
first = json.load(open(folder + "/ledger/manifest.json"))["firstStartedAtMilliseconds"] / 1000
requests = collections.Counter(line.split(",")[4] for line in open(folder + "/journal").read().splitlines()[1:])
counts = collections.Counter()
instants = {}
for index, ((token, zone, group), row) in enumerate(zip(rows, found)):
    if token == "no token" and group != "d": expected, at = ("invalid", "MalformedToken"), None
    elif group == "d": expected, at = ("skipped", "Filtered"), None
    else:
        name = zone if zone in ZONES else rule["default"]
        if name is None: expected, at = ("invalid", "BadZone"), None
        else:
            if name not in instants: instants[name] = due(zoneinfo.ZoneInfo(name), rule, first)
            at = instants[name]
            expected = ("skipped", "Late") if at is None else ("accepted", "")
    got = (row["state"], row["reason"])
    sent = requests[token]
    if expected[0] == "accepted":
        if got[0] == "unknown":
            if "kill" not in [how for how, _ in ends]: fail("row %d is unknown, and nothing was killed" % index)
            if sent > 1: fail("row %d was sent %d times" % (index, sent))
        elif got != expected or sent != 1: fail("row %d: %s, %d requests, not %s" % (index, got, sent, expected))
        settled = int(row["settled_at_ms"]) / 1000
        if settled < int(at): fail("row %d in %s: settled %f s before it was due" % (index, zone, at - settled))
        counts["unknown" if got[0] == "unknown" else "accepted"] += 1
        # The server responds within a tenth of a second here. A process may start during quiet hours.
        if got[0] == "accepted" and rule["quiet"] and name:
            moment = settled - 0.5 * SPEED
            if inside(zoneinfo.ZoneInfo(name), int(settled), rule["quiet"]) and inside(
                    zoneinfo.ZoneInfo(name), int(moment), rule["quiet"]):
                fail("row %d in %s: settled at %s, inside of quiet hours" % (index, zone, shown(zoneinfo.ZoneInfo(name), settled)))
    elif got[0] == "unknown" and "kill" in [how for how, _ in ends] and not sent:
        # A row that needs no request, in a chunk that was reserved when the process was killed.
        counts["in doubt without a request"] += 1
    elif got != expected or sent: fail("row %d: %s, %d requests, not %s" % (index, got, sent, expected))
    else: counts[expected[1]] += 1
summary = json.load(open(folder + "/summary"))
if summary["remaining"] != 0 or summary["accepted"] != counts["accepted"]: fail("summary: %s" % summary)
print("sound:", json.dumps({"seed": seed, "ends": ends, "counts": counts, "rule": rule}))
