"""When the rows of a time zone are due, by Python's `zoneinfo` alone: minute by minute, so that changes of the clock
need no rule. A rule has the keys `day`, `at`, `late` and `quiet`; times are whole or fractional seconds since 1970."""
import datetime

utc = datetime.timezone.utc

ZONES = """Europe/Berlin Europe/London Europe/Dublin Europe/Moscow Europe/Istanbul Africa/Cairo Africa/Casablanca
Africa/Lagos Africa/Nairobi America/New_York America/Chicago America/Denver America/Phoenix America/Los_Angeles
America/Anchorage America/St_Johns America/Halifax America/Sao_Paulo America/Santiago America/Mexico_City
Pacific/Honolulu Pacific/Pago_Pago Pacific/Kiritimati Pacific/Auckland Pacific/Chatham Australia/Sydney
Australia/Adelaide Australia/Lord_Howe Australia/Perth Asia/Tokyo Asia/Kolkata Asia/Kathmandu Asia/Tehran Asia/Dubai
Asia/Karachi Asia/Yangon Asia/Shanghai UTC""".split()
# No zone, to Broadside and to `zoneinfo`.
NO_ZONES = ["", "Mars/Base", "europe/berlin", "../UTC", "+02:00"]
# On all but the last, clocks change somewhere.
DAYS = ["2027-03-14", "2027-03-28", "2027-10-31", "2027-11-07", "2027-04-04", "2027-10-03", "2027-06-15"]


def shown(zone, second):
    return datetime.datetime.fromtimestamp(second, utc).astimezone(zone).replace(tzinfo=None)


def instant(zone, wanted):
    """The first minute whose clock shows `wanted` or later."""
    second = int(wanted.replace(tzinfo=utc).timestamp()) - 26 * 3600
    second -= second % 60
    while shown(zone, second) < wanted: second += 60
    return second


def minutes(text): return int(text[:2]) * 60 + int(text[3:])


def lies_in(minute, quiet):
    """Whether a minute of a day lies in quiet hours, which may go over midnight."""
    start, end = map(minutes, quiet.split("-"))
    return start <= minute < end if start < end else minute >= start or minute < end


def inside(zone, second, quiet):
    if not quiet: return False
    now = shown(zone, second)
    return lies_in(now.hour * 60 + now.minute, quiet)


def settle(zone, second, quiet):
    """The first time outside of quiet hours."""
    if not inside(zone, second, quiet): return second
    second -= second % 60
    while inside(zone, second, quiet): second += 60
    return second


def due(zone, rule, start):
    """When a row is due that is in a campaign which begins at `start`; None: never."""
    if not rule["at"]: return settle(zone, start, rule["quiet"])
    day = datetime.datetime.fromisoformat(rule["day"])
    clock = datetime.timedelta(minutes=minutes(rule["at"]))
    second = instant(zone, day + clock)
    if second < start:
        if rule["late"] == "skip": return None
        if rule["late"] == "send": return settle(zone, start, rule["quiet"])
        while second < start:
            day += datetime.timedelta(days=1)
            second = instant(zone, day + clock)
    return settle(zone, second, rule["quiet"])


def choose_rule(choose, day):
    """A rule for a day, and its options."""
    rule = {
        "day": day, "at": choose.choice(["09:00", "02:30", "19:15", "12:00", None]),
        "late": choose.choice(["send", "skip", "next-day"]),
        "quiet": choose.choice([None, "22:00-08:00", "01:00-03:00"]), "default": choose.choice([None, "Asia/Kolkata"])}
    if not rule["at"]:
        rule["late"], rule["quiet"] = "send", rule["quiet"] or "22:00-08:00"
    elif rule["quiet"] and lies_in(minutes(rule["at"]), rule["quiet"]):
        rule["quiet"] = None
    options = ["--zone-column", "tz"]
    if rule["at"]: options += ["--deliver-at", rule["at"], "--on", day, "--late", rule["late"]]
    if rule["quiet"]: options += ["--quiet", rule["quiet"]]
    if rule["default"]: options += ["--zone-default", rule["default"]]
    return rule, options


def choose_start(choose, day):
    """A time at which it is that day somewhere, or will be."""
    midnight = datetime.datetime.fromisoformat(day).replace(tzinfo=utc).timestamp()
    return int(midnight - 86400 * 0.6 + choose.randrange(0, 72000))
