/// An `apns-id` as 36 octets.
typealias NotificationIDText = InlineArray<36, UInt8>
