/// How a campaign goes to a legacy gateway.
package struct BinarySettings: Sendable {
    package var command: BinaryCommand
    /// Unix seconds; nil: as long as the gateway keeps notifications.
    package var expiration: UInt32?
    /// 10 or 5; only a frame carries it.
    package var priority: UInt8
    /// The gateway says nothing of what it took: a notification of which it has said nothing for so
    /// long, nanoseconds, counts as accepted.
    package var silence: UInt64

    /// `silence` is such a part of the request timeout: 5 s where that is 30 s, as by default. Apple's
    /// own gateway was reported to say what is wrong within a second or two; one that may be slower is
    /// given more time.
    package static var silenceDivisor: UInt64 { 6 }

    /// What an enhanced notification carries where the campaign has no expiration: its field must
    /// hold something, and 0 would forbid storing. The last second of 2037 is far enough.
    package static var farFuture: UInt32 { 2_145_916_799 }

    package init(
        command: BinaryCommand, expiration: UInt32?, priority: UInt8, silence: UInt64
    ) {
        self.command = command
        self.expiration = expiration
        self.priority = priority
        self.silence = silence
    }

    /// The most bytes that one notification takes.
    package func countLimit(payloadCount: Int) -> Int {
        command.count(
            tokenCount: BinaryCommand.tokenLimit, payloadCount: payloadCount, hasPriority: true)
    }
}
