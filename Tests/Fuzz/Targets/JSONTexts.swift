import BroadsideAPNs
import BroadsidePayloads
import BroadsidePrimitives

extension FuzzTarget {
    /// A payload, or an answer's body: the tokenizer and all that is built on it.
    ///
    /// What is called sound is sound to the minifier as well, whose output minifies to itself and is
    /// judged like its input.
    static let json = FuzzTarget(name: "json") { bytes in
        let text = bytes.span.bytes
        var tokenizer = JSONTokenizer()
        var count = 0
        while let token = try? tokenizer.next(in: text) {
            precondition(token.range.lowerBound >= 0 && token.range.upperBound <= bytes.count)
            count += 1
            precondition(count <= bytes.count, "more tokens than bytes")
        }
        let reason = ReasonBody.parse(text)
        precondition((reason.textRange?.upperBound ?? 0) <= bytes.count)
        for pushType in PushType.allCases {
            _ = PayloadLint.findings(text, pushType: pushType)
        }
        guard PayloadCheck.syntaxProblem(text) == nil else { return }
        let small = PayloadMinifier.minify(text)
        precondition(small.count <= bytes.count)
        precondition(PayloadMinifier.minify(small.span.bytes) == small, "minified twice")
        precondition(PayloadCheck.syntaxProblem(small.span.bytes) == nil, "minified to nonsense")
        precondition(
            PayloadRules.isJSONObject(text) == PayloadRules.isJSONObject(small.span.bytes))
    }
}
