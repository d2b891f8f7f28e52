/// Methods with which the caller ends requests and the connection.
extension ClientConnectionStateMachine {
    /// Cancels the request on `streamID` with RST_STREAM (CANCEL); no event for it follows. Returns
    /// false if that stream is not open.
    @discardableResult
    public mutating func cancelStream(_ streamID: UInt32) -> Bool {
        guard case .open(let slot) = streams.lookUp(streamID) else { return false }
        if phase != .failed { queueReset(streamID: streamID, .cancel) }
        close(slot, .closedByUs)
        return true
    }

    /// Returns the oldest request without a response; nil if none is open. All calls together visit
    /// each stream once. A request without its END_STREAM is not complete, so no server can have
    /// acted on it.
    public mutating func oldestOpenStream() -> (streamID: UInt32, tag: UInt32, isComplete: Bool)? {
        guard let slot = streams.oldestSlot() else { return nil }
        let stream = streams[slot]
        return (stream.id, stream.tag, stream.isComplete)
    }

    /// Calls `body` with the tag of each request without a response, in no particular order. Visits
    /// each slot.
    public func forEachOpenStream(_ body: (_ tag: UInt32) -> Void) {
        for slot in 0..<streams.slotCount where streams[slot].state == .open {
            body(streams[slot].tag)
        }
    }

    /// Removes the oldest request without a response and returns its tag; nil if there is none. For
    /// use after the transport has failed.
    public mutating func takeOpenStream() -> UInt32? {
        guard let slot = streams.oldestSlot() else { return nil }
        close(slot, .closedByUs)
        return streams[slot].tag
    }

    /// Ends the connection in an orderly way: sends one GOAWAY with NO_ERROR. Open streams
    /// continue, no new ones start.
    public mutating func shutdown() {
        guard phase != .failed, !isShuttingDown else { return }
        isShuttingDown = true
        isGoingAway = true
        queueGoAway(.noError, "")
    }
}
