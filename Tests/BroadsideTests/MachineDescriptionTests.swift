import Testing

@testable import BroadsideCampaigns

@Suite struct MachineDescriptionTests {
    private func machine(_ text: String, congestionControl: String? = "cubic") -> MachineDescription
    {
        MachineDescription(
            processorText: text, processorCount: 2, library: "OpenSSL 3.5.1",
            congestionControl: congestionControl)
    }

    @Test func `A processor with VAES and AVX-512 is described with both`() {
        let found = machine(
            """
            processor\t: 0
            model name\t: Some Processor: Special Edition
            flags\t\t: fpu aes vaes avx512f avx512vl

            processor\t: 1
            model name\t: Another
            flags\t\t: fpu

            """)
        #expect(
            found.text
                == "2 x Some Processor: Special Edition, VAES, AVX-512, OpenSSL 3.5.1, TCP cubic")
    }

    @Test func `A processor flag counts only as a whole word`() {
        let found = machine("model name : P\nflags : fpu vaes_not avx512fp16")
        #expect(!found.hasVAES && !found.hasAVX512)
        #expect(found.text == "2 x P, no VAES, no AVX-512, OpenSSL 3.5.1, TCP cubic")
    }

    @Test(arguments: ["", "Features : aes pmull\nCPU part : 0xd40", "model name", ":\n: :\n\n"])
    func `A kernel that names no processor model is described as unknown`(text: String) {
        let found = machine(text, congestionControl: nil)
        #expect(found.processor == nil)
        #expect(found.text == "2 x unknown processor, no VAES, no AVX-512, OpenSSL 3.5.1")
    }

    private static let vectorFlags = "vaes vpclmulqdq avx512f avx512bw avx512dq avx512vl"

    private func encryption(_ flags: String, _ library: String) -> (detail: String, advice: String?)
    {
        MachineDescription(
            processorText: "flags : \(flags)", processorCount: 2, library: library,
            congestionControl: nil
        ).encryption
    }

    @Test(arguments: ["OpenSSL 3.0.17", "OpenSSL 3.0.0", "OpenSSL 1.1.1w"])
    func `An OpenSSL that leaves VAES unused is reported with the version to use`(library: String) {
        let found = encryption("fpu \(Self.vectorFlags)", library)
        #expect(found.detail == "\(library) does not use this processor's VAES and AVX-512")
        #expect(found.advice?.hasPrefix("OpenSSL 3.1 or later uses both") == true)
    }

    @Test(arguments: ["OpenSSL 3.1.0", "OpenSSL 3.5.1", "OpenSSL 3.10.0", "OpenSSL 4.0.0-beta1"])
    func `An OpenSSL that uses VAES needs no advice`(library: String) {
        let found = encryption(Self.vectorFlags, library)
        #expect(found.detail == "\(library) uses VAES and AVX-512")
        #expect(found.advice == nil)
    }

    @Test(arguments: ["OpenSSL", "OpenSSL next", "OpenSSL 3", "OpenSSL 3.x", ""])
    func `An OpenSSL version that is not a number gets no advice`(library: String) {
        #expect(encryption(Self.vectorFlags, library).advice == nil)
    }

    @Test(arguments: vectorFlags.split(separator: " "))
    func `A processor without VAES or AVX-512 gets no advice about OpenSSL`(flag: Substring) {
        let flags = Self.vectorFlags.split(separator: " ").filter { $0 != flag }
        let found = encryption(flags.joined(separator: " "), "OpenSSL 3.0.17")
        #expect(found.detail == "OpenSSL 3.0.17; this processor has no VAES with AVX-512")
        #expect(found.advice == nil)
    }
}
