import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideLedgers

/// Several starts at one place at a time: one has the ledger, and the others are told that it is in use,
/// whatever it has made of the place by then.
@Suite(.timeLimit(.minutes(60)))
struct RivalStartTests {
    private static let starts = 3
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// The outcomes of the starts at one place.
    private final class Round: Sendable {
        let path: String
        let holders = Atomic<Int>(0)
        let decided = Atomic<Int>(0)
        let codes = Mutex<[Int32]>([])
        let wasShared = Atomic<Bool>(false)

        init(_ path: String) { self.path = path }

        func note(_ code: Int32) {
            codes.withLock { $0.append(code) }
            decided.add(1, ordering: .sequentiallyConsistent)
        }

        /// The ledger of a start is about to be given up, and another may get it.
        func endHolding() { holders.subtract(1, ordering: .sequentiallyConsistent) }

        /// One start.
        ///
        /// - Parameter use: What is done with a ledger that is locked. It calls `endHolding`.
        func start(_ use: (LedgerDirectory, Round) -> Void) {
            do throws(BroadsideError) {
                let ledger = try LedgerDirectory.openForRun(path, resumes: true)
                let count = holders.add(1, ordering: .sequentiallyConsistent).newValue
                if count > 1 { wasShared.store(true, ordering: .relaxed) }
                note(0)
                use(ledger, self)
                withExtendedLifetime(ledger) {}
            } catch {
                note(error.exitCode)
            }
        }
    }

    private func rounds(
        _ count: Int, _ use: @escaping @Sendable (LedgerDirectory, Round) -> Void
    ) throws -> [Round] {
        var rounds: [Round] = []
        for number in 0..<count {
            let round = Round("\(directory.path)/\(number)")
            var threads: [WorkerThread] = []
            for _ in 0..<Self.starts { threads.append(try WorkerThread { round.start(use) }) }
            for thread in threads { thread.join() }
            let wasShared = round.wasShared.load(ordering: .relaxed)
            #expect(!wasShared)
            rounds.append(round)
        }
        return rounds
    }

    @Test func `Of three starts at a new ledger one gets it, and the others are exit 7`() throws {
        let rounds = try rounds(60) { ledger, round in
            // All that a run makes before its manifest, and behind it.
            for name in ["skips", "manifest.json", "manifest.copy", "epoch", "segment-0001-00"] {
                try? ledger.replace(name, with: Array("{}".utf8))
            }
            while round.decided.load(ordering: .sequentiallyConsistent) < Self.starts {
                usleep(1_000)
            }
            round.endHolding()
        }
        for round in rounds { #expect(round.codes.withLock { $0.sorted() } == [0, 7, 7]) }
    }

    @Test func `A start that gives its directory up keeps no other start out`()
        throws
    {
        let rounds = try rounds(300) { ledger, round in
            try? ledger.replace("skips", with: Array("{}".utf8))
            round.endHolding()
            ledger.discardUnlessBegun()
        }
        let codes = rounds.flatMap { round in round.codes.withLock { $0 } }
        #expect(Set(codes).isSubset(of: [0, 7]), "\(codes)")
        for round in rounds {
            #expect(round.codes.withLock { $0.contains(0) })
            // One that found the place made by another leaves what it did not make.
            let left = (try? directory.names(in: round.path)) ?? []
            #expect(Set(left).isSubset(of: ["lock", "skips"]), "\(left)")
        }
    }

    @Test func `A directory removed during the check is no disk failure`() throws {
        let path = "\(directory.path)/place"
        let isOver = Atomic<Bool>(false)
        let other = try WorkerThread {
            while !isOver.load(ordering: .relaxed) {
                (try? LedgerDirectory.create(path))?.discardUnlessBegun()
            }
        }
        var codes: Set<Int32> = []
        for _ in 0..<5_000 {
            do throws(BroadsideError) {
                _ = try LedgerDirectory.isLedger(path)
                try LedgerDirectory.checkForRun(path, begins: true)
                codes.insert(0)
            } catch {
                codes.insert(error.exitCode)
            }
        }
        isOver.store(true, ordering: .relaxed)
        other.join()
        #expect(codes.contains(0))
        #expect(!codes.contains(ExitCode.disk))
    }

    @Test func `A removed lock file is no lock`() throws {
        let path = "\(directory.path)/ledger"
        let first = try LedgerDirectory.openForRun(path, resumes: true)
        #expect(unlink("\(path)/lock") == 0)
        let second = try LedgerDirectory.openForRun(path, resumes: true)
        let third = #expect(throws: BroadsideError.self) {
            try LedgerDirectory.openForRun(path, resumes: true)
        }
        #expect(third?.exitCode == 7)
        withExtendedLifetime((first, second)) {}
    }

    @Test func `A run that begins in an empty directory closes it to others`() throws {
        func mode(_ path: String) -> mode_t? {
            var information = stat()
            return stat(path, &information) == 0 ? information.st_mode & 0o777 : nil
        }
        for open in [0o777, 0o755, 0o701, 0o700] as [mode_t] {
            let path = directory.fresh("empty")
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false)
            #expect(chmod(path, open) == 0)
            // It holds no ledger that could be resumed.
            let nothing = #expect(throws: BroadsideError.self) {
                try LedgerDirectory.openForRun(path, resumes: true, begins: false)
            }
            #expect(nothing?.exitCode == 2 && mode(path) == open)
            let begun = try LedgerDirectory.openForRun(path, resumes: true)
            #expect(mode(path) == 0o700)
            begun.discardUnlessBegun()
        }
    }

    @Test(arguments: [0o777, 0o755, 0o710, 0o701, 0o704] as [mode_t])
    func `A ledger that is open to others is refused for writing only`(mode: mode_t) throws {
        let path = "\(directory.path)/ledger"
        withExtendedLifetime(try LedgerDirectory.openForRun(path, resumes: true)) {}
        #expect(chmod(path, mode) == 0)
        let refusal = #expect(throws: BroadsideError.self) {
            try LedgerDirectory.openForRun(path, resumes: true)
        }
        #expect(refusal?.exitCode == 2)
        #expect(refusal?.message.contains("chmod 0700 \(path)") == true)
        #expect(try LedgerDirectory.openToRead(path).names() == ["lock"])
        #expect(chmod(path, 0o700) == 0)
        withExtendedLifetime(try LedgerDirectory.openForRun(path, resumes: true)) {}
    }

    @Test func `A directory with other files is neither locked nor filled`() throws {
        let path = "\(directory.path)/mine"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        try directory.write("text", to: "mine/notes.txt")
        let refusal = #expect(throws: BroadsideError.self) {
            try LedgerDirectory.openForRun(path, resumes: true)
        }
        #expect(refusal?.exitCode == 2)
        #expect(try directory.names(in: path) == ["notes.txt"])
    }
}
