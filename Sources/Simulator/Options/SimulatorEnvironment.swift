/// Which of Apple's two environments is simulated; they share nothing.
public enum SimulatorEnvironment: String, Sendable, CaseIterable, Codable {
    /// Where apps from the App Store and TestFlight get their notifications.
    case production
    /// Where development builds do.
    case development

    var byte: UInt8 { self == .production ? 1 : 2 }
    var other: SimulatorEnvironment { self == .production ? .development : .production }
}
