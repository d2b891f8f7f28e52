"""Of pendulum, which comes with Airflow, what docs/how-to/schedule.md uses."""
import datetime as standard
import zoneinfo


def datetime(*date, tz):
    return standard.datetime(*date, tzinfo=zoneinfo.ZoneInfo(tz))
