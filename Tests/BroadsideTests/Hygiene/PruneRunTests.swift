import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

@Suite struct PruneRunTests {
    /// A directory of the test's own, with a ledger that calls the first `deadCount` tokens dead.
    private struct Place: ~Copyable {
        let path = FileManager.default.temporaryDirectory.path + "/prune-\(UUID().uuidString)"

        init(deadCount: Int) throws {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true)
            try writeLedger(path + "/ledger", deadCount: deadCount)
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ name: String, _ text: String) throws -> String {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
            return path + "/" + name
        }

        func read(_ name: String) -> String? {
            FileManager.default.contents(atPath: path + "/" + name).map {
                String(decoding: $0, as: UTF8.self)
            }
        }

        var names: [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
        }

        func options(_ tokens: String, _ output: String) -> PruneOptions {
            PruneOptions(ledgers: [path + "/ledger"], tokens: tokens, output: output)
        }
    }

    private func failure(_ options: PruneOptions) -> BroadsideError? {
        do throws(BroadsideError) {
            _ = try PruneRun.run(options)
            return nil
        } catch {
            return error
        }
    }

    private func lines(_ numbers: Range<Int>) -> String {
        numbers.map { hexToken($0) + "\n" }.joined()
    }

    @Test func `A pruned list is written beside its input with the same permissions`() throws {
        let place = try Place(deadCount: 2)
        let list = try place.write("list", lines(0..<5))
        chmod(list, 0o600)
        var options = place.options(list, place.path + "/out")
        options.removed = place.path + "/gone"
        let told = try PruneRun.run(options)
        #expect(told.contains("removed      2: Unregistered 2"))
        #expect(place.read("out") == lines(2..<5))
        #expect(place.read("gone") == lines(0..<2))
        #expect(place.read("list") == lines(0..<5))
        #expect(place.names == ["gone", "ledger", "list", "out"])
        var information = stat()
        stat(place.path + "/out", &information)
        #expect(information.st_mode & 0o777 == 0o600)
        // An older output is replaced.
        options.removed = nil
        options.reasons = [.badDeviceToken]
        _ = try PruneRun.run(options)
        #expect(place.read("out") == lines(0..<5))
    }

    @Test func `A pruned list that fails behind its removed rows is named, and these as well`()
        throws
    {
        let place = try Place(deadCount: 2)
        var options = place.options(place.path + "/list", place.path + "/out")
        options.removed = place.path + "/gone"
        let output = try OutputFile(options.output)
        let removed = try OutputFile(options.removed)
        // No file can replace a directory.
        try FileManager.default.createDirectory(
            atPath: options.output, withIntermediateDirectories: false)
        var found: BroadsideError?
        do throws(BroadsideError) {
            try PruneRun.finish(output, removed: removed, options)
        } catch {
            found = error
        }
        #expect(
            found?.message
                == "\(options.output): Is a directory: name another file: \(place.path)/gone is written, but this list "
                + "is not: run the command again")
        #expect(place.read("gone") == "")
    }

    @Test(arguments: ["list", "symbolic", "hard", "../self/list"])
    func `prune never writes over its input under another name`(name: String) throws {
        let place = try Place(deadCount: 2)
        let list = try place.write("list", lines(0..<5))
        symlink(list, place.path + "/symbolic")
        link(list, place.path + "/hard")
        symlink(place.path, place.path + "/self")
        let path = name.hasPrefix("..") ? place.path + "/self/list" : place.path + "/" + name
        let before = place.names
        var options = place.options(list, path)
        #expect(failure(options)?.exitCode == 2)
        options.output = place.path + "/out"
        options.removed = path
        #expect(failure(options)?.exitCode == 2)
        #expect(place.read("list") == lines(0..<5))
        #expect(place.names == before)
    }

    @Test func `prune refuses one file for both output and removed rows`() throws {
        let place = try Place(deadCount: 2)
        let list = try place.write("list", lines(0..<5))
        var options = place.options(list, place.path + "/out")
        options.removed = place.path + "/../\(place.path.split(separator: "/").last!)/out"
        #expect(failure(options)?.exitCode == 2)
        options.removed = place.path
        #expect(failure(options)?.exitCode == 2)
        mkfifo(place.path + "/pipe", 0o600)
        options.removed = place.path + "/pipe"
        #expect(failure(options)?.exitCode == 2)
        options.removed = "-"
        #expect(failure(options)?.exitCode == 2)
        #expect(place.names == ["ledger", "list", "pipe"])
    }

    @Test func `A dry run counts by reason, names no output and writes nothing`() throws {
        let place = try Place(deadCount: 2)
        let list = try place.write("list", lines(0..<5))
        _ = try place.write("out", "as it was")
        let told = try PruneRun.run(place.options(list, place.path + "/new"))
        var options = place.options(list, "")
        options.isDryRun = true
        #expect(try PruneRun.run(options) == told + "\ndry run: nothing was written")
        #expect(told.contains("removed      2: Unregistered 2"))
        options.output = place.path + "/out"
        options.removed = place.path + "/gone"
        _ = try PruneRun.run(options)
        #expect(place.read("out") == "as it was")
        #expect(place.names == ["ledger", "list", "new", "out"])
        // What a prune would refuse it refuses, too.
        let large = try Place(deadCount: 501)
        options = large.options(try large.write("list", lines(0..<1_000)), "")
        options.isDryRun = true
        #expect(failure(options)?.exitCode == 2)
        #expect(failure(options)?.message.contains("501 of 1000 rows would be removed") == true)
        #expect(large.names == ["ledger", "list"])
    }

    @Test func `prune above --max-removed writes nothing`() throws {
        let place = try Place(deadCount: 501)
        let list = try place.write("list", lines(0..<1_000))
        var options = place.options(list, place.path + "/out")
        options.removed = place.path + "/gone"
        #expect(failure(options)?.exitCode == 2)
        #expect(place.names == ["ledger", "list"])
        options.maxRemovedPercent = 50.1
        #expect(failure(options) == nil)
        #expect(place.read("out") == lines(501..<1_000))

        // Exactly the share is allowed, and short lists are not guarded.
        options.maxRemovedPercent = 50
        options.tokens = try place.write("half", lines(1..<1_001))
        #expect(failure(options) == nil)
        options.tokens = try place.write("short", lines(0..<999))
        #expect(failure(options) == nil)
        #expect(place.read("out") == lines(501..<999))
    }

    @Test func `prune finds the token and registered columns by the header`() throws {
        let place = try Place(deadCount: 2)
        let header = "name,device,since\n"
        let rows = (0..<4).map {
            "\"a, \(hexToken($0))\",\"\(hexToken($0))\",\(1_500_000_000 + $0 * 90_000_000)\n"
        }
        let list = try place.write("list.csv", header + rows.joined())
        var options = place.options(list, place.path + "/out")
        #expect(failure(options)?.message.contains("its columns are name, device, since") == true)
        options.tokenColumn = "device"
        options.registeredColumn = "when"
        #expect(failure(options)?.message.contains("no column 'when'") == true)
        options.registeredColumn = "device"
        #expect(failure(options)?.exitCode == 2)
        options.registeredColumn = "since"
        #expect(failure(options) == nil)
        #expect(place.read("out") == header + rows[1...].joined())
        options.format = .lines
        #expect(failure(options)?.message.contains("list of lines") == true)
    }

    @Test(arguments: [("", true), ("Z", false), ("+00:00", false)])
    func `prune says that a compared time without an offset is read as UTC`(
        offset: String, isSaid: Bool
    ) throws {
        let place = try Place(deadCount: 2)
        let rows = [3, 0, 1].map { "\(hexToken($0)),2017-07-14 02:40:00\(offset)\n" }
        var options = place.options(
            try place.write("list.csv", "token,since\n" + rows.joined()), place.path + "/out")
        let line = "\n  times without an offset are read as UTC, the first on line 3"
        #expect(try !PruneRun.run(options).contains(line))
        options.registeredColumn = "since"
        #expect(try PruneRun.run(options).contains(line) == isSaid)
        options.isDryRun = true
        #expect(try PruneRun.run(options).contains(line) == isSaid)
    }

    @Test(arguments: [("", "contains no rows"), ("zz\nyy\n", "contains no device token")])
    func `prune refuses a list without a device token`(text: String, says: String) throws {
        let place = try Place(deadCount: 10)
        var options = place.options(try place.write("list", text), place.path + "/out")
        for isDryRun in [false, true] {
            options.isDryRun = isDryRun
            let refused = try #require(failure(options))
            #expect(refused.exitCode == 2 && refused.message.contains(says), "\(refused.message)")
        }
        #expect(place.names == ["ledger", "list"])
    }

    /// The forms of seconds since 2001, and of times that count from elsewhere.
    @Test(arguments: ["785000000", "0", "46023", "2999-01-01", "soon"])
    func `prune refuses registration times of which none can be read`(value: String) throws {
        let place = try Place(deadCount: 10)
        let rows = (0..<20).map { "\(hexToken($0)),\(value)\n" }
        var options = place.options(
            try place.write("list.csv", "token,since\n" + rows.joined()), place.path + "/out")
        options.registeredColumn = "since"
        let refused = failure(options)
        #expect(refused?.exitCode == 2)
        let message = try #require(refused?.message)
        #expect(message.contains("'since': no row of "), "\(message)")
        #expect(place.names == ["ledger", "list.csv"])
        // One that can be read shows that the column is the right one.
        let last = "\(hexToken(20)),1600000000\n"
        options.tokens = try place.write("more.csv", "token,since\n" + rows.joined() + last)
        let told = try PruneRun.run(options)
        #expect(told.contains("removed      0"))
        #expect(told.contains("registration unreadable: 10, the first on line 2"), "\(told)")
        // Without a dead token nothing depends on it.
        options.tokens = try place.write("alive.csv", "token,since\n\(hexToken(12)),\(value)\n")
        #expect(failure(options) == nil)
    }

    @Test(arguments: [Reason.badDeviceToken, .deviceTokenNotForTopic])
    func `prune refuses a ledger of a run in the wrong environment`(reason: Reason) throws {
        let place = try Place(deadCount: 2)
        let list = try place.write("list", lines(0..<100))
        var options = place.options(list, place.path + "/out")
        options.maxRemovedPercent = 100
        for (bad, good, isRefused) in [
            (50, 0, true), (45, 5, true), (44, 6, false), (10, 0, true), (9, 0, false),
            (90, 10, true), (2, 98, false),
        ] {
            let path = "\(place.path)/\(bad)-\(good)"
            try writeLedger(path, deadCount: bad, acceptedCount: good, reason: reason)
            options.ledgers = [path]
            options.reasons = [.unregistered, reason]
            let refused = failure(options)
            #expect((refused != nil) == isRefused, "\(bad), \(good): \(refused?.message ?? "")")
            if let refused {
                #expect(refused.exitCode == 2)
                #expect(refused.message.contains("\(path): \(bad) of \(bad + good) responses are"))
                #expect(refused.message.contains("leave \(reason.text) out of --reasons"))
                #expect(!place.names.contains("out"))
            } else {
                #expect(place.read("out") == lines(bad..<100))
                try FileManager.default.removeItem(atPath: place.path + "/out")
            }
            // Other reasons do not come from there.
            options.reasons = PruneOptions.defaultReasons
            #expect(failure(options) == nil)
            #expect(place.read("out") == lines(0..<100))
            try FileManager.default.removeItem(atPath: place.path + "/out")
        }
    }

    @Test func `prune handles a row longer than its window, and one longer than the limit`() throws
    {
        let place = try Place(deadCount: 2)
        let note = String(repeating: "long\n", count: 200_000)
        let long = "\(hexToken(0)),\"\(note)\(note)\"\n"
        let rows = (0..<4).map { "\(hexToken($0)),\"\(note)\"\n" }
        let list = try place.write("list.csv", "token,note\n" + long + rows.joined())
        let options = place.options(list, place.path + "/out")
        #expect(failure(options) == nil)
        // What is longer than a row may be has no token, and stays.
        #expect(place.read("out") == "token,note\n" + long + rows[2...].joined())
        // A quote that swallows the rows behind it makes no long row of them.
        let swallowed = String(repeating: "\(hexToken(1)),x\n", count: 60_000)
        _ = try place.write("list.csv", "token,note\n\(hexToken(0)),\"\n" + swallowed)
        let refusal = failure(options)
        #expect(refusal?.exitCode == 2)
        #expect(refusal?.message.contains("line 2 opens a quote") == true)
        #expect(place.read("out") == "token,note\n" + long + rows[2...].joined())
    }

    @Test func `prune reports a wrong list or ledger before it writes`() throws {
        let place = try Place(deadCount: 2)
        let list = try place.write("list.csv", "token,note,note\n\(hexToken(0)),x\n")
        var options = place.options(list, place.path + "/out")
        #expect(failure(options)?.message.contains("two columns named 'note'") == true)
        options.ledgers.append(place.path + "/none")
        #expect(failure(options)?.exitCode == 2)
        options.ledgers = [place.path + "/ledger"]
        options.tokens = place.path + "/none"
        #expect(failure(options)?.exitCode == 2)
        #expect(place.names == ["ledger", "list.csv"])
    }
}

/// Writes a ledger of one finished run: the first tokens are Unregistered since 2017, or rejected for
/// another reason, the next ones accepted.
func writeLedger(
    _ path: String, deadCount: Int, acceptedCount: Int = 10, reason: Reason = .unregistered,
    endpoints: [String?] = [nil]
) throws {
    let directory = try LedgerDirectory.create(path)
    let identity = CampaignIdentity(
        listByteCount: nil, listFormat: "lines", columns: ["token"], payloadSHA256: "00",
        topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
        environment: "production", shard: nil, suppressSHA256: nil)
    var manifest = Manifest(
        campaign: 7, identity: identity, firstStartedAtMilliseconds: 1, listPath: nil)
    let epoch = manifest.beginEpoch(atMilliseconds: 1, endpoint: endpoints[0])
    var writer = LedgerWriter(campaign: 7, epoch: epoch, reactor: 0)
    let now: UInt64 = 1_790_000_000_000
    writer.reserve(
        ChunkReservation(
            firstRow: 0, rowCount: deadCount + acceptedCount, byteOffset: 0, byteCount: 65,
            firstLine: 1,
            lineCount: 1, hash: 0),
        nowMilliseconds: now)
    var bytes: [UInt8] = []
    func write() {
        while let (pending, _) = writer.nextWrite() {
            bytes += pending
            writer.writeCompleted(pending.count)
        }
    }
    for row in 0..<(deadCount + acceptedCount) {
        let digits = Array(hexToken(row).utf8)
        if row < deadCount {
            writer.settled(
                row: UInt64(row), state: .rejected, status: reason == .unregistered ? 410 : 400,
                reason: reason.rawValue, attempts: 1,
                timestamp: reason == .unregistered ? 1_510_000_000_000 : nil,
                token: digits.span.bytes, tokenIsText: false, nowMilliseconds: now)
        } else {
            writer.accepted(
                row: UInt64(row), fingerprint: TokenText.fingerprint(digits.span.bytes),
                attempts: 1, nowMilliseconds: now)
        }
        write()
    }
    let segment = try directory.createSegment(epoch: epoch, reactor: 0)
    defer { close(segment) }
    try writeAll(bytes, to: segment, name: path)
    manifest.endEpoch(
        lengths: [SegmentLength(reactor: 0, byteCount: UInt64(bytes.count))], isFinished: true)
    for endpoint in endpoints.dropFirst() {
        _ = manifest.beginEpoch(atMilliseconds: 1, endpoint: endpoint)
        manifest.endEpoch(lengths: [], isFinished: true)
    }
    try directory.save(manifest)
}
