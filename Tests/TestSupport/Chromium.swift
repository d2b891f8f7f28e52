import Foundation

/// A browser that loads a page without a window.
package enum Chromium {
    /// What pages of ours may load.
    private static let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

    /// Loads a copy of a page that measures itself.
    ///
    /// - Parameters:
    ///   - page: The page's file. It forbids scripts: its copy allows this one.
    ///   - script: JavaScript with an expression `measured`, whose JSON becomes the title.
    ///   - width: The window's, in pixels.
    /// - Returns: The copy's title.
    /// - Throws: If the page has another policy, or the browser a word about it on its console.
    package static func measure(
        _ page: String, _ script: String, width: Int, in directory: TemporaryDirectory
    ) throws -> String {
        let text = try String(contentsOfFile: page, encoding: .utf8)
        guard text.contains("content=\"\(policy)\"") else {
            throw TestFailure("\(page) has another content security policy")
        }
        let measuring = text.replacingOccurrences(
            of: policy, with: policy + "; script-src 'unsafe-inline'"
        ).replacingOccurrences(
            of: "</body>",
            with: """
                <script>
                \(script)
                document.title = JSON.stringify(measured);
                </script></body>
                """)
        let copy = try directory.write(measuring, to: "measured-\(width).html")
        let finished = try Subprocess(
            "chromium",
            [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--enable-logging=stderr", "--user-data-dir=\(directory.path)/browser",
                "--window-size=\(width),900", "--dump-dom", "file://\(copy)",
            ], in: directory
        ).wait(limit: 60)
        guard finished.exitCode == 0, !finished.errors.contains("CONSOLE") else {
            throw TestFailure("\(page): \(finished.exitCode): \(finished.errors.suffix(2000))")
        }
        guard let title = finished.output.firstMatch(of: /<title>(.*?)<\/title>/) else {
            throw TestFailure("\(page) has no title: \(finished.output.prefix(200))")
        }
        return String(title.1)
    }
}
