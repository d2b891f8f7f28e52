import BroadsideAPNs
package import BroadsideHPACK

extension ReactorSettings {
    /// Fields of a request in the order in which they are sent. The value of the path is left
    /// empty, because its length depends on the token; the template writes it.
    ///
    /// - Parameters:
    ///   - version: Version of the provider token in `authorization`.
    ///   - personalTopicCount: Size in bytes of a hole for the row's own topic; nil if all rows
    ///     have the same topic.
    ///   - personalCollapseCount: Size in bytes of a hole for the row's own collapse ID; nil: no
    ///     hole.
    ///   - ownPriorityCount: Size in bytes of a hole for the priority of the row's arm; nil: no
    ///     hole, because the campaign's priority applies.
    ///   - personalLength: Whether payloads differ per row. If so, content-length is a hole of one
    ///     byte at the very end, because a template has to write a varying number of digits.
    package func fields(
        authorization: [UInt8]?, version: UInt32, personalTopicCount: Int? = nil,
        personalCollapseCount: Int? = nil, ownPriorityCount: Int? = nil,
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
        if let personalTopicCount {
            fields.append(RequestField(.topic, .hole(count: personalTopicCount)))
        }
        add(.pushType, pushType)
        fields.append(RequestField(.identifier, .hole(count: NotificationID.textCount)))
        add(.expiration, expiration)
        add(.collapseIdentifier, collapseIdentifier)
        if let personalCollapseCount {
            fields.append(RequestField(.collapseIdentifier, .hole(count: personalCollapseCount)))
        }
        if let ownPriorityCount {
            fields.append(RequestField(.priority, .hole(count: ownPriorityCount)))
        } else {
            add(.priority, priority)
        }
        if sendsContentLength {
            // A content-length that is constant over the run is indexed like other constants;
            // otherwise it is a literal each time, with a name from the static table.
            fields.append(
                personalLength
                    ? RequestField(.contentLength, .hole(count: 1))
                    : RequestField(.contentLength, .constant(Array("\(payload.count)".utf8))))
        }
        return fields
    }
}
