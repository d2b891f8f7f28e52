internal import BroadsidePrimitives
import BroadsideSupport

extension CampaignFile {
    /// Key in a campaign file for the options of arms. Its value is an object with one object per
    /// arm. It replaces the options that a command line repeats for each arm.
    static let armsKey = "arms"

    /// Options that an arm may have, by their keys in a file.
    private static let armOptions = [
        "payload": "arm", "collapse-id": "arm-collapse-id", "priority": "arm-priority",
    ]

    /// Converts `arms: {a: {payload: FILE}}` to the options `--arm a=FILE` and so on.
    ///
    /// - Parameter named: Formats a position for messages.
    static func armEntries(
        _ arms: JSON5Value.Member, _ named: (JSON5Position) -> String
    ) throws(BroadsideError) -> [Entry] {
        let shape = "it must be like { a: { payload: \"a.json\" } }"
        guard case .object(let members) = arms.value.content else {
            throw .request(
                "\(named(arms.value.position)): 'arms' is \(arms.value.kindDescription): \(shape)")
        }
        var values: [String: [String]] = [:]
        for arm in members {
            guard case .object(let settings) = arm.value.content else {
                throw .request(
                    "\(named(arm.value.position)): arm '\(printable(arm.name))' is "
                        + "\(arm.value.kindDescription): \(shape)")
            }
            for setting in settings {
                guard let option = armOptions[setting.name] else {
                    throw .request(
                        "\(named(setting.position)): unknown key '\(printable(setting.name))' of an "
                            + "arm: an arm has payload, collapse-id and priority")
                }
                let text: String
                switch setting.value.content {
                case .string(let value): text = value
                case .number(let value) where setting.name == "priority": text = value
                default:
                    throw .request(
                        "\(named(setting.value.position)): '\(setting.name)' is "
                            + "\(setting.value.kindDescription): it must be a string")
                }
                values[option, default: []].append("\(arm.name)=\(text)")
            }
        }
        return values.sorted { $0.key < $1.key }.map { option, texts in
            Entry(
                name: option, nameLocation: named(arms.position),
                location: named(arms.value.position), value: .strings(texts))
        }
    }
}
