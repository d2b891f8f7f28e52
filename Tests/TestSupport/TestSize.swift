import Foundation

/// How much the tests try that have more cases, rows or kills than each run needs.
package enum TestSize {
    /// `tools/test --full`, which has all cases, and `--nightly`.
    package static let isFull = isSet("BROADSIDE_FULL_TESTS") || isLong
    /// `tools/test --nightly`, which has more rows and more kills.
    package static let isLong = isSet("BROADSIDE_LONG_TESTS")

    private static func isSet(_ variable: String) -> Bool {
        ProcessInfo.processInfo.environment[variable] != nil
    }

    /// All cases in `tools/test --full`; otherwise these few.
    package static func cases<Cases>(_ all: Cases, otherwise few: Cases) -> Cases {
        isFull ? all : few
    }
}
