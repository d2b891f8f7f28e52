import CBroadsideNghttp2

/// The server that a session belongs to.
private func server(_ context: UnsafeMutableRawPointer?) -> SimulatedServer {
    Unmanaged<SimulatedServer>.fromOpaque(context!).takeUnretainedValue()
}

extension SimulatedServer {
    static func install(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            server(context).began(frame!.pointee.hd.stream_id)
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, context in
            let name = Array(UnsafeBufferPointer(start: name, count: nameCount))
            let value = Array(UnsafeBufferPointer(start: value, count: valueCount))
            server(context).streams[frame!.pointee.hd.stream_id]?.headers.append((name, value))
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _, _, stream, data, count, context in
            let data = UnsafeBufferPointer(start: data, count: count)
            server(context).arrived(data, on: stream)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            server(context).received(frame!.pointee)
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, context in
            server(context).sent(frame!.pointee)
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) {
            _, stream, _, context in
            server(context).closed(stream)
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) {
            _, frame, code, context in
            let type = frame!.pointee.hd.type
            let text = String(cString: nghttp2_strerror(code))
            server(context).checkInvalid(type: type, "frame of type \(type): \(text)", code)
            return 0
        }
        nghttp2_session_callbacks_set_error_callback2(callbacks) {
            _, code, message, count, context in
            let bytes = UnsafeRawBufferPointer(start: message, count: count)
            server(context).simulation.note {
                "nghttp2 says \(code): \(String(decoding: bytes, as: UTF8.self))"
            }
            return 0
        }
    }

    fileprivate func began(_ stream: Int32) {
        guard streams[stream] == nil else { return }
        checkOpening()
        streams[stream] = Stream()
        order.append(stream)
    }

    fileprivate func closed(_ stream: Int32) {
        streams[stream] = nil
        order.removeAll { $0 == stream }
    }

    fileprivate func arrived(_ data: UnsafeBufferPointer<UInt8>, on stream: Int32) {
        streams[stream]?.body.append(contentsOf: data)
        owe(data.count)
        refuseWhatIsCut()
    }

    fileprivate func received(_ frame: nghttp2_frame) {
        let stream = frame.hd.stream_id
        let ends = frame.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            headersArrived(stream)
            if ends { bodyArrived(stream) }
        case NGHTTP2_DATA.rawValue:
            if ends { bodyArrived(stream) }
        case NGHTTP2_RST_STREAM.rawValue:
            if let copy = streams[stream]?.copy { simulation.journal.cancelled(copy) }
        case NGHTTP2_GOAWAY.rawValue:
            let isCalming =
                frame.goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM.rawValue && hasFlooded
            if frame.goaway.error_code != NGHTTP2_NO_ERROR.rawValue, !hasMisbehaved, !isCalming {
                simulation.fail("the client said GOAWAY with error \(frame.goaway.error_code)")
            }
        default:
            break
        }
    }

    /// Handles each frame that is sent: records what the client learns from it, and checks that
    /// nghttp2 sends only what the script requested.
    fileprivate func sent(_ frame: nghttp2_frame) {
        let stream = frame.hd.stream_id
        let ends = frame.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        frameCount += 1
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
            guard ends, let copy = streams[stream]?.copy, let answer = streams[stream]?.answer
            else { return }
            if case .half = streams[stream]?.fate {
                simulation.journal.resolve(copy, .reset)
            } else {
                lastAnswered = (stream, answer.status)
                simulation.journal.resolve(copy, .answered(answer))
            }
            freshEvidence.append(copy)
        case NGHTTP2_RST_STREAM.rawValue:
            sentReset(stream, code: frame.rst_stream.error_code)
        case NGHTTP2_GOAWAY.rawValue:
            sentGoAway(last: frame.goaway.last_stream_id, code: frame.goaway.error_code)
        default:
            break
        }
    }

    fileprivate func sentReset(_ stream: Int32, code: UInt32) {
        switch code {
        case NGHTTP2_REFUSED_STREAM.rawValue:
            // Requested by the script, or by nghttp2 itself: the stream is above a limit that the
            // client has not acknowledged yet.
            guard let copy = streams[stream]?.copy else {
                freshRefusals.append(stream)
                return
            }
            // After a complete response, the reset has no meaning.
            if case .answered = simulation.journal.copies[copy].resolution { return }
            let isInPart = streams[stream]?.isAnswered ?? false
            simulation.journal.resolve(copy, isInPart ? .reset : .notProcessed)
            freshEvidence.append(copy)
        case _ where isScripted(stream):
            guard let copy = streams[stream]?.copy else { return }
            simulation.journal.resolve(copy, .reset)
            freshEvidence.append(copy)
        case NGHTTP2_NO_ERROR.rawValue:
            break
        default:
            simulation.fail("nghttp2 resets stream \(stream) of link \(link) with error \(code)")
        }
    }

    fileprivate func isScripted(_ stream: Int32) -> Bool {
        switch streams[stream]?.fate {
        case .reset, .half: true
        default: false
        }
    }

    fileprivate func sentGoAway(last: Int32, code: UInt32) {
        // nghttp2 tolerates only a limited number of streams that are canceled.
        let isFlooded =
            code == NGHTTP2_INTERNAL_ERROR.rawValue && simulation.taps[link].cancelled.count > 900
        if code != NGHTTP2_NO_ERROR.rawValue, !hasSaidGoAway, !isFlooded {
            simulation.fail("nghttp2 ends link \(link) with error \(code)")
        }
        hasFreshGoAway = true
        simulation.links[link].goAwayCount += 1
        if last < Int32.max { freshGoAway = last }
        for stream in order where stream > last {
            guard let copy = streams[stream]?.copy else { continue }
            simulation.journal.resolve(copy, .notProcessed)
            freshEvidence.append(copy)
        }
    }

    fileprivate func checkInvalid(type: UInt8, _ message: String, _ code: Int32) {
        // A stream above a limit that is not yet acknowledged is refused. This is not a fault.
        if code == NGHTTP2_ERR_REFUSED_STREAM.rawValue { return }
        simulation.fail("nghttp2 calls a frame invalid on link \(link): \(message)")
    }
}
