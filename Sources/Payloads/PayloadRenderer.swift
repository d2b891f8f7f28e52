public import BroadsideAPNs
internal import BroadsidePrimitives
public import BroadsideRows
internal import BroadsideSupport

/// Renders the templated part of a row's request, without allocation. Only the name of a payload
/// that is not ASCII needs one.
///
/// The result is the row's pieces: for each placeholder, a two-byte length and then the text as it
/// is in the payload; at the end, the collapse ID. Pieces are much smaller than the payload. The
/// payload can be written from the pieces repeatedly, each time with the same bytes.
///
///     02 00 'Jo' | 01 00 '7' | 'score-42'
///     name         badge       collapse ID
@safe public struct PayloadRenderer: ~Copyable {
    /// Layout of a row's pieces.
    public struct Shape: Sendable, Equatable {
        /// Index of the payload in the campaign's set.
        public var template: UInt16 = 0
        /// Number of bytes of all pieces.
        public var count: UInt16 = 0
        /// Number of bytes of the payload.
        public var payloadCount: UInt16 = 0
        /// Number of bytes of the collapse ID, which is the last piece; 0 if there is none.
        public var collapseCount: UInt8 = 0
        /// Number of the topic, if rows name their topics.
        public var topic: UInt8 = 0
        /// Number of the arm, from 1; 0 if there are no arms.
        public var arm: UInt8 = 0

        /// Creates the layout of a row without pieces.
        public init() {}
    }

    /// Result for a row.
    public enum Outcome: Sendable, Equatable {
        case made(Shape)
        /// The row can't be sent, for a reason.
        case invalid(Reason)
    }

    /// Part of a payload or header: constant bytes, and the field whose value follows the bytes.
    struct Step {
        var constant: Range<Int32>
        var fallback: Range<Int32>?
        var field: Int32
        var kind: Placeholder.Kind
    }

    /// All steps of a payload or header, and the constant bytes after the last value.
    struct Script {
        var steps: Range<Int>
        var tail: Range<Int32>
        var constantCount: Int
        /// Index of the step whose value is shortened to fit; -1: none.
        var fit: Int
        /// Maximum number of bytes of constants and values together. -1 if one of the values may be
        /// shortened: every payload is then above the limit, so that `appendFitted` is called.
        var limit: Int
    }

    /// Indices of the scripts of an arm's payload and collapse ID. -1 means that the arm uses the
    /// campaign's script.
    struct ArmScripts {
        var payload: Int32
        var collapse: Int32
    }

    /// Value of the column of `--payload-by`, and the index of the payload for it.
    struct Name {
        var bytes: Range<Int32>
        var template: UInt16
    }

    let limit: Int
    /// All constant texts; the ranges in `steps`, `scripts` and `names` refer to them.
    let bytes: FixedBuffer<UInt8>
    let steps: FixedBuffer<Step>
    let scripts: FixedBuffer<Script>
    let names: FixedBuffer<Name>
    /// The ASCII names in lower case and with hyphens in place of underscores, sorted.
    let caselessNames: FixedBuffer<Name>
    /// Index of the collapse ID among the scripts; nil if it does not differ per row.
    let collapseScript: Int?
    /// Index of the topic among the scripts; nil if it does not differ per row.
    let topicScript: Int?
    private var topicFinder: TopicFinder
    /// Finds the arm of a row; nil if there are no arms.
    private let armChooser: ArmChooser?
    private let armScripts: FixedBuffer<ArmScripts>
    private var armDigits = TokenDigits()
    /// Number of the arm of the last row, from 1; 0 if there are no arms.
    private var arm: UInt8 = 0
    /// The field that chooses the payload of a row; nil if all rows get the first payload.
    let choiceField: Int?
    let choiceFallback: Int?
    /// Index of the payload for each name that is not ASCII. A value that is the same text in
    /// another Unicode form also finds its payload here.
    let foldedNames: [String: Int]
    /// Finds the payload for a row's language.
    let chooser: PayloadChooser
    /// For each payload, the default of the shortened text, without JSON escapes; empty if no
    /// payload shortens a value.
    let fitDefaults: [[UInt8]]
    /// Number of rendered rows with a shortened value.
    public internal(set) var shortenedRows: UInt64 = 0
    /// Whether the value was shortened in the last row whose payload has a `{{column:fit}}` value.
    var isShortened = false

    /// The pieces of the row rendered last.
    var pieces: FixedBuffer<UInt8>
    /// Number of bytes of `pieces` that are set.
    var count = 0
    /// Tally of the rows that lack a payload file for their value in the `--payload-by` column.
    var fallbacks: FallbackTally
    /// Slot of the current row in `fallbacks`.
    var fallbackSlot: Int?
    /// The value that made the last invalid row invalid; nil if no single value did.
    public internal(set) var culprit: Culprit?

    /// Maximum number of bytes of a row's pieces if payloads have at most `limit` bytes.
    public static func piecesLimit(_ limit: Int) -> Int {
        limit + 2 * PayloadTemplate.placeholderLimit + NotificationHeaders.maximumCollapseIDCount
    }

    /// - Parameter layout: Layout with every column that the set uses.
    public init(_ set: PayloadSet, layout: RowLayout) {
        func field(_ column: String) -> Int {
            guard let index = layout.field(named: column) else {
                preconditionFailure("the layout was made for other columns")
            }
            return index
        }
        var bytes: [UInt8] = []
        var steps: [Step] = []
        func lay(_ text: [UInt8]) -> Range<Int32> {
            bytes += text
            return Int32(bytes.count - text.count)..<Int32(bytes.count)
        }
        func script(_ segments: [PayloadTemplate.Segment], _ tail: [UInt8]) -> Script {
            let first = steps.count
            for segment in segments {
                steps.append(
                    Step(
                        constant: lay(segment.constant),
                        fallback: segment.placeholder.fallback.map(lay),
                        field: Int32(field(segment.placeholder.column)),
                        kind: segment.placeholder.kind))
            }
            let constantCount = segments.reduce(tail.count) { $0 + $1.constant.count }
            let fit = segments.firstIndex { $0.placeholder.kind == .fit }.map { first + $0 }
            return Script(
                steps: first..<steps.count, tail: lay(tail), constantCount: constantCount,
                fit: fit ?? -1, limit: fit == nil ? set.limit : -1)
        }
        var scripts = set.templates.map { script($0.segments, $0.tail) }
        collapseScript = set.collapse == nil ? nil : scripts.count
        if let collapse = set.collapse { scripts.append(script(collapse.segments, collapse.tail)) }
        armChooser = set.arms.map { ArmChooser($0.split) }
        var armScripts: [ArmScripts] = []
        for own in set.arms?.own ?? [] {
            armScripts.append(
                ArmScripts(
                    payload: Int32(own.template ?? -1),
                    collapse: own.collapse == nil ? -1 : Int32(scripts.count)))
            if let collapse = own.collapse {
                scripts.append(script(collapse.segments, collapse.tail))
            }
        }
        assert(
            armScripts.allSatisfy {
                Int($0.payload) < set.templates.count && Int($0.collapse) < scripts.count
            }, "an arm's payload and scripts exist")
        self.armScripts = FixedBuffer(armScripts)
        topicScript = set.topic == nil ? nil : scripts.count
        if let topic = set.topic {
            scripts.append(script(topic.template.segments, topic.template.tail))
        }
        topicFinder = TopicFinder(set.topic?.topics)
        func layNames(_ names: [PayloadSet.Choice.Name]?) -> [Name] {
            (names ?? []).map { Name(bytes: lay($0.value), template: UInt16($0.template)) }
        }
        let names = layNames(set.choice?.names)
        let caselessNames = layNames(set.choice?.caselessNames)
        choiceField = set.choice.map { field($0.column) }
        choiceFallback = set.choice?.fallback
        foldedNames = set.choice?.foldedNames ?? [:]
        chooser = PayloadChooser(set.choice?.names ?? [], column: set.choice?.column ?? "")
        fallbacks = FallbackTally(isNeeded: set.choice != nil)
        limit = set.limit
        fitDefaults = Self.fitDefaults(of: set)
        self.bytes = FixedBuffer(bytes)
        self.steps = FixedBuffer(steps)
        self.scripts = FixedBuffer(scripts)
        self.names = FixedBuffer(names)
        self.caselessNames = FixedBuffer(caselessNames)
        // A set without templates needs no pieces.
        pieces = FixedBuffer(repeating: 0, count: set.isPersonal ? Self.piecesLimit(set.limit) : 0)
    }

    /// Whether a payload may have a shortened value.
    public var mayShorten: Bool { !fitDefaults.isEmpty }

    /// The pieces of the row rendered last; valid until the next one is rendered.
    public var lastPieces: RawSpan {
        @_lifetime(borrow self) get { pieces.bytes.extracting(0..<count) }
    }

    /// Number of bytes allocated for pieces.
    var room: Int { pieces.count }

    /// Text of a range of `bytes`.
    @_lifetime(borrow self)
    func text(_ range: Range<Int32>) -> RawSpan {
        bytes.bytes.extracting(Int(range.lowerBound)..<Int(range.upperBound))
    }

    /// Number of rows by value of the `--payload-by` column, only for values without a payload
    /// file. These rows have the default payload or no payload.
    public var fallbackCounts: FallbackCounts { fallbacks.counts }

    /// Whether the row that was rendered last lacks a payload file for its value.
    public var lacksOwnPayload: Bool { fallbackSlot != nil }

    /// Renders the pieces of the row that `reader` read last.
    public mutating func render(_ reader: borrowing RowReader) -> Outcome {
        fallbackSlot = nil
        if armChooser != nil { _ = findArm(reader) }
        let outcome = make(reader)
        guard let fallbackSlot else { return outcome }
        switch outcome {
        case .made, .invalid(.noPayload): fallbacks.add(fallbackSlot)
        // The row is not sent, for another reason.
        case .invalid: break
        }
        return outcome
    }

    /// Number of the arm of the row that `reader` read last, from 1; 0 if the row has no token or
    /// there are no arms.
    @inline(never)
    public mutating func findArm(_ reader: borrowing RowReader) -> UInt8 {
        let refusal = armDigits.write { reader.readToken(reader.field(0), into: &$0) }
        arm = refusal == nil ? armChooser?.arm(of: armDigits.bytes) ?? 0 : 0
        assert(Int(arm) <= armScripts.count, "a row has one of the arms")
        return arm
    }

    /// Number of the arm of the row that was rendered last; 0 if there are no arms.
    public var lastArm: UInt8 { arm }

    private mutating func make(_ reader: borrowing RowReader) -> Outcome {
        count = 0
        var shape = Shape()
        if topicScript != nil, let reason = chooseTopic(reader, &shape) {
            return .invalid(reason)
        }
        shape.arm = arm
        let own = arm == 0 ? -1 : armScripts[Int(arm) - 1].payload
        let template: Int
        if own >= 0 {
            template = Int(own)
        } else {
            switch choose(reader) {
            case .success(let index): template = index
            case .failure(let refusal):
                culprit = choiceField.map { Culprit(field: $0, use: .payloadName) }
                return .invalid(refusal.reason)
            }
        }
        let script = scripts[template]
        for index in script.steps {
            let start = count
            guard start + 2 <= room else {
                culprit = longestCulprit(script, reader)
                return .invalid(.payloadTooLarge)
            }
            count += 2
            if let reason = append(steps[index], isJSON: true, reader) {
                culprit =
                    reason == .payloadTooLarge
                    ? longestCulprit(script, reader) : Self.culprit(steps[index])
                return .invalid(reason)
            }
            let length = UInt16(count - start - 2)
            pieces[start] = UInt8(truncatingIfNeeded: length)
            pieces[start + 1] = UInt8(length >> 8)
        }
        var payloadCount = script.constantCount + count - 2 * script.steps.count
        if payloadCount > script.limit,
            let reason = appendFitted(of: template, &payloadCount, reader)
        {
            return .invalid(reason)
        }
        if let reason = appendCollapse(reader, &shape) {
            if script.fit >= 0, isShortened { shortenedRows -= 1 }
            return .invalid(reason)
        }
        shape.template = UInt16(template)
        shape.payloadCount = UInt16(payloadCount)
        shape.count = UInt16(count)
        assert(payloadCount <= limit, "a payload beyond the limit is refused")
        assert(Int(shape.collapseCount) <= count, "the collapse ID is the last piece")
        return .made(shape)
    }

    /// Determines the number of the row's topic from the topic's text. This text is not part of the
    /// pieces.
    @inline(never)
    private mutating func chooseTopic(
        _ reader: borrowing RowReader, _ shape: inout Shape
    ) -> Reason? {
        defer { count = 0 }
        if let reason = appendTopic(reader) { return reason }
        switch topicFinder.find(in: pieces, count: count) {
        case .number(let number):
            shape.topic = number
            culprit = nil
            return nil
        case .unnumbered:
            culprit = nil
            return nil
        case .malformed: return .badValue
        case .tooMany:
            culprit?.use = .topicBeyondLimit
            return .badValue
        }
    }

    /// Text of the topic of the row that `reader` read last; nil if the row names none. Assigns no
    /// number to a new topic.
    mutating func topic(of reader: borrowing RowReader) -> String? {
        count = 0
        defer { count = 0 }
        guard appendTopic(reader) == nil, count > 0 else { return nil }
        return String(decoding: [UInt8](pieces.bytes.extracting(0..<count)), as: UTF8.self)
    }

    /// Appends the text of the row's topic to the empty pieces. Returns the reason why the row has
    /// no topic; nil if it has one.
    private mutating func appendTopic(_ reader: borrowing RowReader) -> Reason? {
        guard let topicScript else { return nil }
        let script = scripts[topicScript]
        for index in script.steps {
            let step = steps[index]
            culprit = Culprit(field: Int(step.field), use: .topic)
            guard appendConstant(step.constant) else { return .badValue }
            let field = reader.field(Int(step.field))
            // A topic with a missing part would be another topic.
            if step.fallback == nil, field.isText, field.count == 0 { return .missingColumn }
            if let reason = append(step, isJSON: false, reader) {
                return reason == .payloadTooLarge ? .badValue : reason
            }
        }
        return appendConstant(script.tail) ? nil : .badValue
    }

    private mutating func appendCollapse(
        _ reader: borrowing RowReader, _ shape: inout Shape
    ) -> Reason? {
        let own = arm == 0 ? -1 : armScripts[Int(arm) - 1].collapse
        guard let collapseScript = own >= 0 ? Int(own) : collapseScript else { return nil }
        let script = scripts[collapseScript]
        let start = count
        for index in script.steps {
            let step = steps[index]
            guard appendConstant(step.constant) else {
                culprit = collapseCulprit(script)
                return .badValue
            }
            if let reason = append(step, isJSON: false, reader) {
                culprit = Culprit(field: Int(step.field), use: .collapseID)
                return reason == .payloadTooLarge ? .badValue : reason
            }
        }
        guard appendConstant(script.tail) else {
            culprit = collapseCulprit(script)
            return .badValue
        }
        let byteCount = count - start
        // A row whose collapse ID is empty is sent without one.
        let isUsable =
            byteCount == 0
            || NotificationHeaders.isCollapseID(pieces.bytes.extracting(start..<count))
        guard isUsable else {
            culprit = collapseCulprit(script)
            return .badValue
        }
        shape.collapseCount = UInt8(byteCount)
        return nil
    }

    /// Payload of the row rendered last.
    public func lastPayload(_ shape: Shape) -> [UInt8] {
        // SAFETY: the capacity is the shape's count, which is the number of bytes written.
        unsafe [UInt8](unsafeUninitializedCapacity: Int(shape.payloadCount)) { buffer, count in
            guard let output = buffer.baseAddress else { return }
            unsafe pieces.bytes.withUnsafeBytes {
                unsafe writePayload(shape, pieces: $0, to: output)
            }
            count = Int(shape.payloadCount)
        }
    }

    /// Collapse ID of the row rendered last; empty if it does not differ per row.
    public func lastCollapseID(_ shape: Shape) -> [UInt8] {
        [UInt8](lastPieces.extracting(last: Int(shape.collapseCount)))
    }

    /// Writes a row's payload at `output`, which has room for its `payloadCount` bytes.
    ///
    /// - Parameter pieces: Copy of `lastPieces` for the row.
    public func writePayload(
        _ shape: Shape, pieces: UnsafeRawBufferPointer, to output: UnsafeMutableRawPointer
    ) {
        let script = scripts[Int(shape.template)]
        // SAFETY: the caller vouches for pieces that were made for this shape, and for memory for
        // its payload: the bytes written are as many as `make` counted, which is checked at the
        // end.
        var at = unsafe output
        var piece = pieces.baseAddress!
        for index in script.steps {
            unsafe at = copy(steps[index].constant, to: at)
            let length = unsafe Int(
                UInt16(littleEndian: piece.loadUnaligned(as: UInt16.self)))
            unsafe at.copyMemory(from: piece + 2, byteCount: length)
            unsafe at += length
            unsafe piece += 2 + length
        }
        unsafe at = copy(script.tail, to: at)
        precondition(unsafe at == output + Int(shape.payloadCount), "pieces of another row")
    }

    private func copy(
        _ range: Range<Int32>, to output: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        // SAFETY: the caller has memory for the range, as in `writePayload`.
        unsafe text(range).withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(start: output, count: $0.count).copyMemory(
                from: $0)
        }
        return unsafe output + range.count
    }
}
