import BroadsideRows
import BroadsideSupport

extension ListBytes {
    /// The list's beginning, as much as says what it is. A pipe gives it in pieces.
    func readBeginning() throws(BroadsideError) -> [UInt8] {
        var beginning: [UInt8] = []
        var buffer = ReadBuffer(byteCount: RowChunk.capacity)
        while beginning.count < RowChunk.capacity {
            if try read(at: UInt64(beginning.count), into: &buffer) == 0 { break }
            beginning += [UInt8](buffer.bytes)
        }
        return beginning
    }
}
