public import BroadsideSimulator
public import Testing

/// Trait that gives a test, or each test of a suite, a simulated APNs: `SimulatedAPNs.current`.
public struct SimulatedAPNsTrait: TestTrait, SuiteTrait, TestScoping {
    let configure: @Sendable (inout SimulatorOptions) -> Void

    /// Whether each test of a suite has a simulated APNs of its own.
    public var isRecursive: Bool { true }

    /// Runs a test with a simulated APNs of its own.
    public func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let apns = try SimulatedAPNs(configure)
        defer { apns.stop() }
        try await SimulatedAPNs.$current.withValue(apns) { try await function() }
    }
}

extension Trait where Self == SimulatedAPNsTrait {
    /// A simulated APNs with default options.
    public static var simulatedAPNs: Self { simulatedAPNs { _ in } }

    /// A simulated APNs with options that a closure changes.
    public static func simulatedAPNs(
        _ configure: @escaping @Sendable (inout SimulatorOptions) -> Void
    ) -> Self {
        SimulatedAPNsTrait(configure: configure)
    }
}
