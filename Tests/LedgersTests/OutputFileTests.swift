import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Long outputs: they appear whole, and do not fill the system's memory meanwhile.
@Suite(.timeLimit(.minutes(60)))
struct OutputFileTests {
    @Test func `A long output leaves memory while it is written and is whole`() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/long.txt"
        let pieces = 80
        do {
            let output = try OutputFile(path)
            for piece in 0..<pieces {
                try output.write([UInt8](repeating: UInt8(piece), count: 1 << 20))
            }
            // The file has no name yet.
            let folder = "/proc/\(getpid())/fd"
            let file = try #require(
                try FileManager.default.contentsOfDirectory(atPath: folder).first { name in
                    let target = try? FileManager.default.destinationOfSymbolicLink(
                        atPath: "\(folder)/\(name)")
                    return target?.contains(URL(filePath: directory.path).lastPathComponent)
                        ?? false
                })
            let kept = try Subprocess.run(
                "fincore",
                ["--bytes", "--noheadings", "--output", "RES", "\(folder)/\(file)"], in: directory)
            let count = try #require(Int(kept.output.filter(\.isNumber)))
            // File systems that live in memory have nowhere else to put it.
            if try !isInMemory(directory) { #expect(count < 40 << 20) }
            #expect(!FileManager.default.fileExists(atPath: path))
            try output.finish()
        }
        let written = try Data(contentsOf: URL(filePath: path))
        #expect(written.count == pieces << 20)
        for piece in 0..<pieces {
            #expect(written[piece << 20] == UInt8(piece))
            #expect(written[(piece + 1) << 20 - 1] == UInt8(piece))
        }
    }

    @Test func `Notes about nights and claims are never overwritten, and similar files may be`()
        throws
    {
        let directory = try TemporaryDirectory()
        let protected = [
            "nights": "broadside nights 1\n2026-11-25 begun 8\n",
            "notes of a newer version": "broadside nights 2\n",
            "another name": "broadside nights 1\n",
            ".broadside-0123456789abcdef.1": "nonce /ledger\n",
            ".broadside-0123456789abcdef.12": "",
            ".broadside-0123456789abcdef-3-16.2": "nonce /ledger\n",
        ]
        for (name, text) in protected { try directory.write(text, to: name) }
        let names =
            Array(protected.keys) + [
                ".broadside-fedcba9876543210.1", "./nights", "./.broadside-0123456789abcdef.1",
            ]
        for name in names {
            let failure = #expect(throws: BroadsideError.self, "\(name)") {
                try OutputFile("\(directory.path)/\(name)", option: "report")
            }
            #expect(failure?.exitCode == 2 && failure?.option == "report", "\(name)")
        }
        for (name, text) in protected {
            let now = try String(contentsOfFile: "\(directory.path)/\(name)", encoding: .utf8)
            #expect(now == text)
        }
        let others = [
            "Nights": "what I did at night\n", "broadside nights": "broadside night",
            ".broadside-0123456789abcdef": "", ".broadside-0123456789abcdef.csv": "",
            ".broadside-0123456789abcdef.01": "", ".broadside-evening.1": "",
            ".broadside-eveningofnovembe.1": "", ".broadside-0123456789abcdef-4-3.1": "",
            "broadside-0123456789abcdef.1": "",
        ]
        for (name, text) in others {
            try directory.write(text, to: name)
            let output = try OutputFile("\(directory.path)/\(name)")
            try output.write(Array("new\n".utf8))
            try output.finish()
            let now = try String(contentsOfFile: "\(directory.path)/\(name)", encoding: .utf8)
            #expect(now == "new\n")
        }
    }

    @Test(arguments: [EPERM, EOPNOTSUPP, ENOSYS])
    func `An output appears where files without a name can't get one`(number: Int32) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let output = "\(campaign.directory.path)/rows.csv"
        let exported = try Broadside.run(
            ["ledger", "export", "--ledger", campaign.ledger, "--output", output],
            in: campaign.directory,
            environment: [
                "LD_PRELOAD": try Shim.compile("fail-files", in: campaign.directory),
                "FAIL_CALLS": "linkat \(number) .new",
            ])
        #expect(exported.exitCode == 0, "\(exported.errors)")
        #expect(
            try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n").count == 21)
        let names = try campaign.directory.names(in: campaign.directory.path)
        #expect(!names.contains { $0.hasSuffix(".new") }, "\(names)")
    }

    private func isInMemory(_ directory: TemporaryDirectory) throws -> Bool {
        let name = try Subprocess.run(
            "stat", ["--file-system", "--format", "%T", directory.path], in: directory)
        return ["tmpfs", "ramfs"].contains(name.output.filter(\.isLetter))
    }
}
