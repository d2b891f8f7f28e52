import BroadsideRows
import BroadsideSupport

extension ListBytes {
    /// Reads the start of the list: enough bytes to detect its format. A pipe delivers them in
    /// pieces.
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
