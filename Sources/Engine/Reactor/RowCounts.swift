/// Rows by state.
package struct RowCounts: Sendable, Equatable {
    package var accepted: UInt64 = 0
    package var rejected: UInt64 = 0
    package var invalid: UInt64 = 0
    package var skipped: UInt64 = 0
    package var failed: UInt64 = 0
    package var unknown: UInt64 = 0

    package init() {}

    package var settled: UInt64 {
        accepted + rejected + invalid + skipped + failed + unknown
    }

    /// Rows that a request was made for.
    package var sent: UInt64 { accepted + rejected + failed + unknown }
}
