import APNs
import Campaign

extension FuzzTarget {
    /// A payload, or an answer's body: the tokenizer and all that is built on it.
    ///
    /// What is called sound is sound to the minifier as well, whose output minifies to itself and is
    /// judged like its input.
    static let json = FuzzTarget(name: "json") { octets in
        let text = octets.span.bytes
        var tokenizer = JSONTokenizer()
        var count = 0
        while let token = try? tokenizer.next(in: text) {
            precondition(token.range.lowerBound >= 0 && token.range.upperBound <= octets.count)
            count += 1
            precondition(count <= octets.count, "more tokens than bytes")
        }
        let reason = ReasonBody.parse(text)
        precondition((reason.textRange?.upperBound ?? 0) <= octets.count)
        for pushType in PushType.allCases {
            _ = PayloadLint.findings(text, pushType: pushType)
        }
        guard PayloadCheck.syntaxProblem(text) == nil else { return }
        let small = PayloadMinifier.minify(text)
        precondition(small.count <= octets.count)
        precondition(PayloadMinifier.minify(small.span.bytes) == small, "minified twice")
        precondition(PayloadCheck.syntaxProblem(small.span.bytes) == nil, "minified to nonsense")
        precondition(
            PayloadRules.isJSONObject(text) == PayloadRules.isJSONObject(small.span.bytes))
    }
}
