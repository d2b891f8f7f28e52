/// How much of a simulation's trace is written as text.
public enum Telling: Sendable {
    case nothing
    /// On stdout.
    case everything
    /// Keep at least this many of the last lines for the result.
    case last(Int)
}

/// The events of a simulation, in order: a hash of all, and the text if it is wanted.
struct Trace {
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count = 0
    var isTelling: Bool
    /// The last lines, if they are kept and not printed.
    private(set) var lastLines: [String] = []
    private var keepsLast = 0

    init(_ telling: Telling) {
        switch telling {
        case .nothing: isTelling = false
        case .everything: isTelling = true
        case .last(let count):
            isTelling = true
            keepsLast = count
        }
    }

    /// Prints a line, or keeps it.
    mutating func tell(_ line: String) {
        guard keepsLast > 0 else {
            print(line)
            return
        }
        lastLines.append(line)
        if lastLines.count > 2 * keepsLast { lastLines.removeFirst(keepsLast) }
    }

    mutating func mix(_ number: UInt64) {
        hash = (hash ^ number) &* 0x100_0000_01b3
        hash ^= hash >> 29
    }

    mutating func mix(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { bytes in
            let words = bytes.count / 8
            for index in 0..<words {
                mix(bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
            }
            for byte in bytes[(words * 8)...] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        hash ^= hash >> 29
    }

    mutating func step(time: UInt64, kind: UInt64, _ first: Int, _ second: Int = 0) {
        count += 1
        mix(time)
        mix(
            kind << 56 | UInt64(truncatingIfNeeded: first) << 28
                ^ UInt64(truncatingIfNeeded: second))
    }
}
