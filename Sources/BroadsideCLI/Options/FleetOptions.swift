import BroadsideCampaigns
import BroadsideSupport

/// Options of a campaign with several lists, each sent in its own run.
enum FleetOptions {
    static let part = Option<SendOptions>.custom(
        "part", .text, "K/N",
        "this list is the Kth of N lists of the same campaign; requires --campaign-id"
    ) { (text, options) throws(BroadsideError) in
        guard let part = CampaignPart(text) else {
            throw .usage(
                "part",
                "'\(text)' is not a part: write K/N, the Kth of N lists, such as 1/4; a campaign has "
                    + "at most \(grouped(UInt64(CampaignPart.countMax))) parts")
        }
        options.part = part
    }

    static let campaignID = Option<SendOptions>.custom(
        "campaign-id", .text, "ID",
        "the campaign's number, 16 hexadecimal digits, the same for all of its parts; requires --part; night computes each night's number from it and the date"
    ) { (text, options) throws(BroadsideError) in
        guard text.utf8.count == 16, text.allSatisfy(\.isHexDigit),
            let number = UInt64(text, radix: 16)
        else {
            throw .usage(
                "campaign-id",
                "'\(text)' is not a campaign's number: write 16 hexadecimal digits, such as those "
                    + "of openssl rand -hex 8")
        }
        options.campaignID = number
    }

    static let assumeCanary = Option<SendOptions>.flag(
        "assume-canary", \.assumesCanary,
        "with --part: the canary of another part of this campaign has passed; no canary is sent, and first responses that are all BadDeviceToken do not stop the run"
    )

    /// Checks that the options of a campaign with several lists fit together.
    static func check(_ options: SendOptions) throws(BroadsideError) {
        if options.part != nil, options.campaignID == nil {
            throw .usage(
                "part",
                "requires --campaign-id: add --campaign-id ID, the same 16 hexadecimal digits for "
                    + "all parts")
        }
        if options.assumesCanary, options.part == nil {
            throw .usage(
                "assume-canary",
                "concerns the other parts of a campaign, but this run is not a "
                    + "part: add --part K/N and --campaign-id ID")
        }
        guard options.campaignID != nil else { return }
        guard options.part != nil else {
            throw .usage(
                "campaign-id",
                "requires --part: add --part K/N to say which of the campaign's N lists this is")
        }
        if options.shard != nil {
            throw .usage(
                "shard",
                "and --part exclude each other: split the campaign into more parts instead")
        }
        if case .single = options.tokens {
            throw .usage("part", "and --to exclude each other: remove one")
        }
    }

    static let label = Option<SendOptions>(
        OptionDescription(
            "label", .text, "KEY=VALUE",
            "label of the campaign, on each metric and in report, log, summary and status; may be repeated",
            isRepeatable: true)
    ) { (arguments, options) throws(BroadsideError) in
        for text in arguments.strings("label") {
            let (key, value) = try CampaignLabel.parse(text)
            guard options.labels.updateValue(SecretText.masked(value), forKey: key) == nil else {
                throw .usage("label", "\(key) is given twice: give it once")
            }
        }
        try CampaignLabel.check(options.labels)
    }
}
