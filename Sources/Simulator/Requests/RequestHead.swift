internal import Glibc
internal import HPACK

/// The header fields of one request that mean something to APNs: where their values lie.
///
/// The values lie in a scratch area that is used anew for the next request, so a head is looked at
/// once, as soon as its header block is complete.
@safe struct RequestHead {
    /// The fields that are told apart; all others are ignored, as APNs ignores them.
    typealias Name = RequestFieldName

    /// Where the values are copied to.
    let arena: UnsafeMutableRawBufferPointer
    private var used = 0
    private var offsets = InlineArray<12, UInt16>(repeating: 0)
    private var counts = InlineArray<12, UInt16>(repeating: 0)
    private var seen: UInt16 = 0
    /// A field that must occur once occurred twice.
    private(set) var hasDuplicates = false
    /// `content-encoding` names a coding.
    private(set) var isSaidToBeCompressed = false
    /// As RFC 9113 section 6.5.2 counts: name, value and 32 a field.
    private(set) var listSize = 0

    /// An empty head; `arena` has room for a whole header list.
    init(arena: UnsafeMutableRawBufferPointer) {
        precondition(arena.count >= SimulatorLimits.headerListSize)
        unsafe self.arena = unsafe arena
    }

    /// An empty head with an arena of its own, which `deallocateArena` ends.
    static func withArena() -> RequestHead {
        unsafe RequestHead(
            arena: .allocate(byteCount: SimulatorLimits.headerListSize, alignment: 16))
    }

    /// The head is of no use afterwards.
    func deallocateArena() { unsafe arena.deallocate() }

    /// Forgets the fields.
    mutating func reset() {
        used = 0
        seen = 0
        hasDuplicates = false
        isSaidToBeCompressed = false
        listSize = 0
    }

    /// More header fields than were announced to be taken.
    var isTooLarge: Bool { listSize > SimulatorLimits.headerListSize }

    /// Takes a field in.
    mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        let known = unsafe Name(name)
        if known == nil, unsafe name.spells("content-encoding"), unsafe !value.spells("identity") {
            isSaidToBeCompressed = true
        }
        unsafe add(known, nameCount: name.count, value: value)
    }

    /// Takes a field in whose name is told apart already.
    mutating func add(_ name: Name?, nameCount: Int, value: UnsafeRawBufferPointer) {
        listSize += nameCount + value.count + 32
        guard !isTooLarge, let name else { return }
        let bit: UInt16 = 1 << UInt16(name.rawValue)
        if seen & bit != 0 {
            hasDuplicates = true
            return
        }
        seen |= bit
        offsets[name.rawValue] = UInt16(used)
        counts[name.rawValue] = UInt16(value.count)
        // SAFETY: the list is not too large, so its values fit the arena.
        if let source = value.baseAddress {
            unsafe (arena.baseAddress! + used).copyMemory(from: source, byteCount: value.count)
        }
        used += value.count
    }

    /// The value of a field; nil where it did not occur.
    subscript(name: Name) -> UnsafeRawBufferPointer? {
        guard seen & (1 << UInt16(name.rawValue)) != 0 else { return nil }
        let offset = Int(offsets[name.rawValue])
        // SAFETY: the field was seen, so its range was written since `reset`.
        return unsafe UnsafeRawBufferPointer(
            rebasing: arena[offset..<offset + Int(counts[name.rawValue])])
    }
}

extension RequestFieldName {
    /// The name spelled by these bytes; nil for a field that APNs ignores.
    init?(_ octets: UnsafeRawBufferPointer) {
        let candidate: Self
        switch octets.count {
        case 4: candidate = .host
        case 5: candidate = .path
        case 7:
            switch unsafe octets[1] {
            case UInt8(ascii: "m"): candidate = .method
            case UInt8(ascii: "s"): candidate = .scheme
            default: candidate = .identifier
            }
        case 10: candidate = unsafe octets[0] == UInt8(ascii: ":") ? .authority : .topic
        case 13:
            candidate = unsafe octets[1] == UInt8(ascii: "u") ? .authorization : .priority
        case 14: candidate = .pushType
        case 15: candidate = .expiration
        case 16: candidate = .collapseIdentifier
        default: return nil
        }
        guard unsafe octets.spells(candidate.text) else { return nil }
        self = candidate
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes are exactly those of `text`.
    @inline(__always)
    func spells(_ text: StaticString) -> Bool {
        unsafe count == text.utf8CodeUnitCount
            // SAFETY: both are `count` bytes long; only an empty one may have no address.
            && (count == 0 || memcmp(baseAddress!, text.utf8Start, count) == 0)
    }

    /// Whether these bytes are exactly those of `other`.
    @inline(__always)
    func equals(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        return unsafe count == 0
            || other.withUnsafeBytes { unsafe memcmp(baseAddress!, $0.baseAddress!, count) == 0 }
    }
}
