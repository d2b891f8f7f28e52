import Testing

@testable import BroadsideSimulator

/// The file of `--deliveries`, as another program sees it.
@Suite(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
struct DeliveryFileTests {
    typealias Client = IndependentClient

    /// Another program waits for the line: no request comes that would wake the simulator.
    @Test func `A notification is in the deliveries file after online, without another request`()
        throws
    {
        let folder = Folder()
        let (socket, deliveries) = (folder.file("control"), folder.file("deliveries.csv"))
        let offline = try folder.write("offline.txt", EndpointHarness.token + "\n")
        let harness = try EndpointHarness {
            $0.control = socket
            $0.offline = offline
            $0.deliveries = deliveries
        }
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let events = try Client.converse(harness, [.request(fields, body: "{}")])
        #expect(events.contains { $0.status == 200 })
        let program = try folder.write(
            "online.py",
            """
            import socket, sys, time
            control = socket.socket(socket.AF_UNIX)
            control.connect(sys.argv[1])
            control.sendall(f"online {sys.argv[3]}\\n".encode())
            print(control.recv(1000).decode().strip())
            start = time.monotonic()
            while time.monotonic() < start + 8:
                if len(open(sys.argv[2]).readlines()) == 2:
                    sys.exit(0)
                time.sleep(0.02)
            sys.exit("no line")
            """)
        let result = try run([
            "/usr/bin/python3", program, socket, deliveries, EndpointHarness.token,
        ])
        #expect(result.status == 0, "\(result.output) \(result.errors)")
        #expect(result.output.contains("\"delivered\":1"))
    }
}
