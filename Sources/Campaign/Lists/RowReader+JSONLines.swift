import APNs

extension RowReader {
    /// The next line as a JSON object; nil where it is blank.
    mutating func nextJSONLine() -> Row? {
        let start = offset
        let newline = unsafe find(UInt8(ascii: "\n"), octets, start, end)
        var stop = newline ?? end
        offset = newline.map { $0 + 1 } ?? end
        let line = self.line
        self.line += 1
        if unsafe isBlank(octets, start, stop, .jsonl) { return nil }
        stop = withoutCarriageReturn(start, stop)
        if !readObject(start, stop) {
            let whole = Field(start: start, count: stop - start, form: .unusable)
            for index in 0..<fieldCount { unsafe fields[index] = whole }
        }
        return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
    }

    /// Sets the wanted fields; false where the line is no JSON object. The last of equal keys wins.
    private func readObject(_ start: Int, _ stop: Int) -> Bool {
        for index in 0..<fieldCount { unsafe fields[index] = .missing }
        // SAFETY: the line lies inside the chunk, which stays alive during this call.
        let text = unsafe RawSpan(_unsafeStart: octets, byteCount: stop)
        var tokenizer = JSONTokenizer(at: start)
        do throws(APNsError) {
            guard try tokenizer.next(in: text)?.kind == .objectStart else { return false }
            while let key = try tokenizer.next(in: text) {
                guard key.kind == .key, tokenizer.depth == 1 else { continue }
                guard let value = try tokenizer.next(in: text) else { return false }
                let index = wantedField(text, key)
                if index >= 0 { unsafe fields[index] = field(value) }
            }
            return true
        } catch {
            return false
        }
    }

    private func wantedField(_ text: RawSpan, _ key: JSONTokenizer.Token) -> Int {
        // A key with escapes names no column: names are compared octet by octet.
        if key.hasEscapes { return -1 }
        var start = 0
        for index in 0..<fieldCount {
            // SAFETY: both arrays were laid out in `init`, one end a field.
            let end = unsafe nameEnds[index]
            if end - start == key.count {
                var same = 0
                while same < key.count,
                    unsafe names[start + same] == text.octet(at: key.start + same)
                {
                    same += 1
                }
                if same == key.count { return index }
            }
            start = end
        }
        return -1
    }

    private func field(_ value: JSONTokenizer.Token) -> Field {
        let form: Field.Form
        switch value.kind {
        case .string: form = value.hasEscapes ? .escapedString : .string
        case .number, .true_, .false_: form = .plain
        case .null: return .missing
        default: form = .unusable
        }
        return Field(start: value.start, count: value.count, form: form)
    }
}
