import Foundation

@testable import BroadsideSimulator

/// A client on Python's h2 (Debian's python3-h2): it sends exactly the header fields it is told to,
/// right or wrong, on one connection, and tells what came back in order.
struct IndependentClient {
    static let isThere =
        (try? run(["/usr/bin/python3", "-c", "import h2.connection"]).status == 0) ?? false

    /// What it does, one after the other.
    enum Step {
        /// A request; it goes on when there is an answer, or the connection ends.
        case request([(String, String)], body: String)
        /// A request whose body goes out as far as windows allow; each update of one is told.
        case upload([(String, String)], body: String)
        /// The same as `request` without waiting, all in one write.
        case flood(count: Int, [(String, String)], body: String)
        /// Waits until all that is open is answered, or the connection ends.
        case answers
        /// Reads for so long, or until the connection ends.
        case read(seconds: Double)
        /// A PING of 8 bytes; it continues when it is answered.
        case ping(String)

        var object: [String: Any] {
            switch self {
            case .request(let fields, let body):
                ["do": "request", "fields": fields.map { [$0.0, $0.1] }, "body": body]
            case .upload(let fields, let body):
                ["do": "upload", "fields": fields.map { [$0.0, $0.1] }, "body": body]
            case .flood(let count, let fields, let body):
                [
                    "do": "flood", "count": count, "fields": fields.map { [$0.0, $0.1] },
                    "body": body,
                ]
            case .answers: ["do": "answers"]
            case .read(let seconds): ["do": "read", "seconds": seconds]
            case .ping(let bytes): ["do": "ping", "body": bytes]
            }
        }
    }

    /// What it saw.
    struct Event: Decodable, Equatable {
        /// `answer`, `settings`, `window`, `reset`, `goaway`, `ping` (answered), `end` (of the
        /// connection).
        var kind: String
        var stream: Int?
        var fields: [String: String]?
        var body: String?
        var settings: [String: Int]?
        var code: Int?
        var debug: String?
        /// From the last request to an answer.
        var seconds: Double?
        /// By how much a window grew.
        var increment: Int?

        var status: Int? { fields?[":status"].flatMap { Int($0) } }
    }

    static let program = """
        import json, socket, ssl, sys, time
        import h2.config, h2.connection, h2.events, h2.exceptions, h2.settings
        from h2.connection import ConnectionInputs, ConnectionState, H2ConnectionStateMachine

        # By itself h2 reads nothing after GOAWAY; RFC 9113 section 6.8 wants open streams ended.
        H2ConnectionStateMachine._transitions[
            (ConnectionState.CLIENT_OPEN, ConnectionInputs.RECV_GOAWAY)
        ] = (None, ConnectionState.CLIENT_OPEN)

        task = json.load(open(sys.argv[1]))
        context = ssl.create_default_context(cafile=task["ca"])
        context.set_alpn_protocols(["h2"])
        if task.get("certificate"):
            context.load_cert_chain(task["certificate"], task["key"])
        raw = socket.create_connection(("127.0.0.1", task["port"]), timeout=10)
        tls = context.wrap_socket(raw, server_hostname="127.0.0.1")
        connection = h2.connection.H2Connection(h2.config.H2Configuration(
            validate_outbound_headers=False, normalize_outbound_headers=False,
            header_encoding="utf-8"))
        events, open_streams, bodies = [], set(), {}
        state = {"ended": False, "asked": time.monotonic(), "pings": 0}

        def flush():
            try:
                data = connection.data_to_send()
                if data: tls.sendall(data)
            except OSError:
                state["ended"] = True

        def pump(until):
            while not state["ended"] and not until():
                left = state["deadline"] - time.monotonic()
                if left <= 0: return
                tls.settimeout(left)
                try:
                    data = tls.recv(65536)
                except (TimeoutError, socket.timeout):
                    return
                except OSError:
                    data = b""
                if not data:
                    events.append({"kind": "end"})
                    state["ended"] = True
                    return
                for event in connection.receive_data(data): note(event)
                flush()

        def note(event):
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.ResponseReceived):
                bodies[stream] = {"kind": "answer", "stream": stream, "fields": {}, "body": ""}
                for name, value in event.headers: bodies[stream]["fields"][name] = value
            elif isinstance(event, h2.events.DataReceived):
                bodies[stream]["body"] += event.data.decode()
            elif isinstance(event, h2.events.StreamEnded):
                answer = bodies.pop(stream)
                answer["seconds"] = time.monotonic() - state["asked"]
                events.append(answer)
                open_streams.discard(stream)
            elif isinstance(event, h2.events.WindowUpdated):
                events.append({"kind": "window", "stream": stream or 0, "increment": event.delta})
            elif isinstance(event, h2.events.StreamReset):
                events.append({"kind": "reset", "stream": stream, "code": int(event.error_code)})
                open_streams.discard(stream)
            elif isinstance(event, h2.events.PingAckReceived):
                events.append({"kind": "ping", "body": event.ping_data.decode()})
                state["pings"] -= 1
            elif isinstance(event, h2.events.RemoteSettingsChanged):
                events.append({"kind": "settings", "settings": {
                    str(int(k)): v.new_value for k, v in event.changed_settings.items()}})
            elif isinstance(event, h2.events.ConnectionTerminated):
                events.append({"kind": "goaway", "stream": event.last_stream_id,
                    "code": int(event.error_code),
                    "debug": (event.additional_data or b"").decode()})
                state["goaway"] = True

        def upload(fields, body):
            stream, rest = connection.get_next_available_stream_id(), body.encode()
            connection.send_headers(stream, fields)
            open_streams.add(stream)
            while rest and not state["ended"]:
                room = min(connection.local_flow_control_window(stream), 16384, len(rest))
                if room > 0:
                    connection.send_data(stream, rest[:room], end_stream=room == len(rest))
                    rest = rest[room:]
                    flush()
                else:
                    pump(lambda: connection.local_flow_control_window(stream) > 0)

        def request(fields, body):
            state["asked"] = time.monotonic()
            stream = connection.get_next_available_stream_id()
            connection.send_headers(stream, fields, end_stream=not body)
            if body: connection.send_data(stream, body.encode(), end_stream=True)
            open_streams.add(stream)

        state["deadline"] = time.monotonic() + 10
        connection.initiate_connection()
        flush()
        pump(lambda: any(event["kind"] == "settings" for event in events))
        for step in task["steps"]:
            state["deadline"] = time.monotonic() + step.get("seconds", 10)
            try:
                if step["do"] in ("request", "flood"):
                    for _ in range(step.get("count", 1)):
                        request([tuple(f) for f in step["fields"]], step["body"])
                if step["do"] == "upload":
                    upload([tuple(f) for f in step["fields"]], step["body"])
            except h2.exceptions.ProtocolError:
                pass
            flush()
            if step["do"] == "read": pump(lambda: False)
            if step["do"] == "ping":
                connection.ping(step["body"].encode())
                state["pings"] += 1
                flush()
                pump(lambda: state["pings"] == 0)
            if step["do"] in ("request", "upload", "answers"): pump(lambda: not open_streams)
        print(json.dumps(events))
        """

    /// Lets it do its steps on one connection, with a client certificate or without.
    static func converse(
        _ harness: EndpointHarness, certificate: String? = nil, _ steps: [Step]
    ) throws -> [Event] {
        try events(of: run(words(harness, certificate: certificate, steps), seconds: 60))
    }

    /// The command that does these steps.
    static func words(
        _ harness: EndpointHarness, certificate: String? = nil, _ steps: [Step]
    ) throws -> [String] {
        var task: [String: Any] = [
            "ca": harness.state.file("ca.pem"), "port": Int(harness.endpoint.port),
            "steps": steps.map(\.object),
        ]
        if let certificate {
            task["certificate"] = harness.state.file("\(certificate).pem")
            task["key"] = harness.state.file("\(certificate).key")
        }
        let text = try JSONSerialization.data(withJSONObject: task)
        let file = try harness.folder.write("task.json", String(decoding: text, as: UTF8.self))
        return ["/usr/bin/python3", try harness.folder.write("client.py", program), file]
    }

    /// What the command told.
    static func events(of result: CommandResult) throws -> [Event] {
        guard let events = try? JSONDecoder().decode([Event].self, from: Data(result.output.utf8))
        else { throw SimulatorError("the client failed: \(result.errors)", exitCode: 1) }
        return events
    }

    /// A device token's request as it should be; what `change` names comes instead, or in addition.
    static func fields(
        _ harness: EndpointHarness, bearer: String?, token: String = EndpointHarness.token,
        _ change: [(String, String)] = [], without: Set<String> = []
    ) -> [(String, String)] {
        var fields = [
            (":method", "POST"), (":scheme", "https"), (":path", "/3/device/\(token)"),
            (":authority", "127.0.0.1"), ("apns-topic", harness.state.topic),
        ]
        if let bearer { fields.append(("authorization", "bearer \(bearer)")) }
        fields.removeAll { field in
            without.contains(field.0) || change.contains { $0.0 == field.0 && $0.0 != "host" }
        }
        // Pseudo-header fields come first (RFC 9113 section 8.3).
        return (change + fields).filter { $0.0.hasPrefix(":") }
            + (fields + change).filter { !$0.0.hasPrefix(":") }
    }
}
