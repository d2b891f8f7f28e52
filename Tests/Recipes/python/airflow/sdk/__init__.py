"""Stands in for Airflow in docs/how-to/schedule.md: a DAG that is called runs its tasks at once.

Options that Airflow does not have are refused.
"""
import os
import subprocess

from . import exceptions

TODAY = os.environ["AIRFLOW_DAY"]


def dag(*, schedule, start_date, catchup, max_active_runs=16, tags=()):
    with open("schedule.cron", "w") as file:
        print(schedule, "true", file=file)
    subprocess.run(["crontab", "-n", "schedule.cron"], check=True)
    assert start_date.tzinfo, "a start without a time zone is in UTC"
    return lambda function: function


def task(*, retries=0, retry_delay=None, execution_timeout=None):
    def decorate(function):
        def run():
            for attempt in range(retries + 1):
                try:
                    return function(ds=TODAY)
                except exceptions.AirflowFailException:
                    raise
                except Exception as error:
                    if attempt == retries:
                        raise
                    print("retry after", error)
        return run
    return decorate
