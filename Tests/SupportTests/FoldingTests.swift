import BroadsideSupport
import Testing

/// Lines of a name and its value on a narrow terminal.
@Suite(.timeLimit(.minutes(60))) struct FoldingTests {
    private static let line =
        "connections  4 (up to 64 where they pay) on 1 reactor, at most 1000 streams each"

    @Test func `A line that is too long continues below its value`() {
        #expect(
            folded(Self.line, indent: 13, columns: 40) == """
                connections  4 (up to 64 where they pay)
                             on 1 reactor, at most 1000
                             streams each
                """)
    }

    @Test func `A line that fits, or that no terminal reads, is unchanged`() {
        #expect(folded(Self.line, indent: 13, columns: Self.line.count) == Self.line)
        #expect(folded(Self.line + "\nb\n", indent: 13, columns: nil) == Self.line + "\nb\n")
        #expect(folded("\n", indent: 13, columns: 20) == "\n")
        // A name of a file that is cut is no name of a file.
        let path = "/a/very/long/path/to/the/list/of/tokens.txt"
        #expect(folded("tokens  \(path)", indent: 8, columns: 30) == "tokens  \(path)")
        #expect(
            folded("tokens  \(path) and more", indent: 8, columns: 30)
                == "tokens  \(path)\n        and more")
    }

    @Test func `Folding at any width loses no word and keeps lines within it`() {
        let text = Self.line + "\nendpoint     127.0.0.1:34489\n  bottleneck  the network 13%"
        for columns in 1...100 {
            let result = folded(text, indent: 13, columns: columns)
            #expect(result.split { " \n".contains($0) } == text.split { " \n".contains($0) })
            guard columns >= 13 + 16 else { continue }
            for line in result.split(separator: "\n") { #expect(line.count <= columns) }
        }
    }
}
