internal import BroadsideAPNs
public import BroadsideRows

/// Reads the topics that rows name, for code that decides about rows but does not send them.
public final class RowTopicReader {
    private var renderer: PayloadRenderer

    /// Maximum number of bytes that are read from a row's values. A topic has fewer bytes.
    private static let byteLimit = 1_024

    /// - Parameters:
    ///   - template: Topic with columns to fill in.
    ///   - layout: Layout with these columns.
    public init(_ template: TextTemplate, layout: RowLayout) {
        let topic = PayloadSet.RowTopic(
            template: template, topics: RowTopics(pushType: .alert))
        renderer = PayloadRenderer(
            PayloadSet(
                templates: [PayloadTemplate(constant: [])], choice: nil, collapse: nil,
                topic: topic, limit: Self.byteLimit), layout: layout)
    }

    /// Topic of the row that `reader` read last; nil if a value is missing.
    public func topic(of reader: borrowing RowReader) -> String? { renderer.topic(of: reader) }
}
