import Testing

/// A call that is a good send but for these arguments; `@name` stands for a file of `Files`.
struct MalformedRequest: Sendable, CustomTestStringConvertible {
    var arguments: [String]
    var without: Set<String> = []
    /// What the line has to say.
    var says: [String]

    init(_ arguments: [String], without: Set<String> = [], says: [String]) {
        (self.arguments, self.without, self.says) = (arguments, without, says)
    }

    var testDescription: String { (arguments + without.map { "no \($0)" }).joined(separator: " ") }
}

extension MalformedRequest {
    static let options: [MalformedRequest] = [
        .init(["--topc", "x"], says: ["unknown option --topc", "--topic"]),
        .init(["--conections=4"], says: ["--conections", "--connections"]),
        .init(["--zzzzzzzzzz"], says: ["--zzzzzzzzzz", "--help"]),
        // Planned, not built: as unknown as any other.
        .init(["--canary-max-rejected", "3"], says: ["--canary-max-rejected", "add --canary N"]),
        .init(["-t", "x"], says: ["-t", "two dashes"]),
        .init(["extra"], says: ["'extra'"]),
        .init(["--limit"], says: ["--limit needs a value"]),
        .init(["--limit", "--yes"], says: ["--limit needs a value"]),
        .init(["--resume=yes"], says: ["--resume takes no value"]),
        .init(["--rate", "5", "--rate", "6"], says: ["--rate is given twice"]),
        .init([], without: ["tokens"], says: ["--tokens is missing", "--to TOKEN"]),
        .init(["--to", "aabb"], says: ["--tokens and --to exclude"]),
        .init([], without: ["payload"], says: ["--payload is missing"]),
        .init([], without: ["topic"], says: ["--topic is missing"]),
        .init([], without: ["ledger"], says: ["--ledger is missing"]),
        .init([], without: ["auth-key"], says: ["--auth-key"]),
        .init([], without: ["key-id"], says: ["--key-id is missing"]),
        .init([], without: ["team-id"], says: ["--team-id is missing"]),
        .init(["--to", "xyz"], without: ["tokens"], says: ["--to", "'xyz'"]),
    ]

    static let values: [MalformedRequest] = [
        .init(["--limit", "0"], says: ["--limit '0'"]),
        .init(["--limit", "-3"], says: ["--limit '-3'"]),
        .init(["--limit", "1e3"], says: ["--limit '1e3'"]),
        .init(["--connections", "0"], says: ["--connections '0'"]),
        .init(["--connections", "99999999999999999999"], says: ["--connections"]),
        .init(["--max-streams", "many"], says: ["--max-streams 'many'"]),
        .init(["--reactors", "1.5"], says: ["--reactors '1.5'"]),
        .init(["--rate", "0"], says: ["--rate '0'"]),
        .init(["--rate", "nan"], says: ["--rate 'nan'"]),
        .init(["--rate", "inf"], says: ["--rate 'inf'"]),
        .init(["--rate", "0x10"], says: ["--rate '0x10'"]),
        .init(["--rate", "1e3"], says: ["--rate '1e3'"]),
        .init(["--max-invalid", "0x10"], says: ["--max-invalid '0x10'"]),
        .init(["--rate-per-connection", "-1"], says: ["--rate-per-connection '-1'"]),
        .init(["--max-bad-tokens", "101"], says: ["--max-bad-tokens '101'"]),
        .init(["--max-attempts", "0"], says: ["--max-attempts '0'"]),
        .init(["--abort-after", ""], says: ["--abort-after ''"]),
        .init(["--retry-for", "5"], says: ["--retry-for '5'", "15m"]),
        .init(["--retry-for", "5 m"], says: ["--retry-for '5 m'"]),
        .init(["--request-timeout", "0s"], says: ["--request-timeout", "above 0"]),
        .init(["--give-up-after", "0s"], says: ["--give-up-after", "above 0"]),
        .init(["--give-up-after", "s"], says: ["--give-up-after 's'"]),
        .init(
            ["--deadline", "99999999999999999999d"], says: ["--deadline", "use at most 213503d"]),
        .init(["--on-lost", "recrod"], says: ["--on-lost 'recrod'", "record"]),
        .init(["--push-type", "alrt"], says: ["--push-type 'alrt'", "alert"]),
        .init(["--environment", "dev"], says: ["--environment 'dev'", "development"]),
        .init(["--progress", "yes"], says: ["--progress 'yes'"]),
        .init(["--port", "8443"], without: ["endpoint"], says: ["--port '8443'", "2197"]),
        .init(["--priority", "7"], says: ["--priority '7'", "10"]),
        .init(
            ["--push-type", "background", "--priority", "10", "--payload-check", "off"],
            says: ["--priority", "background"]),
        .init(
            [
                "--push-type", "mdm", "--topic", "com.apple.mgmt.External.x", "--payload-check",
                "off",
            ], says: ["--push-type", "MDM push certificate only"]),
        .init(
            ["--topic", "com.apple.mgmt.External.x"],
            says: ["--topic 'com.apple.mgmt.External.x'", "add --push-type mdm"]),
        .init(["--expiration", "+5"], says: ["--expiration '+5'", "+2h"]),
        .init(["--expiration", "+0s"], says: ["--expiration +0s has passed", "write 0"]),
        .init(["--expiration", "tomorrow"], says: ["--expiration 'tomorrow'"]),
        .init(["--collapse-id", ""], says: ["--collapse-id"]),
        .init(
            ["--collapse-id", String(repeating: "x", count: 65)], says: ["--collapse-id", "65"]),
        .init(["--collapse-id", "a\nb"], says: ["--collapse-id"]),
        .init(["--topic", "com.example.app "], says: ["--topic"]),
        .init(["--topic", ""], says: ["--topic"]),
        .init(["--key-id", "ABC"], says: ["--key-id 'ABC'", "10"]),
        .init(
            ["--key-id", "abc123defg"],
            says: ["--key-id 'abc123defg' is not 10 capital letters and digits"]),
        .init(["--team-id", "DEF123GHIJK"], says: ["--team-id", "10"]),
        .init(["--key-id", "ABC123DEF\""], says: ["--key-id"]),
        .init(["--endpoint", ""], says: ["--endpoint ''"]),
        .init(["--endpoint", "localhost:"], says: ["--endpoint 'localhost:'"]),
        .init(["--endpoint", "localhost:0"], says: ["--endpoint"]),
        .init(["--endpoint", "localhost:65536"], says: ["--endpoint"]),
        .init(["--endpoint", "https://localhost:443"], says: ["--endpoint", "HOST"]),
        .init(["--endpoint", "::1:443"], says: ["--endpoint"]),
        .init(["--endpoint", "[::1"], says: ["--endpoint"]),
        .init(["--retry", "failed"], says: ["--retry", "--resume"]),
        .init(["--resume", "--retry", "accepted"], says: ["--retry 'accepted'", "unknown"]),
    ]

    private static let id = "0123456789abcdef"

    static let lists: [MalformedRequest] = [
        .init(["--shard", "0/3"], says: ["--shard '0/3'", "K/N"]),
        .init(["--shard", "4/3"], says: ["--shard '4/3'"]),
        .init(["--shard", "1"], says: ["--shard '1'"]),
        .init(["--shard", "1/2/3"], says: ["--shard '1/2/3'"]),
        .init(["--shard", "1/65537"], says: ["--shard '1/65537'", "at most 65,536 shares"]),
        .init(["--shard", "+1/2"], says: ["--shard '+1/2'"]),
        .init(["--shard", "1/2", "--to", "aabb"], without: ["tokens"], says: ["--shard", "--to"]),
        .init(["--part", "1/2"], says: ["--part requires --campaign-id"]),
        .init(["--campaign-id", id], says: ["--campaign-id requires --part"]),
        .init(["--part", "3/2", "--campaign-id", id], says: ["--part '3/2'", "K/N"]),
        .init(["--part", "1/1024", "--campaign-id", id], says: ["--part '1/1024'", "1,023"]),
        .init(["--part", "1/2", "--campaign-id", "12"], says: ["--campaign-id '12'", "16"]),
        .init(
            ["--part", "1/2", "--campaign-id", "+123456789abcdef"], says: ["--campaign-id '+12"]),
        .init(
            ["--part", "1/2", "--campaign-id", id, "--shard", "1/2"],
            says: ["--shard and --part exclude"]),
        .init(
            ["--part", "1/2", "--campaign-id", id, "--to", "aabb"], without: ["tokens"],
            says: ["--part and --to exclude"]),
        .init(["--duplicates", "drop"], says: ["--duplicates 'drop'", "skip"]),
        .init(["--suppress", "@nothing"], says: ["--suppress", "@nothing", "No such file"]),
        .init(["--suppress", "@directory"], says: ["--suppress", "@directory"]),
        .init(["--suppress", "-"], says: ["--suppress -"]),
        .init(["--suppress", "@garbage"], says: ["--suppress", "@garbage", "private key"]),
        .init(["--suppress", "@users"], says: ["@users", "name its token column 'token'"]),
        .init(["--suppress", "@bad-json"], says: ["--suppress", "@bad-json", "line 1"]),
        .init(["--tokens", "@no.gz"], says: ["@no.gz", "is not a gzip file"]),
        .init(["--tokens", "@no.zst"], says: ["@no.zst", "is not a zstd file"]),
        .init(["--tokens", "@far.zst"], says: ["@far.zst", "8 MiB", "--long"]),
        .init(
            ["--tokens", "-", "--ledger", "@directory"], says: ["--ledger", "@directory", "exists"]),
        .init(["--tokens", "-"], without: ["ledger"], says: ["--ledger is missing"]),
    ]

    static let files: [MalformedRequest] = [
        .init(["--tokens", "@nothing"], says: ["--tokens", "@nothing", "No such file"]),
        .init(["--tokens", "@directory"], says: ["--tokens", "@directory"]),
        .init(["--payload", "@nothing"], says: ["--payload", "@nothing", "No such file"]),
        .init(["--payload", "@directory"], says: ["--payload", "@directory"]),
        .init(["--payload", "@empty"], says: ["--payload", "@empty", "empty"]),
        .init(["--payload", "@bad-json"], says: ["@bad-json", "line 2, column 12"]),
        .init(["--payload", "@umlaut-json"], says: ["@umlaut-json", "line 1, column 15"]),
        .init(["--payload", "@array"], says: ["@array", "line 1, column 1", "{"]),
        .init(["--payload", "@cut-off"], says: ["@cut-off", "line"]),
        .init(["--payload", "@byte-order-mark"], says: ["@byte-order-mark", "byte-order mark"]),
        .init(["--payload", "@large"], says: ["@large", "4,097", "4,096"]),
        .init(["--payload", "@huge"], says: ["@huge"]),
        .init(["--auth-key", "@nothing"], says: ["--auth-key", "@nothing", "No such file"]),
        .init(["--auth-key", "@empty"], says: ["--auth-key", "@empty"]),
        .init(["--auth-key", "@garbage"], says: ["--auth-key", "@garbage"]),
        .init(["--auth-key", "@public"], says: ["--auth-key", "@public"]),
        .init(["--auth-key", "@rsa"], says: ["--auth-key", "@rsa", "rsaEncryption"]),
        .init(["--auth-key", "@p384"], says: ["--auth-key", "@p384", "P-256"]),
        .init(["--auth-key", "@encrypted"], says: ["--auth-key", "@encrypted", "encrypted"]),
        .init(["--ca-file", "@nothing"], says: ["--ca-file", "@nothing", "No such file"]),
        .init(["--ca-file", "@empty"], says: ["--ca-file", "@empty"]),
        .init(["--ca-file", "@garbage"], says: ["--ca-file", "@garbage"]),
        .init(["--ledger", "@directory"], says: ["--ledger", "@directory", "exists", "--resume"]),
        .init(["--ledger", "@empty"], says: ["--ledger", "@empty"]),
        .init(
            ["--ledger", "@nothing/below"], says: ["--ledger", "@nothing/below", "No such file"]),
        .init(["--ledger", "@empty", "--resume"], says: ["--ledger", "@empty"]),
        .init(
            ["--ledger", "@strange", "--resume"],
            says: ["--ledger", "@strange", "is neither empty nor a ledger"]),
    ]
}
