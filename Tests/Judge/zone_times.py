"""Computes when the rows of a time zone are due, with Python's `zoneinfo` alone. It steps through the minutes, so it
needs no rules for clock changes. A rule has the keys `day`, `at`, `late` and `quiet`. Times are whole or fractional
seconds since 1970."""
import datetime

utc = datetime.timezone.utc

ZONES = """Europe/Berlin Europe/London Europe/Dublin Europe/Moscow Europe/Istanbul Africa/Cairo Africa/Casablanca
Africa/Lagos Africa/Nairobi America/New_York America/Chicago America/Denver America/Phoenix America/Los_Angeles
America/Anchorage America/St_Johns America/Halifax America/Sao_Paulo America/Santiago America/Mexico_City
Pacific/Honolulu Pacific/Pago_Pago Pacific/Kiritimati Pacific/Auckland Pacific/Chatham Australia/Sydney
Australia/Adelaide Australia/Lord_Howe Australia/Perth Asia/Tokyo Asia/Kolkata Asia/Kathmandu Asia/Tehran Asia/Dubai
Asia/Karachi Asia/Yangon Asia/Shanghai UTC""".split()
# Neither Broadside nor `zoneinfo` has this zone.
NO_ZONES = ["", "Mars/Base", "europe/berlin", "../UTC", "+02:00"]
# Clocks change in some zone on each of these days except the last.
DAYS = ["2027-03-14", "2027-03-28", "2027-10-31", "2027-11-07", "2027-04-04", "2027-10-03", "2027-06-15"]


def shown(zone, second):
    return datetime.datetime.fromtimestamp(second, utc).astimezone(zone).replace(tzinfo=None)


def instant(zone, wanted):
    """Returns the first minute at which the zone's clock shows `wanted` or later."""
    second = int(wanted.replace(tzinfo=utc).timestamp()) - 26 * 3600
    second -= second % 60
    while shown(zone, second) < wanted: second += 60
    return second


def minutes(text): return int(text[:2]) * 60 + int(text[3:])


def lies_in(minute, quiet):
    """Whether a minute of a day is within quiet hours, which may include midnight."""
    start, end = map(minutes, quiet.split("-"))
    return start <= minute < end if start < end else minute >= start or minute < end


def inside(zone, second, quiet):
    if not quiet: return False
    now = shown(zone, second)
    return lies_in(now.hour * 60 + now.minute, quiet)


def settle(zone, second, quiet):
    """Returns the first time outside the quiet hours."""
    if not inside(zone, second, quiet): return second
    second -= second % 60
    while inside(zone, second, quiet): second += 60
    return second


def due(zone, rule, start):
    """Returns when a row is due in a campaign that begins at `start`; None if never."""
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
    """Returns a rule for a day, and its options."""
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
    """Returns a time at which it is, or will be, that day in some zone."""
    midnight = datetime.datetime.fromisoformat(day).replace(tzinfo=utc).timestamp()
    return int(midnight - 86400 * 0.6 + choose.randrange(0, 72000))
