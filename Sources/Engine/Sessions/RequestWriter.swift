import BroadsideAPNs
import BroadsideHPACK
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport
import BroadsideTLS

/// Writer of requests. It has the precomputed templates, the payloads and the current record. All
/// connections of a reactor share it and fill their records one after the other.
///
/// A payload is either constant for all rows or templated. Only this type distinguishes the two.
/// The slab has the field values for a template, and the payload is rendered each time it is sent.
@safe struct RequestWriter: ~Copyable {
    let settings: ReactorSettings
    let isTemplated: Bool
    /// The topics that rows name; nil: all rows have the same topic.
    let topics: RowTopics?
    /// The campaign's arms; nil: there are none.
    let arms: ArmPayloads?
    /// Each arm's own priority, by the arm's number; 0 if the campaign's priority applies.
    let armPriorities: InlineArray<16, UInt8>
    private var renderer: PayloadRenderer
    /// Maximum and minimum payload size, as far as they are known before a row is read.
    let payloadLimit: Int
    let payloadByteCountMin: Int
    /// The constant payload, or a buffer for one row's payload.
    // SAFETY: `payloadLimit` bytes, freed in `deinit`; a payload is written there before it is
    // read.
    private let payloadBytes: UnsafeMutableRawBufferPointer
    /// The buffer for a row's field values if they are not contiguous.
    // SAFETY: `fieldLimit` bytes, the maximum per row; freed in `deinit`.
    private let fieldValueScratch: UnsafeMutableRawBufferPointer

    // Templates of HTTP/2 requests, see `RequestWriter+HTTP2`.

    var templates = TemplateCache<RequestTemplate>()
    var personalTemplates: TemplateCache<PersonalTemplate>
    /// Value of `authorization` in requests, and the version of that provider token.
    private(set) var authorization: [UInt8]?
    private(set) var authorizationVersion: UInt32 = 0
    private var hasAuthorization = false
    /// Key of the template for the current record's connection.
    var key: TemplateKey?
    var current: RequestTemplate?
    /// Template for one request, and the header table after that request.
    var trial: (template: RequestTemplate, mirror: DynamicTableMirror)?

    // The current record.

    /// Plaintext of the current record.
    // SAFETY: `recordPlaintextLimit` bytes, freed in `deinit`. The first `recordCount` bytes are
    // set. `recordCount` is at most `recordLimit`, and `beginRecord` gets no limit that is beyond
    // the buffer.
    let staging: UnsafeMutableRawBufferPointer
    /// Number of bytes in the record, and limit on this number.
    var recordCount = 0
    private var recordLimit = 0
    /// Number of free bytes that the record must have before the next row is taken from the list.
    var rowLimit = 0

    init(settings: ReactorSettings, layout: RowLayout) {
        self.settings = settings
        isTemplated = settings.personal != nil
        topics = settings.personal?.topic?.topics
        arms = settings.personal?.arms
        var priorities = InlineArray<16, UInt8>(repeating: 0)
        for arm in 0..<(arms?.own.count ?? 0) {
            priorities[arm + 1] = arms?.priority(of: UInt8(arm + 1))?.rawValue ?? 0
        }
        armPriorities = priorities
        personalTemplates = TemplateCache(topics: topics == nil ? 0 : RowTopics.limit)
        let payloads = settings.personal ?? PayloadSet(constant: settings.payload)
        renderer = PayloadRenderer(payloads, layout: layout)
        payloadLimit = settings.personal?.limit ?? settings.payload.count
        payloadByteCountMin = settings.personal == nil ? settings.payload.count : 1
        // SAFETY: a constant payload has `payloadLimit` bytes; nothing else is read before it is
        // set.
        unsafe staging = .allocate(byteCount: recordPlaintextLimit, alignment: 64)
        unsafe fieldValueScratch = .allocate(byteCount: Self.fieldLimit(settings), alignment: 8)
        unsafe payloadBytes = .allocate(byteCount: payloadLimit, alignment: 8)
        if settings.personal == nil { unsafe payloadBytes.copyBytes(from: settings.payload) }
    }

    deinit {
        templates.deallocate()
        personalTemplates.deallocate()
        // SAFETY: allocated in `init`; no pointer into them outlives the call that requested it.
        unsafe fieldValueScratch.deallocate()
        unsafe payloadBytes.deallocate()
        unsafe cleanse(staging)
        unsafe staging.deallocate()
    }

    // MARK: The record

    /// Begins a record of at most `limit` bytes.
    mutating func beginRecord(limit: Int) {
        assert((1...recordPlaintextLimit).contains(limit), "a record has a limit")
        recordCount = 0
        recordLimit = limit
    }

    var record: UnsafeRawBufferPointer {
        // SAFETY: `recordCount` bytes are set, see `staging`.
        unsafe UnsafeRawBufferPointer(rebasing: staging[..<recordCount])
    }

    var recordRoom: Int { recordLimit - recordCount }

    // SAFETY: at most the end of `staging`; callers check `recordRoom` first.
    var recordEnd: UnsafeMutableRawPointer { unsafe staging.baseAddress! + recordCount }

    var freeRecord: UnsafeMutableRawBufferPointer {
        // SAFETY: both ends are inside `staging`, see there.
        unsafe UnsafeMutableRawBufferPointer(rebasing: staging[recordCount..<recordLimit])
    }

    /// Whether the record can hold a further request, as far as is known before the row is read.
    var hasRoom: Bool { recordRoom >= rowLimit }

    // MARK: The provider token

    /// Whether requests carry a token that is older than this version, or no token has been set
    /// yet.
    @inline(__always)
    func isOutdated(_ version: UInt32) -> Bool {
        version != authorizationVersion || !hasAuthorization
    }

    /// Switches requests to a token, and drops templates that contain an older token.
    mutating func use(_ authorization: (value: [UInt8]?, version: UInt32)) {
        hasAuthorization = true
        self.authorization = authorization.value
        assert(authorization.version >= authorizationVersion, "provider tokens only get newer")
        guard authorization.version != authorizationVersion else { return }
        templates.removeAll(olderThan: authorization.version)
        personalTemplates.removeAll(olderThan: authorization.version)
        authorizationVersion = authorization.version
    }

    // MARK: Field values and payloads

    /// Maximum bytes of a row's field values.
    static func fieldLimit(_ settings: ReactorSettings) -> Int {
        settings.personal.map { PayloadRenderer.piecesLimit($0.limit) } ?? 0
    }

    /// Number of rows whose payload has a shortened value; nil if no payload shortens values.
    var shortenedRows: UInt64? { renderer.mayShorten ? renderer.shortenedRows : nil }

    /// Row count for each value of the `--payload-by` column that has no payload file.
    var fallbackCounts: FallbackCounts { renderer.fallbackCounts }

    /// Stores the field values of the row that `reader` read last, if payloads are templated.
    ///
    /// - Returns: Reason why the row can't be sent; nil if it can.
    @inline(__always)
    mutating func keepValues(
        from reader: borrowing RowReader, of tag: RowTag, in slab: inout RowSlab
    ) -> Reason? {
        isTemplated ? keepMade(from: reader, of: tag, in: &slab) : nil
    }

    @inline(never)
    private mutating func keepMade(
        from reader: borrowing RowReader, of tag: RowTag, in slab: inout RowSlab
    ) -> Reason? {
        switch renderer.render(reader) {
        case .invalid(let reason):
            slab[tag].personal.arm = renderer.lastArm
            return reason
        case .made(let shape):
            slab.keep(renderer.lastPieces, shape: shape, of: tag)
            return nil
        }
    }

    /// Stores the arm of the row that `reader` read last. The row is settled without a request.
    @inline(__always)
    mutating func keepArm(
        from reader: borrowing RowReader, of tag: RowTag, in slab: inout RowSlab
    ) {
        if arms != nil { slab[tag].personal.arm = renderer.findArm(reader) }
    }

    /// A row's field values, for another reactor; empty for a constant payload.
    func values(of tag: RowTag, in slab: borrowing RowSlab) -> [UInt8] {
        // SAFETY: the scratch buffer has room for any row's field values, and they are copied.
        isTemplated ? unsafe Array(slab.fieldValues(tag, scratch: fieldValueScratch)) : []
    }

    /// Stores the field values of a row from another reactor.
    func keep(_ row: PendingRow, values: [UInt8], of tag: RowTag, in slab: inout RowSlab) {
        guard isTemplated else { return }
        slab.keep(values.rawSpan, shape: row.personal, of: tag)
    }

    func fieldValues(of tag: RowTag, in slab: borrowing RowSlab) -> UnsafeRawBufferPointer {
        // SAFETY: the scratch buffer has room for any row's field values; the caller uses them
        // before it requests another row's.
        unsafe slab.fieldValues(tag, scratch: fieldValueScratch)
    }

    /// A row's payload; a templated one is valid until the next call.
    func payload(of tag: RowTag, in slab: borrowing RowSlab) -> UnsafeRawBufferPointer {
        // SAFETY: a payload has at most `payloadLimit` bytes, counted by the renderer when it was
        // made; all returned bytes are set.
        guard isTemplated else { return unsafe UnsafeRawBufferPointer(payloadBytes) }
        let shape = slab[tag].personal
        unsafe writePayload(
            shape, pieces: fieldValues(of: tag, in: slab), to: payloadBytes.baseAddress!)
        return unsafe UnsafeRawBufferPointer(
            rebasing: payloadBytes[..<Int(shape.payloadCount)])
    }

    /// Renders a payload from a row's field values.
    func writePayload(
        _ shape: PayloadRenderer.Shape, pieces fieldValues: UnsafeRawBufferPointer,
        to output: UnsafeMutableRawPointer
    ) {
        // SAFETY: the caller's field values were made for this layout, and the caller has room for
        // the payload.
        unsafe renderer.writePayload(shape, pieces: fieldValues, to: output)
    }

    /// Returns what a response's signal means for the campaign. If all rows have the same payload,
    /// a refused payload counts as a refused request, because all rows would be refused.
    func campaignSignal(for signal: ResponseClass.CampaignSignal) -> ResponseClass.CampaignSignal {
        signal == .refusesPayload && !isTemplated ? .refusesRequest : signal
    }
}
