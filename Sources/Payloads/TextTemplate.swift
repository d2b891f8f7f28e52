/// A header's text in which `{{column}}` is replaced per row.
public struct TextTemplate: Sendable, Equatable {
    let segments: [PayloadTemplate.Segment]
    let tail: [UInt8]

    /// Whether texts differ per row.
    public var isPersonal: Bool { !segments.isEmpty }

    /// Bytes of the text outside of its placeholders.
    public var constant: [UInt8] { segments.flatMap(\.constant) + tail }

    /// Columns of the placeholders.
    public var columns: [String] { segments.map(\.placeholder.column) }

    /// Columns without which the text can't be made: a placeholder of theirs has no default.
    public var requiredColumns: [String] {
        segments.map(\.placeholder).filter { $0.fallback == nil }.map(\.column)
    }

    /// Reason why a text is not a template.
    public struct Problem: Error {
        /// Description of the problem and its fix, in one line.
        public var message: String

        /// Creates a problem.
        public init(message: String) { self.message = message }
    }

    /// Compiles a text.
    public init(_ text: String) throws(Problem) {
        var segments: [PayloadTemplate.Segment] = []
        var constant: [UInt8] = []
        do throws(TemplateError) {
            for piece in try TemplatePiece.divide(Array(text.utf8)[...], at: 0, isJSON: false) {
                switch piece {
                case .constant(let bytes): constant += bytes
                case .placeholder(let placeholder):
                    guard placeholder.kind == .text else {
                        let name = placeholder.column
                        throw TemplateError(
                            offset: placeholder.offset,
                            message: "a header is text, without types: write {{\(name)}}")
                    }
                    if let filter = ForeignFilter(placeholder, isJSON: false), filter.isCertain {
                        throw TemplateError(offset: placeholder.offset, message: filter.message)
                    }
                    segments.append(.init(constant: constant, placeholder: placeholder))
                    constant = []
                }
            }
        } catch {
            let before = String(decoding: text.utf8.prefix(error.offset), as: UTF8.self)
            throw Problem(message: "character \(before.count + 1): \(error.message)")
        }
        self.segments = segments
        tail = constant
    }
}
