import BroadsideAPNs

extension PayloadLint {
    /// Reports that a payload has no `aps`. It may be a request to another service, which contains
    /// the payload in another form.
    mutating func checkMissing() {
        switch pushType {
        case .alert, .background, .liveActivity, .widgets, .accessory:
            if let (member, message) = foreignRequest() {
                error(member.keyOffset, message)
            } else if let magic = document.member([], "mdm") {
                error(
                    magic.keyOffset,
                    "has 'mdm' and no 'aps', as pushes for device management (MDM) do: add "
                        + "--push-type mdm")
            } else if document.members.isEmpty, pushType == .alert {
                let message = "is empty, which is right only for a Wallet pass update: add aps"
                // A pass type ID begins with `pass.`.
                topic?.hasPrefix("pass.") ?? true ? warn(nil, message) : error(nil, message)
            } else {
                error(nil, "has no 'aps': add it; your own keys go beside it")
            }
        default: warn(nil, "has no 'aps', which Apple requires in every payload: add it")
        }
    }

    /// The member that shows for which service a payload is, and the message about it.
    private func foreignRequest() -> (member: PayloadDocument.Member, message: String)? {
        let members = document.members(of: [])
        if let outer = members.first(where: { document.member([$0.key], "aps") != nil }) {
            return (
                outer,
                "has 'aps' inside '\(outer.key)', where devices ignore it: write {\"aps\":...} "
                    + "without '\(outer.key)' around it"
            )
        }
        for member in members {
            if member.key == "APNS" || member.key.hasPrefix("APNS_") {
                return (
                    member,
                    "has no 'aps' but '\(member.key)', as Amazon SNS's messages do: write the JSON "
                        + "object that is inside '\(member.key)' as text, {\"aps\":...}"
                )
            }
            guard let service = Self.service(of: member) else { continue }
            return (
                member,
                "has no 'aps' but '\(member.key)', as \(service) do: APNs needs "
                    + "{\"aps\":{\"alert\":{\"title\":..., \"body\":...}}}"
            )
        }
        return nil
    }

    /// The kind of messages that have such a member.
    private static func service(of member: PayloadDocument.Member) -> String? {
        switch member.key {
        case "notifications" where member.kind == .array: "gorush's requests"
        case "notification", "message", "registration_ids", "data", "to": "Firebase's messages"
        default: nil
        }
    }
}
