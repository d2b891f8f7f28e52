internal import BroadsideAPNs
internal import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

extension PayloadFiles {
    /// Compiles the options of each arm; nil if there are no arms.
    ///
    /// - Parameters:
    ///   - hasCommon: Whether there is a payload for arms that have no payload of their own.
    ///   - addPayload: Reads a payload file and returns its index among the templates.
    ///   - identity: Receives the parts of the campaign's identity that the payloads do not cover.
    static func arms(
        _ options: SendOptions, hasCommon: Bool, identity: inout [UInt8],
        addPayload: (String, InputName, inout [UInt8]) throws(BroadsideError) -> Int
    ) throws(BroadsideError) -> ArmPayloads? {
        guard let split = options.split else { return nil }
        var own: [ArmPayloads.Own] = []
        for arm in split.arms {
            var values = ArmPayloads.Own()
            let given = options.arms.first { $0.name == arm.name }
            identity += Array("arm \(arm.name)\n".utf8)
            if let path = given?.payload {
                let name = InputName(path, option: "arm")
                values.template = try addPayload(path, name, &identity)
            } else if !hasCommon, arm.name != ArmSplit.holdoutName {
                throw .usage(
                    "arm",
                    "is missing for \(arm.name), and there is no --payload: add --arm "
                        + "\(arm.name)=FILE")
            }
            if let text = given?.collapseID {
                values.collapse = try collapse(text, option: "arm-collapse-id", ofArm: arm.name)
                identity += Array("collapse \(text)\n".utf8)
            }
            values.priority = given?.priority
            if let priority = given?.priority {
                identity += Array("priority \(priority.rawValue)\n".utf8)
            }
            own.append(values)
        }
        return ArmPayloads(split: split, own: own)
    }

    /// Compiles an arm's collapse ID. If `name` is nil, compiles the campaign's collapse ID, which
    /// is for the arms without their own.
    static func collapse(
        _ text: String, option: String, ofArm name: String?
    ) throws(BroadsideError) -> TextTemplate {
        let prefix = name.map { "\($0): " } ?? ""
        do throws(TextTemplate.Problem) {
            let template = try TextTemplate(text)
            let constant = template.constant
            guard constant.count <= NotificationHeaders.maximumCollapseIDCount else {
                throw TextTemplate.Problem(
                    message:
                        "must have at most \(NotificationHeaders.maximumCollapseIDCount) bytes; "
                        + "this has \(constant.count)")
            }
            if !template.isPersonal, !NotificationHeaders.isCollapseID(constant.rawSpan) {
                throw TextTemplate.Problem(
                    message: "'\(printable(text))' can't be a header: use visible characters")
            }
            return template
        } catch {
            throw .usage(option, "\(prefix)\(error.message)")
        }
    }
}

extension NotificationHeaders {
    /// Refuses a priority of an arm that the push type does not permit.
    ///
    /// - Returns: Warnings about the priorities of arms, which the campaign's priority does not
    ///   cause.
    func checkArms(
        _ options: SendOptions, credential: Credential
    ) throws(BroadsideError) -> [String] {
        let known = validate(credential: credential)
        var warnings: [String] = []
        for arm in options.arms {
            guard let priority = arm.priority else { continue }
            var headers = self
            headers.priority = priority
            for problem in headers.validate(credential: credential)
            where problem.field == .priority && !known.contains(problem) {
                guard !problem.isError else {
                    throw .usage(
                        "arm-priority", "\(arm.name)=\(priority.rawValue) \(problem.message)")
                }
                warnings.append("--arm-priority \(arm.name): \(problem.message)")
            }
        }
        return warnings
    }
}

extension SendOptions {
    /// Checks the options of arms. Each option must name an arm that is sent, and the protocol must
    /// support the option.
    func checkArms() throws(BroadsideError) {
        guard let split else { return }
        for arm in arms {
            guard split.number(of: arm.name) != nil else {
                throw .usage(
                    "arm",
                    "'\(printable(arm.name))' is not an arm of --split: name one of "
                        + split.names.filter { $0 != ArmSplit.holdoutName }.joined(separator: ", "))
            }
            guard arm.name != ArmSplit.holdoutName else {
                throw .usage("arm", "holdout receives nothing: leave it out")
            }
            if wireProtocol == .binary, arm.priority != nil {
                throw .usage(
                    "arm-priority",
                    "does not work with --protocol binary, where all arms have one priority: leave "
                        + "it out")
            }
            if wireProtocol == .binary, arm.collapseID != nil {
                throw .usage(
                    "arm-collapse-id",
                    "does not work with --protocol binary, which has no collapse IDs: leave it out")
            }
        }
    }

    /// Whether some arm has its own collapse ID.
    var armsHaveCollapse: Bool { arms.contains { $0.collapseID != nil } }

    /// Description of the arms; nil if there are none.
    var armsDescription: String? {
        guard let split else { return nil }
        let shares = split.arms.map { arm in
            "\(arm.name) \(ArmSplit.percentText(arm.hundredths))%"
                + (arm.name == ArmSplit.holdoutName ? " (receives nothing)" : "")
        }
        return "\(shares.joined(separator: ", ")); by the salt '\(printable(split.salt))'"
    }
}
