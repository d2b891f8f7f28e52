import APNs

/// Campaign files are JSON5, as scenarios are.
typealias JSON5Reader = APNs.JSON5Reader
