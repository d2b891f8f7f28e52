import CBroadsideNghttp2

/// A field as nghttp2 knows it.
struct PlainField: Equatable, CustomStringConvertible {
    var name: String
    var value: String
    var description: String { "\(name): \(value)" }
}

/// The inflater of nghttp2: what an independent decoder makes of our blocks.
final class ReferenceInflater {
    struct Failure: Error {}

    private var inflater: OpaquePointer!

    init() { nghttp2_hd_inflate_new(&inflater) }

    deinit { nghttp2_hd_inflate_del(inflater) }

    var tableSize: Int { nghttp2_hd_inflate_get_dynamic_table_size(inflater) }

    func changeLimit(_ limit: Int) { nghttp2_hd_inflate_change_table_size(inflater, limit) }

    func inflate(_ block: [UInt8]) throws -> [PlainField] {
        var fields: [PlainField] = []
        var rest = block[...]
        while true {
            var field = nghttp2_nv()
            var flags: Int32 = 0
            let read = rest.withUnsafeBufferPointer {
                nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
            }
            guard read >= 0 else { throw Failure() }
            rest = rest.dropFirst(read)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                fields.append(
                    PlainField(
                        name: text(field.name, field.namelen),
                        value: text(field.value, field.valuelen)))
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
        }
    }

    private func text(_ start: UnsafePointer<UInt8>, _ count: Int) -> String {
        String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }
}

/// The deflater of nghttp2: blocks that we did not write.
final class ReferenceDeflater {
    private var deflater: OpaquePointer!

    init() { nghttp2_hd_deflate_new(&deflater, 4096) }

    deinit { nghttp2_hd_deflate_del(deflater) }

    func deflate(_ fields: [(name: [UInt8], value: [UInt8])], noIndex: Bool) -> [UInt8] {
        var storage = fields.map { UnsafeMutableBufferPointer.copying($0.name + $0.value) }
        defer { for buffer in storage { buffer.deallocate() } }
        let flags = UInt8(noIndex ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : 0)
        var pairs = zip(fields, storage).map { field, buffer in
            nghttp2_nv(
                name: buffer.baseAddress!, value: buffer.baseAddress! + field.name.count,
                namelen: field.name.count, valuelen: field.value.count, flags: flags)
        }
        storage = Array(storage)
        let bound = nghttp2_hd_deflate_bound(deflater, &pairs, pairs.count)
        var block = [UInt8](repeating: 0, count: bound)
        let written = nghttp2_hd_deflate_hd(deflater, &block, bound, &pairs, pairs.count)
        precondition(written >= 0)
        return Array(block[..<written])
    }
}

extension UnsafeMutableBufferPointer<UInt8> {
    fileprivate static func copying(_ bytes: [UInt8]) -> Self {
        let buffer = Self.allocate(capacity: bytes.count + 1)
        _ = buffer.initialize(from: bytes + [0])
        return buffer
    }
}
