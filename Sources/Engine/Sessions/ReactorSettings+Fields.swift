import BroadsideAPNs
package import BroadsideHPACK

extension ReactorSettings {
    /// The fields of a request in the order in which they go out. The path is an empty hole: its
    /// length differs with the token's, so the template writes it.
    ///
    /// - Parameters:
    ///   - version: Which provider token of the run `authorization` is.
    ///   - personalCollapseCount: The bytes of a row's own collapse ID, a hole; nil: it has none.
    ///   - personalLength: Rows have payloads of their own: the content-length is a hole of one
    ///     byte, at the very end, because a template has to write as many digits as it takes.
    package func fields(
        authorization: [UInt8]?, version: UInt32, personalCollapseCount: Int? = nil,
        personalLength: Bool = false
    ) -> [RequestField] {
        var fields = [
            RequestField(.method, "POST"),
            RequestField(.scheme, "https"),
            RequestField(.path, .hole(count: 0)),
            RequestField(.authority, .constant(authority)),
        ]
        func add(_ name: RequestFieldName, _ value: [UInt8]?, revision: UInt32 = 0) {
            guard let value else { return }
            fields.append(RequestField(name, .constant(value), revision: revision))
        }
        add(.authorization, authorization, revision: version)
        add(.topic, topic)
        add(.pushType, pushType)
        fields.append(RequestField(.identifier, .hole(count: NotificationID.textCount)))
        add(.expiration, expiration)
        add(.collapseIdentifier, collapseIdentifier)
        if let personalCollapseCount {
            fields.append(RequestField(.collapseIdentifier, .hole(count: personalCollapseCount)))
        }
        add(.priority, priority)
        if sendsContentLength {
            // Unchanged over the run, it is one of the constants; else a literal each time, its name
            // that of the static table.
            fields.append(
                personalLength
                    ? RequestField(.contentLength, .hole(count: 1))
                    : RequestField(.contentLength, .constant(Array("\(payload.count)".utf8))))
        }
        return fields
    }
}
