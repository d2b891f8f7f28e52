import BroadsideTestSupport
import Foundation
import Testing

/// Looks into the machine code of the functions that run for each notification: none may call the
/// reference counting, the exclusivity checks or the allocator of the Swift runtime, and none may
/// have an atomic instruction that writes.
///
/// Reactors share values only behind locks and atomics, which the compiler checks (`Sendable`). So
/// without such an instruction no memory that reactors share is written per notification, and no
/// cache line goes from one processor to another for it. What is read for each row, an atomic in
/// `RowHandoff`, needs none.
///
/// The names are pieces of mangled symbols. One that is not found fails the test: where the
/// optimiser begins to inline a function, name the one that it is in now.
@Suite(
    .timeLimit(.minutes(60)),
    .enabled(if: RareProgram.areTested, "it measures a release build: tools/test --full"))
struct HotFunctionTests {
    struct HotFunction: CustomTestStringConvertible, Sendable {
        var what: String
        /// Pieces that the mangled symbol has, in this order.
        var pieces: [String]

        var testDescription: String { what }

        /// Whether the symbol, a C string, has the pieces. 8,000 symbols are asked, so this is C's
        /// search and not Foundation's.
        func isSpelled(by symbol: String) -> Bool {
            symbol.withCString { start in
                var rest = start
                for piece in pieces {
                    guard let found = strstr(rest, piece) else { return false }
                    rest = UnsafePointer(found) + strlen(piece)
                }
                return true
            }
        }
    }

    /// A method of the reactor in the form that runs: specialised for TLS.
    private static func reactor(_ what: String, _ name: String) -> HotFunction {
        HotFunction(
            what: what, pieces: ["19ReactorStateMachine", name, "TLSRecordsV_Tg5"])
    }

    static let functions = [
        HotFunction(what: "find a row", pieces: ["$s13BroadsideRows9RowReaderV4nextAC"]),
        HotFunction(
            what: "lower a token", pieces: ["$s13BroadsideAPNs9TokenTextO12canonicalize", "FZ"]),
        HotFunction(
            what: "a token's fingerprint", pieces: ["$s13BroadsideAPNs9TokenTextO11fingerprint"]),
        reactor("take rows, and write their requests", "13writeRequests"),
        reactor("take a row of the list", "11takeListRow"),
        reactor("read its token", "9readToken"),
        reactor("fill a record with requests", "13stageRequests"),
        reactor("make a record", "11stageRecord"),
        HotFunction(
            what: "lay down a request", pieces: ["$s15BroadsideEngine15RequestTemplateV5write"]),
        HotFunction(what: "open a stream", pieces: ["28ClientConnectionStateMachineV10openStream"]),
        HotFunction(
            what: "streams and windows left",
            pieces: ["28ClientConnectionStateMachineV15requestCapacity"]),
        HotFunction(what: "take from the pace", pieces: ["$s15BroadsidePolicy11RateLimiterV4take"]),
        HotFunction(what: "seal", pieces: ["$s12BroadsideTLS10TLSSessionV4seal"]),
        HotFunction(
            what: "read frames", pieces: ["28ClientConnectionStateMachineV9nextEvent"]),
        HotFunction(
            what: "read DATA", pieces: ["28ClientConnectionStateMachineV11receiveData"]),
        HotFunction(
            what: "read a response's headers",
            pieces: ["$s14BroadsideHTTP215ResponseHeadersV12readOrdinary"]),
        HotFunction(
            what: "read a header with its name",
            pieces: ["$s14BroadsideHTTP215ResponseHeadersV9takeField"]),
        HotFunction(what: "walk a header block", pieces: ["$s14BroadsideHPACK11BlockWalkerV4next"]),
        HotFunction(what: "decode Huffman codes", pieces: ["$s14BroadsideHPACK7HuffmanO6decode"]),
        reactor("a verdict, and its latency", "6accept"),
        HotFunction(
            what: "its record", pieces: ["$s21BroadsideLedgerFormat0B6WriterV8accepted3row"]),
    ]

    private static let machineCode = Result { try MachineCode() }

    @Test(arguments: functions)
    func `A hot function calls no reference counting`(_ function: HotFunction) throws {
        let code = try Self.machineCode.get()
        let symbols = code.calls.keys.filter { function.isSpelled(by: $0) }
        #expect(!symbols.isEmpty, "no such function in the release binary: \(function.pieces)")
        for symbol in symbols {
            let calls = code.calls[symbol]!
            #expect(calls.isEmpty, "\(symbol) calls \(calls.sorted())")
        }
    }

    @Test(arguments: functions)
    func `A hot function has no atomic instruction that writes`(_ function: HotFunction) throws {
        let code = try Self.machineCode.get()
        for symbol in code.calls.keys where function.isSpelled(by: symbol) {
            let atomics = code.atomics[symbol, default: []]
            #expect(atomics.isEmpty, "\(symbol) has \(atomics.sorted())")
        }
    }

    /// What is called once a turn, or for each connection that may send, copies no reactor of almost 4 KiB:
    /// where a method that only reads does not run inline, Swift (6.3) copies what it reads to the stack.
    @Test(arguments: [
        reactor("an iteration", "12runIteration"),
        reactor("fill a record", "13stageRequests"),
        reactor("write requests", "13writeRequests"),
        reactor("what the run says", "15exchangeWithRun"),
        reactor("ask for rows", "13requestChunks"), reactor("reserve rows", "12reserveAhead"),
        reactor("account for time", "14accountForTime"),
        reactor("open connections", "15openConnections"),
    ])
    func `An event-loop iteration copies no reactor`(_ function: HotFunction) throws {
        let symbols = try Self.machineCode.get().calls.keys.filter { function.isSpelled(by: $0) }
        #expect(!symbols.isEmpty)
        for symbol in symbols {
            // The third argument is the size.
            let sizes = try Self.copies(in: symbol).filter { $0 >= 2048 }
            #expect(sizes.isEmpty, "\(symbol) copies \(sizes) bytes")
        }
    }

    /// Such as the rows in hand, of 553 bytes.
    @Test(arguments: [
        reactor("write requests", "13writeRequests"),
        reactor("take a row of the list", "11takeListRow"),
        reactor("read rows ahead of their sync", "16settleUnsentRows"),
    ])
    func `What runs for each row of the list copies no part of the reactor`(
        _ function: HotFunction
    ) throws {
        let symbols = try Self.machineCode.get().calls.keys.filter { function.isSpelled(by: $0) }
        #expect(!symbols.isEmpty)
        for symbol in symbols {
            let sizes = try Self.copies(in: symbol).filter { $0 >= 256 }
            #expect(sizes.isEmpty, "\(symbol) copies \(sizes) bytes")
        }
    }

    @Test
    func `A request with a payload of its own copies no mirror of the server's header table`()
        throws
    {
        let write = HotFunction(
            what: "write", pieces: ["$s15BroadsideEngine13RequestWriterV", "14writeTemplated"])
        let symbols = try Self.machineCode.get().calls.keys.filter { write.isSpelled(by: $0) }
        #expect(!symbols.isEmpty)
        for symbol in symbols {
            // Of 840 bytes.
            let sizes = try Self.copies(in: symbol).filter { $0 >= 512 }
            #expect(sizes.isEmpty, "\(symbol) copies \(sizes) bytes")
        }
    }

    @Test func `The search for copies finds one where a reactor moves to its thread`() throws {
        // A reactor is moved into its thread.
        let thread = HotFunction(
            what: "begin", pieces: ["$s15BroadsideEngine13ReactorThreadC3run33_", "LLyyF"])
        let symbols = try Self.machineCode.get().calls.keys.filter { thread.isSpelled(by: $0) }
        #expect(try symbols.contains { try Self.copies(in: $0).contains { $0 > 2048 } })
    }

    /// The bytes of each copy in a function whose size is constant.
    private static func copies(in symbol: String) throws -> [Int] {
        let code = try Subprocess.run(
            "objdump", ["--no-show-raw-insn", "--disassemble=\(symbol)", try Broadside.path()],
            in: TemporaryDirectory()
        ).output
        var size: Int?
        var sizes: [Int] = []
        for line in code.split(separator: "\n") {
            let load = #/mov +\$0x([0-9a-f]+),%edx|mov\s+[wx]2, #0x([0-9a-f]+)/#
            if let found = line.firstMatch(of: load) {
                size = Int(found.1 ?? found.2 ?? "", radix: 16)
            } else if let found = size, line.contains("<memcpy") || line.contains("<memmove") {
                sizes.append(found)
            }
        }
        return sizes
    }

    /// It was one of 8 KiB, for each character.
    @Test func `Decoding a character of a request to the simulator copies no memory`() throws {
        let reader = HotFunction(
            what: "decode", pieces: ["18BroadsideSimulator13HuffmanReaderV6decode"])
        let symbols = try Self.machineCode.get().calls.keys.filter { reader.isSpelled(by: $0) }
        #expect(!symbols.isEmpty)
        for symbol in symbols {
            let code = try Subprocess.run(
                "objdump", ["--disassemble=\(symbol)", try Broadside.path()],
                in: TemporaryDirectory()
            ).output
            #expect(code.contains("<\(symbol)>:"))
            #expect(code.firstMatch(of: /mem(cpy|move)/) == nil, "\(symbol)")
        }
    }

    @Test
    func `The search for calls and atomic instructions finds those of other functions`() throws {
        let code = try Self.machineCode.get()
        #expect(code.calls.values.count { !$0.isEmpty } > 200)
        #expect(code.atomics.count > 50)
        // It takes the lock of what all reactors share, at the beginning of a turn.
        // The optimiser keeps the one function, or puts it into the other.
        let exchanges = ["14RunCoordinatorC", "10RunChannelV"].map {
            HotFunction(
                what: "exchange with the run", pieces: ["$s15BroadsideEngine\($0)8exchange"])
        }
        #expect(
            code.atomics.keys.contains { name in exchanges.contains { $0.isSpelled(by: name) } })
    }
}

/// What each function of the command calls of the runtime, and its atomic instructions, by `objdump`.
struct MachineCode {
    /// The counting and allocating functions that are called, by the caller's symbol.
    private(set) var calls: [String: Set<String>] = [:]
    /// The atomic instructions that write, by the symbol; only of functions that have some.
    private(set) var atomics: [String: Set<String>] = [:]

    /// Reference counts, exclusivity checks, allocation.
    private static let counting =
        "swift_(retain|release|bridgeObjectRe|beginAccess|allocObject|unownedRe|weak"
        + "|isUniquelyReferenced|once)"

    /// A locked instruction, or an exchange with memory, which is locked by itself; on ARM the
    /// instructions of LSE, exclusive stores, and the functions that stand for both.
    private static let atomic =
        "(lock [a-z]|xchg [^#]*\\(|(cas|swp|ld(add|set|clr|eor))[a-z]* |stl?xr|bl +.*<__aarch64_)"

    init() throws {
        let path = try Broadside.path()
        guard path.contains("release") else {
            throw TestFailure("machine code is looked at in a release build: build one")
        }
        let directory = try TemporaryDirectory()
        // Where each function ends: what lies behind it without a name of its own is another one.
        let table = try Subprocess.run(
            "nm", ["--print-size", "--defined-only", path], in: directory)
        var ends: [String: UInt64] = [:]
        for line in table.output.utf8.split(separator: 0x0a) {
            let words = line.split(separator: 0x20).map { String($0) ?? "" }
            guard words.count == 4, let start = UInt64(words[0], radix: 16),
                let size = UInt64(words[1], radix: 16)
            else { continue }
            ends[words[3]] = start + size
        }
        // Headers of functions, and calls of what counts; the rest is long and not looked at.
        let text = try Subprocess.run(
            "bash",
            [
                "-c",
                "set -o pipefail; objdump --disassemble --no-show-raw-insn \"$0\""
                    + " | grep --only-matching --extended-regexp"
                    + " '<[^>]+>:$|^ *[0-9a-f]+:.*<\(Self.counting)[^>+]*"
                    + "|^ *[0-9a-f]+:[[:space:]]+\(Self.atomic).*'",
                path,
            ], in: directory
        ).output
        var symbol = ""
        for line in text.utf8.split(separator: 0x0a) {
            if line.last == UInt8(ascii: ":") {
                symbol = String(line.dropFirst().dropLast(2)) ?? ""
                calls[symbol] = []
            } else {
                let pieces = line.split(separator: UInt8(ascii: ":"), maxSplits: 1)
                let digits = (String(pieces[0]) ?? "").trimmingCharacters(in: .whitespaces)
                let name = line.split(separator: UInt8(ascii: "<")).last.flatMap { String($0) }
                guard let place = UInt64(digits, radix: 16), place < ends[symbol] ?? .max
                else { continue }
                if let name, name.hasPrefix("swift_") {
                    calls[symbol, default: []].insert(name)
                } else {
                    let instruction = String(pieces[1]) ?? ""
                    atomics[symbol, default: []].insert(
                        instruction.trimmingCharacters(in: .whitespaces))
                }
            }
        }
        guard calls.count > 1000 else { throw TestFailure("\(path) has no symbols") }
    }
}
