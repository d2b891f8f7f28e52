internal import BroadsideHPACK
internal import BroadsidePrimitives
internal import BroadsideSupport

/// The header fields of one request that are relevant to APNs, as ranges of a scratch area.
///
/// The scratch area is reused by the next request, so a head is examined once, as soon as its
/// header block is complete.
@safe struct RequestHead: ~Copyable {
    /// The header fields that APNs reads. The simulator ignores all others, as APNs does.
    typealias Name = RequestFieldName

    /// The memory that holds copies of the values.
    // SAFETY: `SimulatorLimits.headerListSize` bytes, freed in `deinit`; the first `used` are
    // initialized.
    private let arena: UnsafeMutableRawBufferPointer
    private var used = 0
    private var offsets = InlineArray<12, UInt16>(repeating: 0)
    private var counts = InlineArray<12, UInt16>(repeating: 0)
    private var seen: UInt16 = 0
    /// Hashes of the names of fields that APNs does not read.
    private var otherNames: [UInt64] = []
    /// True if a field occurred twice.
    private(set) var hasDuplicates = false
    /// `apns-channel-id`; nil if absent. Only requests about channels have it.
    private(set) var channelID: [UInt8]?
    private(set) var requestID: [UInt8]?
    /// True if `content-encoding` declares compression.
    private(set) var claimsCompression = false
    /// The header list size as defined in RFC 9113 section 6.5.2: name, value and 32 bytes for each
    /// field.
    private(set) var listSize = 0

    /// Creates an empty head with storage for a whole header list.
    init() {
        // SAFETY: `used` is 0, so nothing is read before it is written.
        unsafe arena = .allocate(byteCount: SimulatorLimits.headerListSize, alignment: 16)
    }

    // SAFETY: the memory is accessible only through this value.
    deinit { unsafe arena.deallocate() }

    /// Removes all fields.
    mutating func reset() {
        used = 0
        seen = 0
        otherNames.removeAll(keepingCapacity: true)
        hasDuplicates = false
        channelID = nil
        requestID = nil
        claimsCompression = false
        listSize = 0
    }

    /// True if the header list exceeds the announced limit.
    var isTooLarge: Bool { listSize > SimulatorLimits.headerListSize }

    /// Adds a field.
    mutating func add(name: RawSpan, value: RawSpan) {
        let known = Name(name)
        if known == nil, name.matches("content-encoding"), !value.matches("identity") {
            claimsCompression = true
        }
        add(known, nameCount: name.byteCount, value: value)
        if known == nil, !isTooLarge {
            addOfChannel(name, value)
            addOther(name)
        }
    }

    private mutating func addOther(_ name: RawSpan) {
        // A client may divide cookies among fields (RFC 9113 section 8.2.3).
        guard !name.matches("cookie") else { return }
        let hash = MixingHash.hash(name)
        hasDuplicates = hasDuplicates || otherNames.contains(hash)
        otherNames.append(hash)
    }

    private mutating func addOfChannel(_ name: RawSpan, _ value: RawSpan) {
        if name.matches("apns-channel-id") {
            hasDuplicates = hasDuplicates || channelID != nil
            channelID = Array(value)
        } else if name.matches("apns-request-id") {
            hasDuplicates = hasDuplicates || requestID != nil
            requestID = Array(value)
        }
    }

    /// Adds a field whose name is already identified.
    mutating func add(_ name: Name?, nameCount: Int, value: RawSpan) {
        listSize += nameCount + value.byteCount + 32
        guard !isTooLarge, let name else { return }
        let bit: UInt16 = 1 << UInt16(name.rawValue)
        if seen & bit != 0 {
            hasDuplicates = true
            return
        }
        assert(used + value.byteCount <= SimulatorLimits.headerListSize)
        seen |= bit
        offsets[name.rawValue] = UInt16(used)
        counts[name.rawValue] = UInt16(value.byteCount)
        // SAFETY: the list is within its limit, so its values fit the arena; the source is outside
        // the arena.
        unsafe value.withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(rebasing: arena[used...]).copyMemory(from: $0)
        }
        used += value.byteCount
    }

    /// Whether `:authority` and `host` are both present and differ, which RFC 9113 section 8.3.1
    /// forbids.
    var namesTwoHosts: Bool {
        guard let host = self[.host], let authority = self[.authority] else { return false }
        return !host.equals(authority)
    }

    /// The value of a field, or nil if it is absent.
    subscript(name: Name) -> RawSpan? {
        @_lifetime(borrow self) get {
            guard seen & (1 << UInt16(name.rawValue)) != 0 else { return nil }
            // SAFETY: the field is present, so its range was written since `reset`.
            let values = unsafe _overrideLifetime(RawSpan(_unsafeBytes: arena), borrowing: self)
            let offset = Int(offsets[name.rawValue])
            return values.extracting(offset..<offset + Int(counts[name.rawValue]))
        }
    }
}

extension RequestFieldName {
    /// Creates a name from its bytes; nil for a field that APNs ignores.
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
