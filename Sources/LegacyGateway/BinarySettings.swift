/// Settings of a campaign for a legacy gateway.
package struct BinarySettings: Sendable {
    package var command: BinaryCommand
    /// Expiration in Unix seconds, at most `expirationMax`; nil: the gateway stores notifications as
    /// long as it can.
    package let expiration: UInt32?
    /// Priority, 10 or 5; only command 2 (`frame`) sends it.
    package var priority: UInt8
    /// Time after which a notification counts as accepted if no error came, nanoseconds. The
    /// gateway does not respond to accepted notifications.
    package var silence: UInt64

    /// Number by which the request timeout is divided to obtain `silence`: the default timeout of
    /// 30 s gives 5 s. Apple's own gateway reportedly sent errors within a second or two; 5 s leave
    /// more time for slower gateways.
    package static var silenceDivisor: UInt64 { 6 }

    /// Expiration of an enhanced notification if the campaign has none. The field is mandatory, and
    /// with 0 the gateway would not store the notification. The value is the last second of 2037.
    package static var farFuture: UInt32 { 2_145_916_799 }

    /// Last expiration that no gateway reads as a number below zero. Apple's text of 2010 allowed
    /// such numbers, with the meaning of 0: the notification is not stored.
    package static var expirationMax: UInt32 { UInt32(Int32.max) }

    /// - Parameter expiration: Unix seconds; a later time than `expirationMax` becomes that time.
    package init(
        command: BinaryCommand, expiration: UInt32?, priority: UInt8, silence: UInt64
    ) {
        self.command = command
        self.expiration = expiration.map { min($0, Self.expirationMax) }
        self.priority = priority
        self.silence = silence
    }

    /// Maximum bytes of one notification.
    package func countLimit(payloadCount: Int) -> Int {
        command.count(
            tokenCount: BinaryCommand.tokenLimit, payloadCount: payloadCount, hasPriority: true)
    }
}
