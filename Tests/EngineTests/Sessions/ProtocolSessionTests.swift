import BroadsideLegacyGateway
import Testing

@testable import BroadsideEngine

/// Which protocol a connection speaks is asked of its session alone.
@Suite struct ProtocolSessionTests {
    @Test func `Settings decide the protocol, and each call goes to it`() {
        var http2 = SessionBench { $0.streamsPerConnection = 7 }
        var gateway = SessionBench {
            $0.streamsPerConnection = 7
            $0.binary = BinarySettings(
                command: .frame, expiration: nil, priority: 10, silence: 1)
        }
        let (one, other) = (http2.session.start(), gateway.session.start())
        #expect(one == nil && other == .ready(streams: nil))
        let responds = [http2.session.respondsToEach, gateway.session.respondsToEach]
        let limits = [http2.session.requestLimit, gateway.session.requestLimit]
        let pings = [http2.session.ping(1), gateway.session.ping(1)]
        let explains = [http2.session.handleUnwritable(), gateway.session.handleUnwritable()]
        #expect(responds == [true, false] && limits == [7, 7])
        #expect(pings == [true, false] && explains == [false, true])
        // Before its SETTINGS a server gets no request.
        let room = [
            http2.session.room(for: http2.writer), gateway.session.room(for: gateway.writer),
        ]
        let may = [
            http2.session.mayStart(http2.writer), gateway.session.mayStart(gateway.writer),
        ]
        #expect(room == [0, 7] && may == [false, true])
    }

    @Test(arguments: [1, 2])
    func `A gateway session takes the last request for which there is room`(
        limit: Int
    ) {
        var bench = SessionBench {
            $0.streamsPerConnection = limit
            $0.binary = BinarySettings(
                command: .frame, expiration: nil, priority: 10, silence: 1)
        }
        _ = bench.session.start()
        let tags = bench.makeRows(limit)
        for tag in tags {
            let may = bench.session.mayStart(bench.writer)
            #expect(may)
            let written = bench.write([tag]).written
            #expect(written == 1)
        }
        let mayMore = bench.session.mayStart(bench.writer)
        #expect(!mayMore)
    }

    @Test func `A GOAWAY stops new HTTP/2 requests and has no meaning for a gateway`() {
        var http2 = SessionBench()
        var gateway = SessionBench {
            $0.binary = BinarySettings(
                command: .frame, expiration: nil, priority: 10, silence: 1)
        }
        http2.session.shutDown()
        gateway.session.shutDown()
        let draining = [http2.session.isDraining, gateway.session.isDraining]
        let said = [http2.write([]).bytes.isEmpty, gateway.write([]).bytes.isEmpty]
        #expect(draining == [true, false] && said == [false, true])
    }

    @Test func `A slot without a connection has no capacity, rows or events`() {
        var session = ProtocolSession()
        let (count, limit, occupancy) = (session.openCount, session.requestLimit, session.occupancy)
        let tag = session.takeInFlight()?.tag
        #expect(count == 0 && limit == 0 && occupancy.bodiesLimit == 0 && tag == nil)
    }
}
