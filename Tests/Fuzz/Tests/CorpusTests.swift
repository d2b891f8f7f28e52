import Foundation
import FuzzTargets
import Testing

/// Every input that is kept (`Tests/Fuzz/corpora`) is read once more: real ones, those that led
/// somewhere, and those that once made something fail.
@Suite struct CorpusTests {
    static let corpora = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "corpora").path

    @Test(arguments: FuzzTarget.all.map(\.name))
    func `No input of the corpora traps`(name: String) throws {
        let target = try #require(FuzzTarget.named(name))
        let folder = "\(Self.corpora)/\(name)"
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        #expect(files.count >= 5, "a corpus has real inputs to begin with")
        for file in files {
            let input = try #require(FileManager.default.contents(atPath: "\(folder)/\(file)"))
            #expect(input.count <= 16_384, "\(file): a corpus is made of small files")
            target.run(Array(input))
        }
    }

    @Test func `Each corpus has a fuzz target`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpora)
        #expect(Set(folders) == Set(FuzzTarget.all.map(\.name)))
    }
}
