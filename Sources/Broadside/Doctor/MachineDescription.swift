internal import Glibc
import Support
import TLS

/// What decides how fast this machine encrypts and sends: figures mean little without it.
package struct MachineDescription: Sendable, Equatable {
    /// The processor's model; nil if the kernel does not name it.
    package var processor: String?
    /// Processors that are online.
    package var processorCount: Int
    /// Vector AES instructions; with AVX-512, OpenSSL encrypts several blocks at once.
    package var hasVAES: Bool
    package var hasAVX512: Bool
    /// The OpenSSL in use, such as `OpenSSL 3.5.1`.
    package var library: String
    /// How the kernel paces TCP, such as `cubic`; nil if it does not say.
    package var congestionControl: String?

    /// This machine.
    package static func current() -> Self {
        Self(
            processorText: kernelText("/proc/cpuinfo") ?? "",
            processorCount: max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))),
            library: TLSLibrary.version,
            congestionControl: kernelText("/proc/sys/net/ipv4/tcp_congestion_control").map {
                String($0.prefix { !$0.isNewline })
            })
    }

    /// A file of the kernel's; nil if it is not there.
    private static func kernelText(_ path: String) -> String? {
        let bytes = try? readFile(path, shownAs: InputName(path), limit: 4 << 20)
        return bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    /// - Parameters:
    ///   - processorText: As in `/proc/cpuinfo`.
    ///   - processorCount: Processors that are online.
    ///   - library: The OpenSSL in use.
    ///   - congestionControl: How the kernel paces TCP; nil if it does not say.
    init(
        processorText: String, processorCount: Int, library: String, congestionControl: String?
    ) {
        func value(_ key: String) -> Substring? {
            for line in processorText.split(separator: "\n") {
                guard let colon = line.firstIndex(of: ":") else { continue }
                let name = line[..<colon].split(whereSeparator: \.isWhitespace)
                guard name.joined(separator: " ") == key else { continue }
                return line[line.index(after: colon)...].drop { $0 == " " }
            }
            return nil
        }
        let flags = value("flags")?.split(separator: " ") ?? []
        processor = value("model name").map { String($0) }
        self.processorCount = processorCount
        hasVAES = flags.contains("vaes")
        hasAVX512 = flags.contains("avx512f")
        self.library = library
        self.congestionControl = congestionControl
    }

    /// One line for a terminal.
    package var text: String {
        var parts = ["\(processorCount) x \(processor ?? "unknown processor")"]
        parts.append(hasVAES ? "VAES" : "no VAES")
        parts.append(hasAVX512 ? "AVX-512" : "no AVX-512")
        parts.append(library)
        if let congestionControl { parts.append("TCP \(congestionControl)") }
        return parts.joined(separator: ", ")
    }
}
