/// An `apns-id` as 36 bytes.
typealias NotificationIDText = InlineArray<36, UInt8>
