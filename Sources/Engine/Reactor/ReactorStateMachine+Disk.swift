import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// What the rows ask of the ledger's segment now.
    @inline(__always)
    var ledgerDemand: SegmentRecorder.Demand {
        SegmentRecorder.Demand(
            isClosing: isClosing,
            isComplete: rows.chunks.asked == 0 || !rows.hasListRow(synced: recorder.synced),
            waitsForWritten: rows.waitsForSync(
                synced: recorder.synced, written: recorder.ledger.writtenPosition))
    }

    /// Nothing may be sent that can't be recorded.
    ///
    /// - Parameter errno: What the disk said; nil if all is well.
    mutating func followDisk(_ errno: Int32?) {
        guard let errno else { return }
        run.stop(.ledgerFailed(detail: describe(errno: errno)))
    }
}
