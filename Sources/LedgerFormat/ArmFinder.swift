import BroadsideRows

/// Arms of a campaign's rows, for readers of its ledger: the one that was recorded, or the one that
/// the token has.
struct ArmFinder {
    private let chooser: ArmChooser
    private let names: [[UInt8]]

    init(_ split: ArmSplit) {
        chooser = ArmChooser(split)
        names = split.names.map { Array($0.utf8) }
    }

    /// Name of an arm; empty for number 0, and for one that the split does not have.
    func name(_ arm: UInt8) -> [UInt8] {
        arm == 0 || Int(arm) > names.count ? [] : names[Int(arm) - 1]
    }

    /// Number of the arm of a token.
    func arm(of digits: RawSpan) -> UInt8 { chooser.arm(of: digits) }
}
