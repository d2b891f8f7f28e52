extension BinarySettings {
    /// Writes one notification; see `BinaryNotification` for its form.
    package func write(
        token: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, identifier: UInt32,
        into output: inout OutputRawSpan
    ) {
        let tokenCount = token.count / 2
        func big(_ value: UInt32, _ output: inout OutputRawSpan) {
            for shift in [24, 16, 8, 0] as [UInt32] {
                output.append(UInt8(truncatingIfNeeded: value >> shift))
            }
        }
        func count(_ count: Int, _ output: inout OutputRawSpan) {
            output.append(UInt8(truncatingIfNeeded: count >> 8))
            output.append(UInt8(truncatingIfNeeded: count))
        }
        func tokenBytes(_ output: inout OutputRawSpan) {
            count(tokenCount, &output)
            for index in 0..<tokenCount {
                // SAFETY: `2 * index + 1` is below the token's count; the caller keeps the token
                // alive.
                let high = unsafe Self.digit(token[2 * index])
                let low = unsafe Self.digit(token[2 * index + 1])
                output.append(high << 4 | low)
            }
        }
        func payloadBytes(_ output: inout OutputRawSpan) {
            count(payload.count, &output)
            // SAFETY: below the payload's count; the caller keeps the payload alive.
            for index in 0..<payload.count { output.append(unsafe payload[index]) }
        }
        output.append(command.rawValue)
        switch command {
        case .simple, .enhanced:
            if command == .enhanced {
                big(identifier, &output)
                big(expiration ?? BinarySettings.farFuture, &output)
            }
            tokenBytes(&output)
            payloadBytes(&output)
        case .frame:
            let items =
                3 + tokenCount + 3 + payload.count + 7 + (expiration == nil ? 0 : 7) + 4
            big(UInt32(items), &output)
            output.append(BinaryItem.token.rawValue)
            tokenBytes(&output)
            output.append(BinaryItem.payload.rawValue)
            payloadBytes(&output)
            output.append(BinaryItem.identifier.rawValue)
            count(4, &output)
            big(identifier, &output)
            if let expiration {
                output.append(BinaryItem.expiration.rawValue)
                count(4, &output)
                big(expiration, &output)
            }
            output.append(BinaryItem.priority.rawValue)
            count(1, &output)
            output.append(priority)
        }
    }

    /// Returns the value of a hexadecimal digit, which was checked before and is in lower case.
    private static func digit(_ byte: UInt8) -> UInt8 {
        byte < 0x3a ? byte - 0x30 : byte - 0x57
    }
}
