/// The ends of requests and of the connection that come from the caller.
extension ClientConnectionStateMachine {
    /// Gives the request on `streamID` up: RST_STREAM with CANCEL, and no event for it any more.
    /// False if that stream is not open.
    @discardableResult
    public mutating func cancelStream(_ streamID: UInt32) -> Bool {
        guard case .open(let slot) = streams.lookUp(streamID) else { return false }
        if phase != .failed { queueReset(streamID: streamID, .cancel) }
        close(slot, .closedByUs)
        return true
    }

    /// The request that waits the longest for its answer; nil if none is open. All calls together
    /// look at each stream once.
    public mutating func oldestOpenStream() -> (streamID: UInt32, tag: UInt32)? {
        guard let slot = streams.oldestSlot() else { return nil }
        return (streams[slot].id, streams[slot].tag)
    }

    /// Calls `body` with the tag of each request that has no answer, in no order. Looks at every slot.
    public func forEachOpenStream(_ body: (_ tag: UInt32) -> Void) {
        for slot in 0..<streams.slotCount where streams[slot].state == .open {
            body(streams[slot].tag)
        }
    }

    /// After the transport died: forgets the oldest request that has no answer and returns its tag.
    /// Nil: there are no more.
    public mutating func takeOpenStream() -> UInt32? {
        guard let slot = streams.oldestSlot() else { return nil }
        close(slot, .closedByUs)
        return streams[slot].tag
    }

    /// Our own orderly end: a GOAWAY with NO_ERROR. Open streams go on, no new ones start. Once is
    /// enough.
    public mutating func shutdown() {
        guard phase != .failed, !isShuttingDown else { return }
        isShuttingDown = true
        isGoingAway = true
        queueGoAway(.noError, "")
    }
}
