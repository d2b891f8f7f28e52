"""Prometheus metrics of the campaign, with the same names as those of a single `broadside send`."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import sys
import threading
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from .errors import FleetError
from .files import replacing

STATES = ("accepted", "rejected", "invalid", "skipped", "failed", "unknown")
CONNECTION_SECONDS_LIMIT = 5
"""Seconds that a client may take for its request."""


def metrics_text(
    manifest: Mapping[str, Any], results: Mapping[int, Mapping[str, Any]],
    statuses: Mapping[int, Mapping[str, Any]], rate: Optional[float],
    labels: Mapping[str, str] = MappingProxyType({})
) -> str:
    """All parts, in Prometheus' text format 0.0.4.

    A part whose task has started and whose run has not yet reported its progress has no samples of rows: a counter
    must not fall to 0 when a task starts again.

    Args:
        manifest: The freeze's.
        results: The results of finished parts, by part.
        statuses: The statuses of other parts; `progress` is Broadside's progress of the last second.
        rate: Allowed requests per second in total; None: unlimited.
        labels: The campaign's labels, for each sample.
    """
    files = [file for file in manifest["files"] if file["rows"]]
    told = {part: status["progress"] for part, status in statuses.items() if status["progress"]}
    told.update((part, result["summary"]) for part, result in results.items())
    running = sum(status["state"] == "running" for status in statuses.values())

    def sample(name: str, own: Mapping[str, Any], value: Any) -> str:
        pairs = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in sorted({**labels, **own}.items()))
        return f"broadside_{name}{{{pairs}}} {value}" if pairs else f"broadside_{name} {value}"

    def lines() -> Iterator[str]:
        yield from _family("info", "gauge", "The campaign that is described.")
        yield sample("info", {"campaign": manifest["campaign_id"]}, 1)
        yield from _family("fleet_parts", "gauge", "Parts of the campaign that have rows, by state.")
        for state, count in (
            ("finished", len(results)), ("running", running),
            ("waiting", len(files) - len(results) - running),
        ):
            yield sample("fleet_parts", {"state": state}, count)
        yield from _family("list_rows", "gauge", "Rows of each part.")
        for file in files:
            yield sample("list_rows", {"fleet_part": file["part"]}, file["rows"])
        yield from _family(
            "rows_settled_total", "counter", "Rows that are settled, over all attempts, by state.")
        for part, counts in sorted(told.items()):
            for state in STATES:
                yield sample(
                    "rows_settled_total", {"fleet_part": part, "state": state}, counts.get(state) or 0)
        yield from _family("requests_in_flight", "gauge", "Requests that wait for their response.")
        for part, counts in sorted(told.items()):
            if part in statuses:
                yield sample("requests_in_flight", {"fleet_part": part}, counts.get("in_flight") or 0)
        if rate is not None:
            yield from _family(
                "rate_limit_requests_per_second", "gauge", "Requests per second that are allowed in all.")
            yield sample("rate_limit_requests_per_second", {}, f"{rate:g}")

    return "\n".join(lines()) + "\n"


def _family(name: str, kind: str, text: str) -> Iterable[str]:
    return f"# HELP broadside_{name} {text}", f"# TYPE broadside_{name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsFile:
    """A file that each text replaces. If this fails, the campaign prints one warning and continues."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._failed = False

    def write(self, text: str) -> None:
        """Replaces the file."""
        try:
            with replacing(self.path, durable=False) as file:
                # node_exporter is another user, and the file has no tokens and no secrets.
                with contextlib.suppress(PermissionError):
                    os.fchmod(file.fileno(), 0o644)
                file.write(text.encode())
        except OSError as error:
            if not self._failed:
                print(f"broadside_spark: warning: --metrics {self.path}: can't be written: {error.strerror}",
                      file=sys.stderr)
            self._failed = True


class MetricsEndpoint:
    """An HTTP server whose `GET /metrics` returns the last text."""

    def __init__(self, host: str, port: int) -> None:
        """Begins to listen.

        Raises:
            FleetError: Exit code 2 if the address can't be used.
        """
        endpoint = self
        self._text = b""

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = CONNECTION_SECONDS_LIMIT

            def do_GET(self) -> None:
                """Responds with the last text."""
                found = self.path.split("?", 1)[0] == "/metrics"
                body = endpoint._text if found else b"metrics are at /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("content-type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nothing is logged."""

        class Server(http.server.HTTPServer):
            """Handles one request after another: a slow client delays only other clients."""

            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

            def handle_error(self, *_: Any) -> None:
                """Ignores clients that have closed their connection."""

        try:
            self._server = Server((host or "127.0.0.1", port), Handler)
        except OSError as error:
            raise FleetError(f"--metrics {host}:{port}: {error.strerror or error}") from error
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def write(self, text: str) -> None:
        """Sets the text that clients get from now on."""
        self._text = text.encode()


def metrics_target(value: str) -> Union[MetricsFile, MetricsEndpoint]:
    """The file or server of `--metrics FILE|HOST:PORT`; `:PORT` listens on loopback.

    Raises:
        FleetError: Exit code 2 if the port is not valid, or is in use.
    """
    host, colon, port = value.rpartition(":")
    if not colon or "/" in value:
        return MetricsFile(Path(value))
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise FleetError(f"--metrics {value}: {port or 'nothing'} is not a port")
    return MetricsEndpoint(host.removeprefix("[").removesuffix("]"), int(port))
