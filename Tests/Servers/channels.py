#!/usr/bin/env python3
"""An APNs for broadcast channels, on Python's h2: it holds each request against Apple's tables, byte for byte.

    channels.py --certificate FILE --key FILE --record FILE --behaviour ANSWER[,ANSWER...] [--port N]
        [--settings NUMBER=VALUE[,NUMBER=VALUE...]] [--ends-after N]

An ANSWER is what the next request gets, the last one for all that follow: `STATUS`, `STATUS:REASON`, `STATUS/NAME=VALUE`
(a header field of the response), `list:N` (N channels), `raw:BODY`, `close` (no response), `refuse` (REFUSED_STREAM),
`goaway` or `goaway:REASON` (GOAWAY without the stream, then close), `silent-channel` (no response, the connection stays), `check` (success as the documents describe it)
or `held` (the same, once a file exists whose name is that of `--record` with `.go`).
After its first SETTINGS, the server sends one more for each of `--settings`, as soon as the one before is acknowledged.
The first of them comes at once.
With `--ends-after`, the server ends with all of its connections once it has responded to so many requests.
Prints `listening on PORT`. Writes a JSON line for each request, with what is wrong about it in `problems`.
"""
import argparse
import json
import os
import re
import socket
import ssl
import threading
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

UUID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
JWT = re.compile(rb"bearer [A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{86}\Z")
APP = rb"[A-Za-z0-9.-]+"
CHANNEL = re.compile(rb"[A-Za-z0-9+/]+={0,2}\Z")


def check(fields, body, authority):
    """What is wrong about a request, by the tables of the documents; and what it asks for."""
    problems = []
    names = [name for name, _ in fields]
    found = dict(fields)
    method, path = found.get(b":method"), found.get(b":path", b"")
    if names[:4] != [b":method", b":scheme", b":path", b":authority"]:
        problems.append("the pseudo-header fields are %r" % names[:4])
    if found.get(b":scheme") != b"https":
        problems.append("the scheme is not https")
    if found.get(b":authority") != authority:
        problems.append("the authority is %r" % found.get(b":authority"))
    if not JWT.match(found.get(b"authorization", b"")):
        problems.append("authorization is not a bearer token of three parts")
    rest = {name: value for name, value in fields if not name.startswith(b":") and name != b"authorization"}
    wanted, operation = {}, None
    if re.match(rb"/1/apps/%s/channels\Z" % APP, path) and method == b"POST":
        operation = "create"
        if body not in (b'{"message-storage-policy":0,"push-type":"LiveActivity"}',
                        b'{"message-storage-policy":1,"push-type":"LiveActivity"}') or len(body) != 55:
            problems.append("the body is %r" % body)
    elif re.match(rb"/1/apps/%s/channels\Z" % APP, path) and method in (b"GET", b"DELETE"):
        operation = "read" if method == b"GET" else "delete"
        wanted[b"apns-channel-id"] = CHANNEL
    elif re.match(rb"/1/apps/%s/all-channels\Z" % APP, path) and method == b"GET":
        operation = "list"
    elif re.match(rb"/4/broadcasts/apps/%s\Z" % APP, path) and method == b"POST":
        operation = "broadcast"
        wanted = {
            b"apns-channel-id": CHANNEL, b"apns-request-id": UUID,
            b"apns-push-type": re.compile(rb"liveactivity\Z"),
            b"apns-priority": re.compile(rb"(10|5|1)\Z"), b"apns-expiration": re.compile(rb"[0-9]+\Z")}
        if not 0 < len(body) <= 5120:
            problems.append("the payload has %d bytes" % len(body))
    else:
        problems.append("there is no %r %r" % (method, path))
    if operation in ("read", "delete", "list") and body:
        problems.append("a %s has a body" % operation)
    if sorted(rest) != sorted(wanted) or len(names) != len(set(names)):
        problems.append("the fields of Apple's are %r" % sorted(rest))
    for name, form in wanted.items():
        if name in rest and not form.match(rest[name]):
            problems.append("%r is %r" % (name, rest[name]))
    return operation, problems


class Server:
    def __init__(self, options):
        self.options = options
        self.answers = options.behaviour.split(",")
        self.record = open(options.record, "w", buffering=1)
        self.lock = threading.Lock()
        self.answered = 0

    def next_answer(self):
        with self.lock:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def serve(self, tls):
        connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None))
        connection.initiate_connection()
        settings = [dict([map(int, pair.split("="))]) for pair in self.options.settings.split(",") if pair]
        if settings:
            connection.update_settings(settings.pop(0))
        tls.sendall(connection.data_to_send())
        requests = {}
        while True:
            data = tls.recv(65536)
            if not data:
                return
            for event in connection.receive_data(data):
                stream = getattr(event, "stream_id", None)
                if isinstance(event, h2.events.SettingsAcknowledged) and settings:
                    connection.update_settings(settings.pop(0))
                if isinstance(event, h2.events.RequestReceived):
                    requests[stream] = ([(bytes(n), bytes(v)) for n, v in event.headers], b"")
                elif isinstance(event, h2.events.DataReceived):
                    fields, body = requests[stream]
                    requests[stream] = (fields, body + event.data)
                    connection.acknowledge_received_data(event.flow_controlled_length, stream)
                elif isinstance(event, h2.events.StreamEnded):
                    if not self.answer(connection, tls, stream, *requests.pop(stream)):
                        tls.sendall(connection.data_to_send())
                        return
            tls.sendall(connection.data_to_send())
            if self.answered == self.options.ends_after:
                os._exit(0)

    def answer(self, connection, tls, stream, fields, body):
        """Answers one request; false if the connection ends."""
        operation, problems = check(fields, body, self.options.authority.encode())
        answer = self.next_answer()
        with self.lock:
            self.answered += 1
            self.record.write(json.dumps({
                "operation": operation, "problems": problems, "answer": answer, "body": body.decode(),
                "fields": {name.decode(): value.decode() for name, value in fields}}) + "\n")
        if answer == "close":
            return False
        if answer == "silent-channel":
            return True
        if answer == "refuse":
            connection.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            return True
        if answer.partition(":")[0] == "goaway":
            reason = json.dumps({"reason": answer[7:]}).encode() if answer[7:] else None
            connection.close_connection(last_stream_id=0, additional_data=reason)
            return False
        while answer == "held":
            if os.path.exists(self.options.record + ".go"):
                answer = "check"
            else:
                time.sleep(0.01)
        status, headers, content = 200, [], b""
        if problems:
            status, content = 400, json.dumps({"reason": "BadRequestParams", "problems": problems}).encode()
        elif answer == "check":
            status = {"create": 201, "delete": 204}.get(operation, 200)
            if operation == "create":
                headers.append((b"apns-channel-id", b"dGVzdC1jaGFubmVsLTE="))
            if operation == "read":
                content = b'{"push-type": "LiveActivity", "message-storage-policy": 1, "later-key": {}}'
            if operation == "list":
                content = b'{"channels":["dGVzdC1jaGFubmVsLTE=","cmFjZS0wMDE="]}'
            if operation == "broadcast":
                headers.append((b"apns-unique-id", b"11111111-2222-3333-4444-555555555555"))
        elif answer.startswith("list:"):
            content = json.dumps({"channels": ["%06d" % n for n in range(int(answer[5:]))]}).encode()
        elif answer.startswith("raw:"):
            content = answer[4:].encode()
        else:
            answer, *named = answer.split("/")
            status, _, reason = answer.partition(":")
            status = int(status)
            headers += [tuple(field.encode().split(b"=", 1)) for field in named]
            if reason:
                content = json.dumps({"reason": reason}).encode()
        request = dict(fields).get(b"apns-request-id", b"ABCDEF00-0000-4000-8000-000000000000")
        connection.send_headers(
            stream, [(b":status", b"%d" % status), (b"apns-request-id", request)] + headers,
            end_stream=not content)
        while content:
            room = min(connection.local_flow_control_window(stream), connection.max_outbound_frame_size)
            if room == 0:
                tls.sendall(connection.data_to_send())
                connection.receive_data(tls.recv(65536))
                continue
            connection.send_data(stream, content[:room], end_stream=len(content) <= room)
            content = content[room:]
        return True


def main():
    parser = argparse.ArgumentParser()
    for name in ("certificate", "key", "record", "behaviour"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--settings", default="")
    parser.add_argument("--ends-after", type=int)
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", options.port))
    options.authority = "localhost:%d" % listener.getsockname()[1]
    server = Server(options)
    print("listening on %d" % listener.getsockname()[1], flush=True)

    def converse(raw):
        try:
            with context.wrap_socket(raw, server_side=True) as tls:
                server.serve(tls)
        except (OSError, h2.exceptions.ProtocolError):
            pass

    while True:
        raw, _ = listener.accept()
        threading.Thread(target=converse, args=(raw,), daemon=True).start()


main()
