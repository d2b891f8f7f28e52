import BroadsideRows

/// Finds the arm of a ledger's row: from the recorded number, or from the row's token.
struct ArmFinder {
    private let chooser: ArmChooser
    private let names: [[UInt8]]

    init(_ split: ArmSplit) {
        chooser = ArmChooser(split)
        names = split.names.map { Array($0.utf8) }
    }

    /// Returns the name of an arm; empty for number 0 and for a number that the split does not
    /// have.
    func name(_ arm: UInt8) -> [UInt8] {
        arm == 0 || Int(arm) > names.count ? [] : names[Int(arm) - 1]
    }

    /// Returns the number of the arm to which the split assigns a token.
    func arm(of digits: RawSpan) -> UInt8 { chooser.arm(of: digits) }
}
