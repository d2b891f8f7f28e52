internal import BroadsideHPACK

/// The header fields of one request that mean something to APNs: where their values lie.
///
/// The values lie in a scratch area that is used anew for the next request, so a head is looked at
/// once, as soon as its header block is complete.
@safe struct RequestHead: ~Copyable {
    /// The fields that are told apart; all others are ignored, as APNs ignores them.
    typealias Name = RequestFieldName

    /// Where the values are copied to.
    // SAFETY: `SimulatorLimits.headerListSize` bytes, freed in `deinit`; the first `used` are set.
    private let arena: UnsafeMutableRawBufferPointer
    private var used = 0
    private var offsets = InlineArray<12, UInt16>(repeating: 0)
    private var counts = InlineArray<12, UInt16>(repeating: 0)
    private var seen: UInt16 = 0
    /// A field that must occur once occurred twice.
    private(set) var hasDuplicates = false
    /// `content-encoding` names a coding.
    private(set) var claimsCompression = false
    /// As RFC 9113 section 6.5.2 counts: name, value and 32 a field.
    private(set) var listSize = 0

    /// An empty head with room for a whole header list.
    init() {
        // SAFETY: `used` says that nothing of it is set.
        unsafe arena = .allocate(byteCount: SimulatorLimits.headerListSize, alignment: 16)
    }

    // SAFETY: reached only through this value.
    deinit { unsafe arena.deallocate() }

    /// Forgets the fields.
    mutating func reset() {
        used = 0
        seen = 0
        hasDuplicates = false
        claimsCompression = false
        listSize = 0
    }

    /// More header fields than were announced to be taken.
    var isTooLarge: Bool { listSize > SimulatorLimits.headerListSize }

    /// Takes a field in.
    mutating func add(name: RawSpan, value: RawSpan) {
        let known = Name(name)
        if known == nil, name.matches("content-encoding"), !value.matches("identity") {
            claimsCompression = true
        }
        add(known, nameCount: name.byteCount, value: value)
    }

    /// Takes a field in whose name is told apart already.
    mutating func add(_ name: Name?, nameCount: Int, value: RawSpan) {
        listSize += nameCount + value.byteCount + 32
        guard !isTooLarge, let name else { return }
        let bit: UInt16 = 1 << UInt16(name.rawValue)
        if seen & bit != 0 {
            hasDuplicates = true
            return
        }
        seen |= bit
        offsets[name.rawValue] = UInt16(used)
        counts[name.rawValue] = UInt16(value.byteCount)
        // SAFETY: the list is not too large, so its values fit the arena; they lie elsewhere.
        unsafe value.withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(rebasing: arena[used...]).copyMemory(from: $0)
        }
        used += value.byteCount
    }

    /// `:authority` and `host` differ (RFC 9113 section 8.3.1: both, if present, agree).
    var namesTwoHosts: Bool {
        guard let host = self[.host], let authority = self[.authority] else { return false }
        return !host.equals(authority)
    }

    /// The value of a field; nil where it did not occur.
    subscript(name: Name) -> RawSpan? {
        @_lifetime(borrow self) get {
            guard seen & (1 << UInt16(name.rawValue)) != 0 else { return nil }
            // SAFETY: the field was seen, so its range was written since `reset`.
            let values = unsafe _overrideLifetime(RawSpan(_unsafeBytes: arena), borrowing: self)
            let offset = Int(offsets[name.rawValue])
            return values.extracting(offset..<offset + Int(counts[name.rawValue]))
        }
    }
}

extension RequestFieldName {
    /// The name spelled by these bytes; nil for a field that APNs ignores.
    init?(_ bytes: RawSpan) {
        let candidate: Self
        switch bytes.byteCount {
        case 4: candidate = .host
        case 5: candidate = .path
        case 7:
            switch bytes[1] {
            case UInt8(ascii: "m"): candidate = .method
            case UInt8(ascii: "s"): candidate = .scheme
            default: candidate = .identifier
            }
        case 10: candidate = bytes[0] == UInt8(ascii: ":") ? .authority : .topic
        case 13:
            candidate = bytes[1] == UInt8(ascii: "u") ? .authorization : .priority
        case 14: candidate = .pushType
        case 15: candidate = .expiration
        case 16: candidate = .collapseIdentifier
        default: return nil
        }
        guard bytes.matches(candidate.text) else { return nil }
        self = candidate
    }
}
