import BroadsideTestSupport
import Testing

/// Libraries that only some runs need, where they are not installed. `Tests/Shims/missing-library.c`.
@Suite(.timeLimit(.minutes(60)))
struct MissingLibraryTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let library: String

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 5)
        library = try Shim.compile("missing-library", in: campaign.directory)
    }

    private func send(without missing: String, _ more: [String] = []) throws -> Finished {
        try campaign.send(
            to: server.endpoint, more, environment: ["LD_PRELOAD": library, "MISSING": missing])
    }

    @Test func `A run with an endpoint for metrics names the package of libmicrohttpd`() throws {
        let sent = try send(without: "libmicrohttpd", ["--metrics", "127.0.0.1:0"])
        #expect(sent.exitCode == 2)
        #expect(
            sent.errors.contains("--metrics an endpoint needs libmicrohttpd: install it (Debian: "),
            "\(sent.errors)")
    }

    @Test func `A run without an endpoint needs no libmicrohttpd`() throws {
        let sent = try send(without: "libmicrohttpd")
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.finish().count == 5)
    }

    /// OpenSSL signs from version 3.2 on.
    @Test func `A run that OpenSSL cannot sign for names the package of GnuTLS`() throws {
        let sent = try send(without: "libgnutls")
        guard sent.exitCode != 0 else { return }
        #expect(sent.exitCode == 2, "\(sent.errors)")
        #expect(sent.errors.contains("install GnuTLS (Debian: libgnutls30)"), "\(sent.errors)")
    }
}
