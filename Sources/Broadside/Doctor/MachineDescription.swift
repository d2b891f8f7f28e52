import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// Properties of this machine that determine how fast it encrypts and sends. They help to interpret
/// measurements.
package struct MachineDescription: Sendable, Equatable {
    /// The model of the processor; nil if the kernel does not report it.
    package var processor: String?
    /// Number of online processors.
    package var processorCount: Int
    /// Whether the processor has vector AES instructions. If the processor also has AVX-512,
    /// OpenSSL encrypts several blocks at once.
    package var hasVAES: Bool
    package var hasAVX512: Bool
    /// Whether the processor meets OpenSSL's requirements for AES-GCM of several blocks at once.
    var hasVectorGCM: Bool
    /// Name and version of OpenSSL, such as `OpenSSL 3.5.1`.
    package var library: String
    /// Congestion control of TCP, such as `cubic`; nil if unknown.
    package var congestionControl: String?

    /// Returns the description of this machine.
    package static func current() -> Self {
        Self(
            processorText: kernelText("/proc/cpuinfo") ?? "",
            processorCount: max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))),
            library: TLSLibrary.version,
            congestionControl: kernelText("/proc/sys/net/ipv4/tcp_congestion_control").map {
                String($0.prefix { !$0.isNewline })
            })
    }

    /// Reads a file of the kernel; nil if it does not exist.
    private static func kernelText(_ path: String) -> String? {
        let bytes = try? readFile(path, shownAs: InputName(path), limit: 4 << 20)
        return bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    /// - Parameters:
    ///   - processorText: Content of `/proc/cpuinfo`.
    ///   - processorCount: Number of online processors.
    ///   - library: Name and version of OpenSSL.
    ///   - congestionControl: Congestion control of TCP; nil if unknown.
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
        hasVectorGCM = Self.flagsOfVectorGCM.allSatisfy { flags.contains($0) }
        self.library = library
        self.congestionControl = congestionControl
    }

    /// Processor flags that OpenSSL requires before it uses its AES-GCM with AVX-512
    /// (`ossl_vaes_vpclmulqdq_capable`, crypto/modes/asm/aes-gcm-avx512.pl).
    private static let flagsOfVectorGCM: [Substring] = [
        "vaes", "vpclmulqdq", "avx512f", "avx512bw", "avx512dq", "avx512vl",
    ]

    /// First version of OpenSSL with AES-GCM of several blocks at once. Its CHANGES.md, "Changes
    /// between 3.0 and 3.1.0", has "AES-GCM enabled with AVX512 vAES and vPCLMULQDQ".
    private static let firstLibraryWithVectorGCM = (major: 3, minor: 1)

    /// Whether this OpenSSL has AES-GCM of several blocks at once. It is also true if the version
    /// is not a number, so that an unknown library causes no advice.
    private var libraryHasVectorGCM: Bool {
        let version = library.split(separator: " ").last ?? ""
        let numbers = version.split(separator: ".").prefix(2).map { Int($0) }
        guard numbers.count == 2, let major = numbers[0], let minor = numbers[1] else {
            return true
        }
        return (major, minor) >= Self.firstLibraryWithVectorGCM
    }

    /// Description of how OpenSSL encrypts on this machine, and advice for faster encryption; the
    /// advice is nil if there is none.
    var encryption: (detail: String, advice: String?) {
        guard hasVectorGCM else {
            return ("\(library); this processor has no VAES with AVX-512", nil)
        }
        if libraryHasVectorGCM { return ("\(library) uses VAES and AVX-512", nil) }
        return (
            "\(library) does not use this processor's VAES and AVX-512",
            "OpenSSL 3.1 or later uses both, and needs less CPU time per notification: Debian 13 "
                + "and the container image have 3.5"
        )
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
