import BroadsidePrimitives

extension Scenario {
    /// Returns the scenario named by `--scenario` or the control socket. A text that contains a
    /// slash or a dot is a file name, any other is a built-in name.
    static func find(_ text: String) throws(SimulatorError) -> Scenario {
        if let entry = ScenarioLibrary.entries.first(where: { $0.name == text }) {
            return try read(Array(entry.text.utf8), name: text, place: "--scenario \(text)")
        }
        guard text.contains("/") || text.contains(".") else {
            throw SimulatorError(
                "--scenario '\(text)' is not a built-in scenario (see '--scenario list'): "
                    + "if it is a file, write ./\(text)",
                exitCode: 2)
        }
        return try read(
            try PrivateFile.read(text, option: "scenario"), name: text,
            place: "--scenario \(text)")
    }

    static func read(
        _ bytes: [UInt8], name: String, place: String
    ) throws(SimulatorError) -> Scenario {
        do throws(ScenarioError) {
            return try ScenarioReader.read(bytes, name: name)
        } catch {
            throw SimulatorError(
                "\(place), line \(error.position.line), column \(error.position.column): "
                    + error.message,
                exitCode: 2)
        }
    }
}

extension SimulatorOptions {
    /// The names of the built-in scenarios.
    public static var scenarioNames: [String] { ScenarioLibrary.entries.map(\.name) }

    /// The built-in scenarios, one per line with name and summary.
    public static var scenarioList: String { ScenarioLibrary.list }
}
