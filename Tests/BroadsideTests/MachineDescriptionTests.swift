import Testing

@testable import Broadside

@Suite struct MachineDescriptionTests {
    private func machine(_ text: String, congestionControl: String? = "cubic") -> MachineDescription
    {
        MachineDescription(
            processorText: text, processorCount: 2, library: "OpenSSL 3.5.1",
            congestionControl: congestionControl)
    }

    @Test func `A processor with vector AES`() {
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

    @Test func `A flag is a whole word`() {
        let found = machine("model name : P\nflags : fpu vaes_not avx512fp16")
        #expect(!found.hasVAES && !found.hasAVX512)
        #expect(found.text == "2 x P, no VAES, no AVX-512, OpenSSL 3.5.1, TCP cubic")
    }

    @Test(arguments: ["", "Features : aes pmull\nCPU part : 0xd40", "model name", ":\n: :\n\n"])
    func `A kernel that names no model`(text: String) {
        let found = machine(text, congestionControl: nil)
        #expect(found.processor == nil)
        #expect(found.text == "2 x unknown processor, no VAES, no AVX-512, OpenSSL 3.5.1")
    }
}
