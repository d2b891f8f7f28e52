public import APNs

/// Campaign files are JSON5, as scenarios are.
public typealias JSON5Reader = APNs.JSON5Reader
