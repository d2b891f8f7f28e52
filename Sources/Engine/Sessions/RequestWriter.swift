import APNs
import Campaign
import HPACK
import Support
import TLS

/// What requests are written with: their precomputed forms, the fields of rows that have payloads of
/// their own, and the record that is being filled.
@safe struct RequestWriter: ~Copyable {
    var templates = TemplateCache<RequestTemplate>()
    var personalTemplates = TemplateCache<PersonalTemplate>()
    /// True if rows have more of their own than their token.
    let isPersonal: Bool
    var personalizer: RowPersonalizer
    /// The version of the provider token that the templates carry.
    var authorizationVersion: UInt32 = 0

    /// The plaintext of the record that is being filled.
    let staging: UnsafeMutableRawBufferPointer
    /// A row's pieces put together, and its payload if it goes in parts.
    let piecesScratch: UnsafeMutableRawBufferPointer
    let payloadScratch: UnsafeMutableRawBufferPointer

    init(settings: ReactorSettings, layout: RowLayout) {
        isPersonal = settings.personal != nil
        let payloads = settings.personal ?? PayloadSet(constant: settings.payload)
        personalizer = RowPersonalizer(payloads, layout: layout)
        let fieldLimit = Self.fieldLimit(settings)
        unsafe staging = .allocate(byteCount: recordPlaintextLimit, alignment: 64)
        unsafe piecesScratch = .allocate(byteCount: fieldLimit, alignment: 8)
        unsafe payloadScratch = .allocate(byteCount: isPersonal ? payloads.limit : 0, alignment: 8)
    }

    deinit {
        templates.deallocate()
        personalTemplates.deallocate()
        unsafe piecesScratch.deallocate()
        unsafe payloadScratch.deallocate()
        unsafe cleanse(staging)
        unsafe staging.deallocate()
    }

    /// The most bytes that a row has of its own besides its token.
    static func fieldLimit(_ settings: ReactorSettings) -> Int {
        settings.personal.map { RowPersonalizer.piecesLimit($0.limit) } ?? 0
    }

    /// Forgets what was written with an older provider token.
    @inline(__always)
    mutating func follow(authorizationVersion version: UInt32) {
        guard version != authorizationVersion else { return }
        templates.removeAll(olderThan: version)
        personalTemplates.removeAll(olderThan: version)
        authorizationVersion = version
    }
}
