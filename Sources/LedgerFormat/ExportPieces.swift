internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideRows
internal import BroadsideSupport

/// What all rows of an export are made of, but for their values: made by `ExportFormat.append` from
/// rows with and without values.
struct ExportPieces: ~Copyable {
    /// Before the line.
    let lineStart: TextPiece
    /// Between line and token; behind the token; both, if there is no token.
    let tokenStart: TextPiece
    let tokenEnd: TextPiece
    let noToken: TextPiece
    /// From the token to the status, by state.
    let states: FixedBuffer<TextPiece>
    /// From the status to the timestamp, by the reason's code; see `hasReason`.
    private(set) var reasons = FixedBuffer(repeating: TextPiece.none, count: 256)
    private var reasonStates = FixedBuffer(repeating: ReasonState.unknown, count: 256)
    private let reasonText: (UInt8) -> [UInt8]
    /// From the timestamp to the attempts.
    let attemptsStart: TextPiece
    /// From the token to the attempts, if the row was accepted with 200.
    let accepted: TextPiece
    /// From the attempts to the row's digits in the apns-id, or to the time if there are no ids.
    let identifierStart: TextPiece
    let identifierEnd: TextPiece
    let hasIdentifiers: Bool
    /// Behind the time.
    let end: TextPiece
    /// A number that is not there.
    let absent: TextPiece
    /// Whether accepted rows had no answer, and so have no status.
    let acceptsBySilence: Bool

    /// Whether a reason's piece was made. Few of them ever occur in a ledger.
    enum ReasonState: UInt8 {
        case unknown
        case made
        case tooLong
    }

    /// - Parameters:
    ///   - campaign: whose apns-ids the rows have; nil: none.
    ///   - part: which of the campaign's lists they are of; 0 for a campaign of one list.
    ///   - reasonText: the text of a reason's stable code.
    init(
        _ format: ExportFormat, campaign: UInt64?, part: UInt16, acceptsBySilence: Bool,
        reasonText: @escaping (UInt8) -> String
    ) {
        self.acceptsBySilence = acceptsBySilence
        func piece(_ text: [UInt8]) -> TextPiece {
            guard let piece = TextPiece(text) else { preconditionFailure("names are short") }
            return piece
        }
        let (names, isCSV) = (format.separators, format == .csv)
        let quote = isCSV ? [] : Array("\"".utf8)
        let null = isCSV ? [] : Array("null".utf8)
        lineStart = piece(names[0])
        tokenStart = piece(names[1] + quote)
        tokenEnd = piece(quote)
        noToken = piece(names[1] + null)
        func state(_ state: RowState) -> [UInt8] {
            names[2] + quote + Array(state.name.utf8) + quote + names[3]
        }
        states = FixedBuffer(RowState.allCases.map { piece(state($0)) })
        func reason(_ code: UInt8) -> [UInt8] {
            let text = code == 0 ? [] : Array(reasonText(code).utf8)
            return names[4] + format.reasonField(text) + names[5]
        }
        self.reasonText = reason
        attemptsStart = piece(names[6])
        accepted = piece(state(.accepted) + Array("200".utf8) + reason(0) + null + names[6])
        hasIdentifiers = campaign != nil
        if let campaign {
            let text = [UInt8](capacity: NotificationID.textCount) {
                NotificationID(campaign: campaign, part: part, row: 0).write(into: &$0)
            }
            identifierStart = piece(names[7] + quote + text[..<NotificationID.rowDigitsOffset])
            identifierEnd = piece(quote + names[8])
        } else {
            identifierStart = piece(names[7] + null)
            identifierEnd = piece(names[8])
        }
        end = piece(names[9])
        absent = piece(null)
    }

    /// Whether the text of a reason fits into a piece, which is there from then on.
    @inline(__always)
    mutating func hasReason(_ code: UInt8) -> Bool {
        if reasonStates[Int(code)] == .made { return true }
        return makeReason(code)
    }

    @inline(never)
    private mutating func makeReason(_ code: UInt8) -> Bool {
        guard reasonStates[Int(code)] == .unknown else { return false }
        let piece = TextPiece(reasonText(code))
        reasons[Int(code)] = piece ?? .none
        reasonStates[Int(code)] = piece == nil ? .tooLong : .made
        return piece != nil
    }
}

extension ExportFormat {
    /// What stands before each value of a row, and behind the last one.
    var separators: [[UInt8]] {
        switch self {
        case .csv:
            [[]] + ExportRow.columns.dropFirst().map { _ in Array(",".utf8) } + [Array("\n".utf8)]
        case .jsonl:
            ExportRow.columns.enumerated().map { Array("\($0 == 0 ? "{" : ",")\"\($1)\":".utf8) }
                + [Array("}\n".utf8)]
        }
    }
}
