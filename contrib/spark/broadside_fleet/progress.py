"""The campaign in one line."""

from __future__ import annotations

from typing import Any, Iterable, Mapping


def progress_line(
    manifest: Mapping[str, Any], results: Iterable[Mapping[str, Any]],
    statuses: Iterable[Mapping[str, Any]]
) -> str:
    """Parts, rows, rate, rejected rows and the time that is left.

    Args:
        manifest: The freeze's.
        results: The results of finished parts.
        statuses: The statuses of other parts; `progress` is Broadside's progress of the last second.
    """
    sent = [file["part"] for file in manifest["files"] if file["rows"]]
    finished = [result["summary"] for result in results]
    running = [status["progress"] for status in statuses if status["state"] == "running"]
    settled = sum((one.get("rows") or 0) - (one.get("remaining") or 0) for one in finished)
    settled += sum(one.get("settled") or 0 for one in running)
    rejected = sum(one.get("rejected") or 0 for one in [*finished, *running])
    rate = sum(one.get("rate") or 0 for one in running)
    rows = manifest["rows"]
    left = max(0, rows - settled)
    eta = "-" if rate <= 0 or left == 0 else duration(left / rate)
    # Rounded down, so that only a complete share is 100.0%.
    tenths = 1000 if rows == 0 else min(1000, 1000 * settled // rows)
    return (
        f"parts {len(finished)} of {len(sent)}, running {len(running)}, rows {settled:,} of {rows:,}"
        f" ({tenths / 10:.1f}%), {rate:,.0f} per second, rejected {rejected:,}, ETA {eta}")


def duration(seconds: float) -> str:
    """Seconds as `2h05m`, `3m20s` or `12s`."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 60}m{whole % 60:02}s" if whole >= 60 else f"{whole}s"
