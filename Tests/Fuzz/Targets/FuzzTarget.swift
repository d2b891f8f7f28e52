/// Something that reads bytes from elsewhere, and the check that it reads them well.
///
/// A target is a file of its own in this folder, with a line in `all`, and a folder of the same name
/// in `corpora`. What it is given may be anything: it traps where an invariant is broken, and only
/// then.
package struct FuzzTarget: Sendable {
    /// The name of its corpus and on the command line.
    package var name: String
    /// Reads one input.
    package var run: @Sendable ([UInt8]) -> Void

    /// All targets.
    package static let all: [FuzzTarget] = [
        .http2Frames, .responseHeaders, .tokenList, .ledgerSegment, .ledgerManifest, .json,
        .providerToken, .credentialFiles, .packedList, .payloadTemplate, .json5, .binaryFrames,
        .telemetry, .headerBlocks,
    ]

    /// The target of a name.
    package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// An input that is eaten from its front: first choices, then bytes.
struct FuzzInput {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    /// A number below `limit`; 0 where the input is used up.
    mutating func choice(below limit: Int) -> Int { Int(rest.popFirst() ?? 0) % limit }

    /// What was not eaten yet.
    var bytes: [UInt8] { Array(rest) }
}

extension Array<UInt8> {
    /// The bytes in pieces of at most `count`.
    func pieces(of count: Int) -> [[UInt8]] {
        stride(from: 0, to: self.count, by: count).map {
            Array(self[$0..<Swift.min($0 + count, self.count)])
        }
    }
}
