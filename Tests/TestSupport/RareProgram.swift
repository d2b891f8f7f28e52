import Foundation
package import Testing

/// A program that few tests need and that takes long to install: `tools/install-packages full`, or
/// `tools/install-clients --full`.
///
/// Tests and parts of documents that need one run in `tools/test --full`, which sets `BROADSIDE_FULL_TESTS`. There
/// they fail if it is not installed; elsewhere they are skipped, also if it is.
package enum RareProgram: String, CaseIterable, Sendable {
    case chromium = "Chromium"
    case duckDB = "DuckDB"
    case fish
    case go = "Go"
    case java = "Java"
    case node = "Node"
    case pandas
    /// With libraries for HTTP/2 and ES256.
    case perl = "Perl"
    /// With its extension for curl.
    case php = "PHP"
    case postgreSQL = "PostgreSQL"
    case prometheus = "Prometheus"
    /// With a library for HTTP/2.
    case ruby = "Ruby"
    case softHSM = "SoftHSM"
    case systemd
    case zsh

    /// Whether tests run that need one.
    package static let areTested =
        ProcessInfo.processInfo.environment["BROADSIDE_FULL_TESTS"] != nil

    /// The files of them that tests start by name.
    static let files: Set = [
        "chromium", "duckdb", "fish", "go", "node", "psql", "promtool", "softhsm2-util",
        "systemd-analyze", "zsh",
    ]
}

extension Trait where Self == ConditionTrait {
    /// The test runs in `tools/test --full` only, as it needs these.
    package static func needs(_ programs: RareProgram...) -> Self {
        let names = programs.map(\.rawValue).joined(separator: ", ")
        // tools/run-tests counts by the last words.
        return .enabled(if: RareProgram.areTested, "it needs \(names): tools/test --full")
    }
}
