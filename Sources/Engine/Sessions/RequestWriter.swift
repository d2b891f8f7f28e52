import BroadsideAPNs
import BroadsideHPACK
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport
import BroadsideTLS

/// What requests are written with: their precomputed forms, payloads, and the record that is being
/// filled. One for all connections of a reactor, which fill their records one after the other.
///
/// Payloads are constant, the same for all rows, or templated: then a row's field values lie in the
/// slab, and its payload is written from them whenever it goes out. Which of the two it is, nobody
/// else asks.
@safe struct RequestWriter: ~Copyable {
    let settings: ReactorSettings
    let isTemplated: Bool
    private var renderer: PayloadRenderer
    /// The most bytes that a payload has, and the least, so far as they are known before the row is.
    let payloadLimit: Int
    let payloadByteCountMin: Int
    /// The payload where it is constant; else room for a row's.
    // SAFETY: `payloadLimit` bytes, freed in `deinit`; a payload is written there before it is
    // read.
    private let payloadBytes: UnsafeMutableRawBufferPointer
    /// Room for a row's field values where they do not lie one behind the other.
    // SAFETY: `fieldLimit` bytes, the most that a row may have; freed in `deinit`.
    private let fieldValueScratch: UnsafeMutableRawBufferPointer

    // What HTTP/2 requests are made of: see `RequestWriter+HTTP2`.

    var templates = TemplateCache<RequestTemplate>()
    var personalTemplates = TemplateCache<PersonalTemplate>()
    /// The value of `authorization` that requests carry, and which of the run's provider tokens it is.
    private(set) var authorization: [UInt8]?
    private(set) var authorizationVersion: UInt32 = 0
    private var hasAuthorization = false
    /// How requests read on the connection that the record is for.
    var key: TemplateKey?
    var current: RequestTemplate?
    /// A template that serves one request, and the header table after that.
    var trial: (template: RequestTemplate, mirror: DynamicTableMirror)?

    // The record.

    /// The plaintext of the record that is being filled.
    // SAFETY: `recordPlaintextLimit` bytes, freed in `deinit`; the first `recordCount` are set,
    // which is at most `recordLimit`, and that at most all of them, as the reactor begins records.
    let staging: UnsafeMutableRawBufferPointer
    /// Bytes that are in it, and that it may have.
    var recordCount = 0
    private var recordLimit = 0
    /// Bytes that there has to be room for before a row is taken.
    var rowLimit = 0

    init(settings: ReactorSettings, layout: RowLayout) {
        self.settings = settings
        isTemplated = settings.personal != nil
        let payloads = settings.personal ?? PayloadSet(constant: settings.payload)
        renderer = PayloadRenderer(payloads, layout: layout)
        payloadLimit = settings.personal?.limit ?? settings.payload.count
        payloadByteCountMin = settings.personal == nil ? settings.payload.count : 1
        // SAFETY: a constant payload is as long as `payloadLimit`; nothing else is read before it
        // is set.
        unsafe staging = .allocate(byteCount: recordPlaintextLimit, alignment: 64)
        unsafe fieldValueScratch = .allocate(byteCount: Self.fieldLimit(settings), alignment: 8)
        unsafe payloadBytes = .allocate(byteCount: payloadLimit, alignment: 8)
        if settings.personal == nil { unsafe payloadBytes.copyBytes(from: settings.payload) }
    }

    deinit {
        templates.deallocate()
        personalTemplates.deallocate()
        // SAFETY: allocated in `init`; pointers into them go no further than the call that asked
        // for them.
        unsafe fieldValueScratch.deallocate()
        unsafe payloadBytes.deallocate()
        unsafe cleanse(staging)
        unsafe staging.deallocate()
    }

    // MARK: The record

    /// Begins a record of at most so many bytes.
    mutating func beginRecord(limit: Int) {
        recordCount = 0
        recordLimit = limit
    }

    var record: UnsafeRawBufferPointer {
        // SAFETY: `recordCount` bytes are set, see `staging`.
        unsafe UnsafeRawBufferPointer(rebasing: staging[..<recordCount])
    }

    var recordRoom: Int { recordLimit - recordCount }

    // SAFETY: at most the end of `staging`; its users ask for `recordRoom` first.
    var recordEnd: UnsafeMutableRawPointer { unsafe staging.baseAddress! + recordCount }

    var freeRecord: UnsafeMutableRawBufferPointer {
        // SAFETY: both ends lie inside of `staging`, see there.
        unsafe UnsafeMutableRawBufferPointer(rebasing: staging[recordCount..<recordLimit])
    }

    /// Whether the record has room for another row's request, so far as that is known before the row.
    var hasRoom: Bool { recordRoom >= rowLimit }

    // MARK: The provider token

    /// Whether requests carry another token than the run's, or the run's is not known yet.
    @inline(__always)
    func isOutdated(_ version: UInt32) -> Bool {
        version != authorizationVersion || !hasAuthorization
    }

    /// Has requests carry that token, and forgets what was written with an older one.
    mutating func use(_ authorization: (value: [UInt8]?, version: UInt32)) {
        hasAuthorization = true
        self.authorization = authorization.value
        guard authorization.version != authorizationVersion else { return }
        templates.removeAll(olderThan: authorization.version)
        personalTemplates.removeAll(olderThan: authorization.version)
        authorizationVersion = authorization.version
    }

    // MARK: Field values and payloads

    /// The most bytes that a row has of its own besides its token.
    static func fieldLimit(_ settings: ReactorSettings) -> Int {
        settings.personal.map { PayloadRenderer.piecesLimit($0.limit) } ?? 0
    }

    /// Values that have no payload of their own.
    var fallbackCounts: FallbackCounts { renderer.fallbackCounts }

    /// Keeps the field values of the row that `reader` read last, if payloads are made of any.
    ///
    /// - Returns: Why the row can't be sent; nil if it can.
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
            return reason
        case .made(let shape):
            slab.keep(renderer.lastPieces, shape: shape, of: tag)
            return nil
        }
    }

    /// A row's field values, for another reactor; empty if it has none.
    func values(of tag: RowTag, in slab: borrowing RowSlab) -> [UInt8] {
        // SAFETY: the scratch has room for any row's pieces, and they are copied.
        isTemplated ? unsafe Array(slab.fieldValues(tag, scratch: fieldValueScratch)) : []
    }

    /// Keeps the field values of a row that another reactor had.
    func keep(_ row: PendingRow, values: [UInt8], of tag: RowTag, in slab: inout RowSlab) {
        guard isTemplated else { return }
        slab.keep(values.rawSpan, shape: row.personal, of: tag)
    }

    func fieldValues(of tag: RowTag, in slab: borrowing RowSlab) -> UnsafeRawBufferPointer {
        // SAFETY: the scratch has room for any row's pieces; the caller uses them before another
        // row's.
        unsafe slab.fieldValues(tag, scratch: fieldValueScratch)
    }

    /// A row's payload; a templated one is good until the next row's.
    func payload(of tag: RowTag, in slab: borrowing RowSlab) -> UnsafeRawBufferPointer {
        // SAFETY: a payload has at most `payloadLimit` bytes, as the renderer counted it when it
        // was made; of what is returned all bytes are set.
        guard isTemplated else { return unsafe UnsafeRawBufferPointer(payloadBytes) }
        let shape = slab[tag].personal
        unsafe writePayload(
            shape, pieces: fieldValues(of: tag, in: slab), to: payloadBytes.baseAddress!)
        return unsafe UnsafeRawBufferPointer(
            rebasing: payloadBytes[..<Int(shape.payloadCount)])
    }

    /// Writes a payload from a row's field values.
    func writePayload(
        _ shape: PayloadRenderer.Shape, pieces fieldValues: UnsafeRawBufferPointer,
        to output: UnsafeMutableRawPointer
    ) {
        // SAFETY: the caller's pieces were made for this shape, and it has room for the payload.
        unsafe renderer.writePayload(shape, pieces: fieldValues, to: output)
    }

    /// What the campaign learns: a payload that all rows have is refused for all of them.
    func campaignSignal(for signal: ResponseClass.CampaignSignal) -> ResponseClass.CampaignSignal {
        signal == .refusesPayload && !isTemplated ? .refusesRequest : signal
    }
}
