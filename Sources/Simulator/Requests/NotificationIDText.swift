/// An `apns-id` in its text form of 36 bytes.
typealias NotificationIDText = InlineArray<36, UInt8>
