import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideLedgers

/// Claims beside a ledger: what a crash leaves between two steps, and several starts at a time.
@Suite(.timeLimit(.minutes(60)))
struct ClaimTests {
    private static let steps = LedgerDirectory.ClaimStep.allCases
    private let files = FileManager.default
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        for name in ["one", "other"] {
            try files.createDirectory(
                atPath: "\(directory.path)/\(name)", withIntermediateDirectories: false)
        }
    }

    /// - Parameter made: Whether the segments of a run are known to have been made; nil: it has none.
    private func manifest(isPart: Bool, made: Bool? = nil, part: String = "2/3") -> Manifest {
        var manifest = Manifest(
            campaign: 0x0123_4567_89ab_cdef,
            identity: CampaignIdentity(
                listByteCount: 1, listFormat: "lines", columns: [], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, part: isPart ? CampaignPart(part) : nil,
                campaignID: isPart ? "0123456789abcdef" : nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: 0, listPath: nil)
        guard let made else { return manifest }
        _ = manifest.beginEpoch(atMilliseconds: 0)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        if made { manifest.recordCreatedSegments() }
        return manifest
    }

    /// A start with this ledger, up to a crash behind a step.
    ///
    /// - Returns: The exit code of its refusal; 0: it claimed the ledger; -1: it crashed.
    @discardableResult
    private func start(
        _ name: String, isPart: Bool = true, crash: LedgerDirectory.ClaimStep? = nil,
        behind pause: (LedgerDirectory.ClaimStep) -> Void = { _ in }
    ) throws -> Int32 {
        let path = "\(directory.path)/\(name)"
        let ledger = try LedgerDirectory.openForRun(path, resumes: true)
        do throws(BroadsideError) {
            if try !ledger.hasManifest { try ledger.save(manifest(isPart: isPart)) }
            _ = try ledger.claimAttempt(try ledger.readManifest()) { step throws(BroadsideError) in
                pause(step)
                if step == crash { throw BroadsideError("crashed", exitCode: -1) }
            }
        } catch {
            return error.exitCode
        }
        return 0
    }

    private func claims(_ folder: String) throws -> [String] {
        try files.contentsOfDirectory(atPath: "\(directory.path)/\(folder)")
            .filter { $0.hasPrefix(".broadside-") }
    }

    private func copy(_ name: String, to other: String) throws {
        try files.copyItem(
            atPath: "\(directory.path)/\(name)", toPath: "\(directory.path)/\(other)")
    }

    private func oldCopy(_ name: String) throws -> OldCopy? {
        let ledger = try LedgerDirectory.openToRead("\(directory.path)/\(name)")
        return ledger.oldCopy(try ledger.readManifest())
    }

    @Test(arguments: steps, [false, true])
    func `No ledger looks like an old copy during its own starts, or after one that crashed`(
        step: LedgerDirectory.ClaimStep, isPart: Bool
    ) throws {
        for crash in [nil, step, nil] {
            var found: [String] = []
            try start("one/ledger", isPart: isPart, crash: crash) { _ in
                if let copy = try? oldCopy("one/ledger") { found.append(copy.problem) }
            }
            #expect(found.isEmpty, "\(found)")
            #expect(try oldCopy("one/ledger")?.problem == nil)
        }
    }

    @Test(arguments: [false, true])
    func `A copy is old once the ledger has started again, also in the ledger's place`(
        isPart: Bool
    ) throws {
        #expect(try start("one/ledger", isPart: isPart) == 0)
        for name in ["one/copy", "other/ledger", "one/backup"] { try copy("one/ledger", to: name) }
        for name in ["one/copy", "other/ledger"] { #expect(try oldCopy(name)?.problem == nil) }
        #expect(try start("one/ledger", isPart: isPart) == 0)
        for name in ["one/copy", "other/ledger"] {
            let found = try #require(try oldCopy(name))
            #expect(found.newer?.hasSuffix("/one/ledger") == true, "\(found)")
            #expect(found.warning.hasPrefix("\(directory.path)/\(name) is an old copy: "))
            #expect(found.warning.hasSuffix("missing here: read the newer copy"), "\(found)")
            #expect(found.resumeAdvice == "resume the newer copy")
        }
        #expect(try oldCopy("one/ledger")?.problem == nil)
        try files.removeItem(atPath: "\(directory.path)/one/ledger")
        try files.moveItem(
            atPath: "\(directory.path)/one/backup", toPath: "\(directory.path)/one/ledger")
        let found = try #require(try oldCopy("one/ledger"))
        #expect(found.problem.contains(" started in another copy of it ("), "\(found)")
        #expect(found.newer == nil && found.warning.hasSuffix("if it still exists"), "\(found)")
        #expect(found.resumeAdvice.contains("if that copy is lost"), "\(found.resumeAdvice)")
        let (locked, known) = try LedgerDirectory.openToRepair("\(directory.path)/one/ledger")
        #expect(locked.oldCopy(known)?.warning == found.warning)
    }

    @Test(arguments: ["repaired", "copy-of"])
    func `A merged or repaired ledger is old once the original has started again`(
        marker: String
    ) throws {
        #expect(try start("one/ledger") == 0)
        // Earlier versions merged ledgers without their record, and a damaged ledger may lack it.
        for name in ["one/copy", "other/copy", "one/unrecorded", "other/unrecorded"] {
            try copy("one/ledger", to: name)
            try Data("\(directory.path)/one/ledger\n".utf8).write(
                to: URL(filePath: "\(directory.path)/\(name)/\(marker)"))
            if name.hasSuffix("unrecorded") {
                try files.removeItem(atPath: "\(directory.path)/\(name)/epoch")
            }
            #expect(try oldCopy(name)?.problem == nil)
        }
        #expect(try start("one/ledger") == 0)
        for name in ["one/copy", "other/copy"] {
            let found = try #require(try oldCopy(name))
            #expect(found.newer?.hasSuffix("/one/ledger") == true, "\(found)")
            let advice = marker == "copy-of" ? "merge the originals again" : "read the newer copy"
            #expect(found.warning.hasSuffix("missing here: \(advice)"), "\(found)")
        }
        for name in ["one/unrecorded", "other/unrecorded"] {
            #expect(try oldCopy(name)?.problem == nil)
        }
    }

    @Test func `Of a merged ledger, each old copy is named`() throws {
        let names = (1...3).map { "part-000\($0)" }
        let merged = "\(directory.path)/merged"
        let whole = try LedgerDirectory.create(merged)
        for name in names {
            try files.createDirectory(
                atPath: "\(directory.path)/of-\(name)", withIntermediateDirectories: false)
            #expect(try start("of-\(name)/ledger") == 0)
            try copy("of-\(name)/ledger", to: "merged/\(name)")
            try Data("\(directory.path)/of-\(name)/ledger\n".utf8).write(
                to: URL(filePath: "\(merged)/\(name)/copy-of"))
        }
        let manifests = try names.map { name in
            try LedgerDirectory.unlocked("\(merged)/\(name)").readManifest()
        }
        try whole.save(Manifest(mergingParts: manifests, names: names))
        #expect(try LedgerReader(path: merged).oldCopyWarning == nil)
        for (name, also) in [
            (names[1], ""), (names[0], "; \(merged)/part-0002 is old, too"),
            (names[2], "; \(merged)/part-0002, \(merged)/part-0003 are old, too"),
        ] {
            #expect(try start("of-\(name)/ledger") == 0)
            let warning = try #require(try LedgerReader(path: merged).oldCopyWarning)
            let first = also.isEmpty ? names[1] : names[0]
            #expect(warning.hasPrefix("\(merged)/\(first) is an old copy: "), "\(warning)")
            #expect(
                warning.hasSuffix("missing here\(also): merge the originals again"), "\(warning)")
        }
    }

    @Test func `A ledger that was moved does not look like an old copy`() throws {
        #expect(try start("one/ledger") == 0)
        try files.moveItem(
            atPath: "\(directory.path)/one/ledger", toPath: "\(directory.path)/other/moved")
        #expect(try oldCopy("other/moved")?.problem == nil)
        for name in try claims("one") {
            try files.removeItem(atPath: "\(directory.path)/one/\(name)")
        }
        #expect(try oldCopy("other/moved")?.problem == nil)
    }

    @Test(arguments: steps, [false, true])
    func `A start that crashed at any step is followed by another`(
        step: LedgerDirectory.ClaimStep, isPart: Bool
    ) throws {
        #expect(try start("one/ledger", isPart: isPart, crash: step) == -1)
        #expect(try start("one/ledger", isPart: isPart) == 0)
        #expect(try start("one/ledger", isPart: isPart, crash: step) == -1)
        #expect(try start("one/ledger", isPart: isPart, crash: step) == -1)
        #expect(try start("one/ledger", isPart: isPart) == 0)
        let suffix = isPart ? "-2-3.5" : ".5"
        #expect(try claims("one") == [".broadside-0123456789abcdef\(suffix)"])
    }

    /// The claim is made, and nothing is in it yet, or half of it.
    @Test(arguments: ["", "0123456789abcdef", "0123456789abcdef /a/led"])
    func `A claim that a crash left unwritten is the ledger's own`(content: String) throws {
        #expect(try start("one/ledger") == 0)
        #expect(try start("one/ledger", crash: .recorded) == -1)
        try Data(content.utf8).write(
            to: URL(filePath: "\(directory.path)/one/.broadside-0123456789abcdef-2-3.2"))
        #expect(try start("one/ledger") == 0)
        #expect(try claims("one") == [".broadside-0123456789abcdef-2-3.3"])
    }

    @Test(arguments: steps)
    func `Of a moved copy that crashed and the ledger one continues`(
        step: LedgerDirectory.ClaimStep
    ) throws {
        #expect(try start("one/ledger") == 0)
        try copy("one/ledger", to: "other/ledger")
        #expect(try start("other/ledger", crash: step) == -1)
        let original = try start("one/ledger")
        // Once its claim is in both folders, the copy is the ledger.
        #expect(original == ([.recorded, .claimed].contains(step) ? 0 : 7))
        #expect(try start("other/ledger") == (original == 0 ? 7 : 0))
        #expect(try start("one/ledger") == original)
        #expect(try start("other/ledger") == (original == 0 ? 7 : 0))
    }

    @Test(arguments: [1, 2, 3])
    func `A copy that continued is newer than a ledger with failed starts`(count: Int) throws {
        #expect(try start("one/ledger") == 0)
        try copy("one/ledger", to: "other/ledger")
        for _ in 0..<count { #expect(try start("one/ledger", crash: .recorded) == -1) }
        #expect(try start("other/ledger") == 0)
        #expect(try start("one/ledger") == 7)
        #expect(try start("other/ledger") == 0)
    }

    /// The copy ended before it wrote its second claim, which is empty.
    @Test func `An empty claim with the intended number doesn't hide the claim of a copy`() throws {
        #expect(try start("one/ledger") == 0)
        try copy("one/ledger", to: "other/ledger")
        for _ in 0..<2 { #expect(try start("one/ledger", crash: .recorded) == -1) }
        #expect(try start("other/ledger") == 0)
        try Data().write(
            to: URL(filePath: "\(directory.path)/one/.broadside-0123456789abcdef-2-3.3"))
        #expect(try start("one/ledger") == 7)
    }

    @Test(arguments: [false, true])
    func `A claim that a copy makes meanwhile is noticed, and the copy continues`(
        isPart: Bool
    ) throws {
        #expect(try start("one/ledger", isPart: isPart) == 0)
        try copy("one/ledger", to: "one/copy")
        #expect(try start("one/ledger", isPart: isPart, crash: .recorded) == -1)
        var copied: Int32?
        let code = try start("one/ledger", isPart: isPart) { step in
            if step == .recorded { copied = try? start("one/copy", isPart: isPart) }
        }
        #expect(code == 7 && copied == 0)
        #expect(try start("one/copy", isPart: isPart) == 0)
        #expect(try start("one/ledger", isPart: isPart) == 7)
    }

    @Test
    func `A record of an earlier version counts each claim below its own as its own`() throws {
        #expect(try start("one/ledger") == 0)
        let epoch = URL(filePath: "\(directory.path)/one/ledger/epoch")
        try Data("1 3 0123456789abcdef \(directory.path)/one\n".utf8).write(to: epoch)
        try Data("fedcba9876543210 x\n".utf8).write(
            to: URL(filePath: "\(directory.path)/one/.broadside-0123456789abcdef-2-3.2"))
        #expect(try start("one/ledger") == 0)
    }

    /// All orders of three starts of a ledger and its copies, each of which succeeds or crashes
    /// after a step. Once one of them has begun to send, only that one may continue, and one of
    /// them always can.
    @Test(
        arguments: TestSize.isLong
            ? [["one/copy"], ["other/copy"], ["other/copy", "third/copy"]]
            : [["one/copy"], ["other/copy"]], [false, true])
    func `Of a ledger and its copies at most one sends, whichever starts crash`(
        copies: [String], isPart: Bool
    ) throws {
        let isShort = !TestSize.isLong || copies.count > 1
        let ends = [nil] + (isShort ? [.recorded, .claimed] : Self.steps)
        let names = ["one/ledger"] + copies
        let actions = names.flatMap { name in ends.map { (name, $0) } }
        let count = 3
        for number in 0..<Int(pow(Double(actions.count), Double(count))) {
            let place = "order-\(number)"
            defer { try? files.removeItem(atPath: "\(directory.path)/\(place)") }
            for name in ["one", "other", "third"] {
                try files.createDirectory(
                    atPath: "\(directory.path)/\(place)/\(name)", withIntermediateDirectories: true)
            }
            #expect(try start("\(place)/one/ledger", isPart: isPart) == 0)
            for name in copies { try copy("\(place)/one/ledger", to: "\(place)/\(name)") }
            var (rest, order) = (number, [String]())
            var owners: Set<String> = []
            for _ in 0..<count {
                let (name, crash) = actions[rest % actions.count]
                rest /= actions.count
                order.append("\(name) \(crash.map { "\($0)" } ?? "sends")")
                if try start("\(place)/\(name)", isPart: isPart, crash: crash) == 0 {
                    owners.insert(name)
                }
            }
            for name in names + names where try start("\(place)/\(name)", isPart: isPart) == 0 {
                owners.insert(name)
            }
            #expect(owners.count == 1, "\(owners.sorted()) after \(order)")
        }
    }

    @Test func `The synced lengths of the last claim are compared after a failed start`() throws {
        #expect(try start("one/ledger") == 0)
        for _ in 0..<2 { #expect(try start("one/ledger", crash: .recorded) == -1) }
        let epoch = try String(
            contentsOfFile: "\(directory.path)/one/ledger/epoch", encoding: .utf8)
        #expect(epoch.hasPrefix("1 3 "), "\(epoch)")
        try segment(4, 0, bytes: 999)
        try note(DurablePosition(epoch: 4, reactor: 0, position: 1000), claim: 1)
        #expect(try start("one/ledger") == 7)
    }

    @Test func `A moved folder with a link at its earlier path has one claim`() throws {
        #expect(try start("one/ledger") == 0)
        try files.moveItem(atPath: "\(directory.path)/one", toPath: "\(directory.path)/moved")
        try files.createSymbolicLink(
            atPath: "\(directory.path)/one", withDestinationPath: "\(directory.path)/moved")
        for _ in 0..<2 { #expect(try start("moved/ledger") == 0) }
        #expect(try start("one/ledger") == 0)
        #expect(try claims("moved") == [".broadside-0123456789abcdef-2-3.4"])
    }

    @Test func `A damaged record names the claims of its own ledger only`() throws {
        #expect(try start("one/ledger") == 0)
        try Data("1 1\n".utf8).write(to: URL(filePath: "\(directory.path)/one/ledger/epoch"))
        let ledger = try LedgerDirectory.openForRun("\(directory.path)/one/ledger", resumes: true)
        let error = #expect(throws: BroadsideError.self) {
            try ledger.claimAttempt(ledger.readManifest())
        }
        #expect(error?.message.contains("/../.broadside-0123456789abcdef-2-3.*") == true)
    }

    @Test(arguments: ["one", "other"])
    func `Of several copies that start at once one continues`(folder: String) throws {
        for round in 0..<20 {
            let place = "round-\(round)"
            for name in ["one", "other"] {
                try files.createDirectory(
                    atPath: "\(directory.path)/\(place)/\(name)", withIntermediateDirectories: true)
            }
            #expect(try start("\(place)/one/ledger") == 0)
            for copy in 0..<4 {
                try self.copy("\(place)/one/ledger", to: "\(place)/\(folder)/\(copy)")
            }
            // All have looked before the first makes its claim.
            let arrived = Atomic<Int>(0)
            let codes = Mutex<[Int32]>([])
            let ended = DispatchSemaphore(value: 0)
            for copy in 0..<4 {
                Thread.detachNewThread {
                    let code = try? start("\(place)/\(folder)/\(copy)") { step in
                        guard step == .recorded else { return }
                        arrived.add(1, ordering: .releasing)
                        while arrived.load(ordering: .acquiring) < 4 { usleep(50) }
                    }
                    codes.withLock { $0.append(code ?? -2) }
                    ended.signal()
                }
            }
            for _ in 0..<4 { ended.wait() }
            #expect(codes.withLock { $0.sorted() } == [0, 7, 7, 7])
            #expect(try start("\(place)/one/ledger") == 7)
        }
    }

    /// A segment of a run, with so many bytes.
    private func segment(_ epoch: UInt32, _ reactor: UInt16, bytes: Int) throws {
        let name = LedgerFormat.segmentName(epoch: epoch, reactor: reactor)
        try Data(count: bytes).write(
            to: URL(filePath: "\(directory.path)/one/ledger/\(name)"))
    }

    /// Writes down in a claim what a run writes down behind a sync.
    private func note(_ durable: DurablePosition, claim: Int) throws {
        let path = "\(directory.path)/one/.broadside-0123456789abcdef-2-3.\(claim)"
        let file = try FileHandle(forUpdating: URL(filePath: path))
        try file.seek(toOffset: durable.offset)
        let words = [durable.words.0, durable.words.1]
        try file.write(contentsOf: words.withUnsafeBytes { Data($0) })
        try file.close()
    }

    @Test
    func `A ledger with segments shorter than their synced length is refused and claims nothing`()
        throws
    {
        #expect(try start("one/ledger") == 0)
        let claim = try claims("one")
        try segment(4, 0, bytes: 1000)
        try segment(4, 255, bytes: 0x1_2345)
        try note(DurablePosition(epoch: 4, reactor: 0, position: 1000), claim: 1)
        try note(DurablePosition(epoch: 4, reactor: 255, position: 0x1_2345), claim: 1)
        // What was recorded behind it, and not synced, may be there or not.
        try segment(4, 0, bytes: 1001)
        for reactor: UInt16 in [0, 255] {
            let whole = reactor == 0 ? 1000 : 0x1_2345
            try segment(4, reactor, bytes: whole - 1)
            for _ in 0..<2 { #expect(try start("one/ledger") == 7) }
            try segment(4, reactor, bytes: whole)
        }
        // A run that this copy's manifest does not know.
        let gone = "\(directory.path)/one/ledger/" + LedgerFormat.segmentName(epoch: 4, reactor: 0)
        try files.removeItem(atPath: gone)
        #expect(try start("one/ledger") == 7)
        #expect(try claims("one") == claim)
        // A repaired ledger is shorter; a person decided that it is the one that continues.
        try Data().write(to: URL(filePath: "\(directory.path)/one/ledger/repaired"))
        #expect(try start("one/ledger") == 0)
        #expect(!files.fileExists(atPath: "\(directory.path)/one/ledger/repaired"))
        // The new claim knows nothing of the old one's segments.
        #expect(try start("one/ledger") == 0)
        try segment(5, 0, bytes: 10)
        try note(DurablePosition(epoch: 5, reactor: 0, position: 11), claim: 3)
        #expect(try start("one/ledger") == 7)
    }

    /// A copy from the moment in which the segments were made: who reads them finds none, or an empty one.
    @Test func `Segments not known to be made count as short, others as lost`() throws {
        #expect(try start("one/ledger") == 0)
        try note(DurablePosition(epoch: 1, reactor: 0, position: 152), claim: 1)
        let ledger = try LedgerDirectory.openForRun(
            "\(directory.path)/one/ledger", resumes: true)
        let epoch = URL(filePath: "\(directory.path)/one/ledger/epoch")
        let before = try Data(contentsOf: epoch)
        for bytes in [nil, 0, LedgerFormat.segmentHeaderByteCount] {
            if let bytes { try segment(1, 0, bytes: bytes) }
            for made in [nil, false, true] {
                let manifest = manifest(isPart: true, made: made)
                try before.write(to: epoch)
                let isLost = made == true && bytes ?? 0 < LedgerFormat.segmentHeaderByteCount
                do throws(BroadsideError) {
                    _ = try ledger.claimAttempt(manifest) { _ throws(BroadsideError) in
                        throw BroadsideError("claims", exitCode: -1)
                    }
                } catch {
                    #expect(error.exitCode == (isLost ? -1 : 7), "\(bytes ?? -1) \(made as Any)")
                }
            }
        }
    }

    @Test func `A claim with another number is another copy's`() throws {
        #expect(try start("one/ledger") == 0)
        let claim = "\(directory.path)/one/.broadside-0123456789abcdef-2-3.1"
        for text in ["0123456789abcdef /somewhere/ledger\n", "something else\n"] {
            try Data(text.utf8).write(to: URL(filePath: claim))
            #expect(try start("one/ledger") == 7)
        }
        try files.removeItem(atPath: claim)
        try files.createSymbolicLink(atPath: claim, withDestinationPath: "/dev/null")
        #expect(try start("one/ledger") == 7)
        // Nor is one that can't be read the ledger's own.
        try files.removeItem(atPath: claim)
        try files.createDirectory(atPath: claim, withIntermediateDirectories: false)
        #expect(try start("one/ledger") == 5)
    }

    @Test func `A part of a campaign with claims of another number of parts is refused`() throws {
        #expect(try start("one/ledger") == 0)
        let before = try claims("one")
        let other = try LedgerDirectory.openForRun("\(directory.path)/one/new", resumes: true)
        for part in ["2/2", "1/2", "1/4"] {
            let manifest = manifest(isPart: true, part: part)
            for attempt in [
                { try other.refuseLostPart(manifest) }, { _ = try other.claimAttempt(manifest) },
            ] {
                #expect {
                    try attempt()
                } throws: { error in
                    let error = error as? BroadsideError
                    return error?.exitCode == 2
                        && error?.message.contains("begun in 3 parts (/") == true
                }
            }
        }
        #expect(try claims("one") == before)
        for name in ["0123456789abcdef.7", "0123456789abcdef-1-2.x", "00000000000000ff-1-2.1"] {
            try Data().write(to: URL(filePath: "\(directory.path)/one/.broadside-\(name)"))
        }
        try other.refuseLostPart(manifest(isPart: true, part: "1/3"))
        #expect(try start("one/ledger") == 0)
    }

    /// A claim can't be made beside a mount point.
    @Test func `A part's new ledger can't be a mount point, but can be inside one`() throws {
        #expect {
            try LedgerDirectory.checkForPart("/proc")
        } throws: { error in
            let error = error as? BroadsideError
            return error?.exitCode == 2 && error?.message.contains("such as /proc/ledger") == true
        }
        try LedgerDirectory.checkForPart("/proc/ledger")
        try LedgerDirectory.checkForPart(directory.path)
        try LedgerDirectory.checkForPart("\(directory.path)/none")
    }

    @Test func `A division of a campaign that another one precedes leaves no claim`() throws {
        let rival = "\(directory.path)/one/.broadside-0123456789abcdef-1-2.1"
        let code = try start("one/ledger") { step in
            guard step == .claimed else { return }
            #expect(files.createFile(atPath: rival, contents: Data()))
        }
        #expect(code == 2)
        #expect(try claims("one") == [".broadside-0123456789abcdef-1-2.1"])
        #expect(try start("one/ledger") == 2)
        try files.removeItem(atPath: rival)
        #expect(try start("one/ledger") == 0)
    }

    @Test func `Without its claim a campaign of one list continues and a part does not`() throws {
        for isPart in [false, true] {
            let ledger = isPart ? "one/part" : "one/ledger"
            #expect(try start(ledger, isPart: isPart) == 0)
            let claim = "\(directory.path)/one/" + (try claims("one").sorted().first ?? "")
            try files.removeItem(atPath: claim)
            #expect(try start(ledger, isPart: isPart) == (isPart ? 7 : 0))
            for name in try claims("one") {
                try files.removeItem(atPath: "\(directory.path)/one/\(name)")
            }
        }
        // Somebody says that there is no other copy.
        try files.removeItem(atPath: "\(directory.path)/one/part/epoch")
        #expect(try start("one/part") == 0)
    }

    @Test func `An attempt that lost its lock replaces nothing once a newer one began`() throws {
        let path = "\(directory.path)/one/ledger"
        let older = try LedgerDirectory.openForRun(path, resumes: true)
        try older.save(manifest(isPart: true))
        _ = try older.claimAttempt(try older.readManifest())
        try older.save(manifest(isPart: true))
        try files.removeItem(atPath: "\(path)/lock")
        let newer = try LedgerDirectory.openForRun(path, resumes: true)
        _ = try newer.claimAttempt(try newer.readManifest())
        try newer.save(manifest(isPart: true))
        let before = try Data(contentsOf: URL(filePath: "\(path)/manifest.json"))
        var other = manifest(isPart: true)
        other.name = "older"
        #expect(throws: BroadsideError.self) { try older.save(other) }
        #expect(throws: BroadsideError.self) { try older.checkClaim() }
        #expect(try Data(contentsOf: URL(filePath: "\(path)/manifest.json")) == before)
        #expect(throws: Never.self) { try newer.checkClaim() }
    }

    @Test func `A damaged record of attempts is reported, and nothing is claimed`() throws {
        #expect(try start("one/ledger") == 0)
        let before = try claims("one")
        for text in ["", "1", "2 1 0123456789abcdef /a\n", "1 4294967295 0123456789abcdef /a\n"] {
            try Data(text.utf8).write(to: URL(filePath: "\(directory.path)/one/ledger/epoch"))
            #expect(try start("one/ledger") == 5)
            #expect(try claims("one") == before)
        }
    }
}
