package import BroadsideSupport
internal import Glibc
internal import Synchronization

/// Passes rows from a task of the program to a thread of the run, which writes them to the ledger's
/// copy of the list. At most one block of rows waits. The task is suspended until the run takes
/// that block.
package final class RowSpool: Sendable {
    private struct State: Sendable {
        var block: [UInt8]?
        var isAtEnd = false
        var failure: BroadsideError?
        /// Whether the run accepts no more blocks.
        var isClosed = false
        /// Whether the run needs rows. A run that continues a campaign already has a copy of them.
        var isWanted = false
        /// Continuation of the task that waits until the run needs rows, or until its block is
        /// taken.
        var producer: CheckedContinuation<Bool, Never>?
    }

    private let byteLimit: UInt64
    private let state = Mutex(State())

    /// Interval at which the run's thread checks for the next block, microseconds.
    private static let interval: UInt32 = 500

    /// - Parameter byteLimit: Maximum size of the ledger's copy of the list, in bytes.
    package init(byteLimit: UInt64) { self.byteLimit = byteLimit }

    // MARK: For the program's task

    /// Waits until the run needs rows; returns false if it never does.
    package func isWanted() async -> Bool {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Bool? in
                assert(state.producer == nil, "one task supplies rows")
                if state.isClosed { return false }
                if state.isWanted { return true }
                state.producer = continuation
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Hands over a block and waits until the run takes it; returns false if the run accepts no
    /// more blocks.
    package func put(_ block: [UInt8]) async -> Bool {
        await withCheckedContinuation { continuation in
            let isClosed = state.withLock { state in
                guard !state.isClosed else { return true }
                assert(state.block == nil && state.producer == nil, "one block waits at most")
                state.block = block
                state.producer = continuation
                return false
            }
            if isClosed { continuation.resume(returning: false) }
        }
    }

    /// Marks the end of the rows.
    ///
    /// - Parameter failure: Reason why the rows are not complete; nil if they are.
    package func finish(_ failure: BroadsideError?) {
        state.withLock { state in
            assert(!state.isAtEnd, "rows end once")
            state.isAtEnd = true
            state.failure = failure
        }
    }

    /// Stops taking rows.
    package func cancel() {
        let producer = state.withLock { state in
            defer { state.producer = nil }
            state.isClosed = true
            state.block = nil
            return state.producer
        }
        producer?.resume(returning: false)
    }

    // MARK: For the run's thread

    /// Writes all rows to a descriptor.
    func write(to descriptor: Int32, name: String) throws(BroadsideError) {
        defer { cancel() }
        let waiting = state.withLock { state in
            defer { state.producer = nil }
            state.isWanted = true
            return state.producer
        }
        waiting?.resume(returning: true)
        var count: UInt64 = 0
        while true {
            try SignalWatch.stopIfRequested()
            guard let (block, isEnd) = try next() else {
                usleep(Self.interval)
                continue
            }
            count += UInt64(block.count)
            guard count <= byteLimit else {
                throw .usage(
                    "tokens",
                    "have more than \(grouped(byteLimit)) bytes: raise RunOptions.tokensByteLimit")
            }
            try writeAll(block.rawSpan, to: descriptor, name: name)
            if isEnd { return }
        }
    }

    /// Takes the next block, or the end of the rows; nil if the task has supplied neither.
    private func next() throws(BroadsideError) -> (block: [UInt8], isEnd: Bool)? {
        // When the run is cancelled, the task is cancelled, too, and records that as a failure.
        // That failure is not reported.
        if state.withLock({ $0.isClosed }) { throw SignalWatch.stopped }
        let (block, producer, isAtEnd, failure) = state.withLock { state in
            defer {
                if state.block != nil {
                    state.block = nil
                    state.producer = nil
                }
            }
            return (
                state.block, state.block == nil ? nil : state.producer, state.isAtEnd, state.failure
            )
        }
        producer?.resume(returning: true)
        if let block { return (block, false) }
        guard isAtEnd else { return nil }
        if let failure { throw failure }
        return ([], true)
    }
}
