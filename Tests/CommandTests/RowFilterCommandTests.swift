import BroadsideTestSupport
import Foundation
import Testing

/// `--where`: the rows that a filter leaves out, in all that reads a list.
@Suite(.timeLimit(.minutes(60)))
struct RowFilterCommandTests {
    /// Makes a list of odd values, conditions and what becomes of each row: read with Python's `csv` and `json`,
    /// compared by Python's `decimal` and `datetime`. Values are as files have them: short rows, quoted
    /// texts, JSON numbers in many forms, nulls, objects.
    private static let judge = #"""
        import csv, datetime, decimal, json, random, re
        choose = random.Random(seed)
        texts = ["FR", "BE", " FR ", "fr", "", "Bonaire, Saba", "a\"b", "=1", "true", "é", "\\N x", "FR;BE"]
        numbers = ["18", "17.999999999999999999", "18.0", "+18", "1.8e1", "-3", "0", "-0.0", "017", "1e400",
            "abc", "", "NaN", "18,5", "9007199254740993", "0x12"]
        versions = ["5.2", "5.2.0", "5.10.1", "5", "6.0.0", "5.2.0.1", "5.1.99", "v5.2.0", "5.2.0-rc1", "05.2.0"]
        dates = ["2024-02-28", "2024-02-29", "2024-02-29T23:59:59Z", "2024-03-01T00:30:00+01:00", "2024-03-01",
            "2024-02-30", "1709164800", "yesterday", "", "2024-02-29T12:00:00.250Z"]
        columns = {"country": texts, "age": numbers, "version": versions, "since": dates}
        missing = object()

        def number(text):
            good = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,6})?", text)
            return decimal.Decimal(text) if good else None
        def version(text):
            if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", text): return None
            parts = [int(part) for part in text.split(".")]
            while parts and parts[-1] == 0: parts.pop()
            return parts
        def instant(text):
            if not re.match(r"\d{4}-", text): return None
            try: found = datetime.datetime.fromisoformat(text)
            except ValueError: return None
            return found if found.tzinfo else found.replace(tzinfo=datetime.timezone.utc)
        def order(own, bound):
            """-1, 0 or 1; None where the value is of another kind than the bound."""
            if number(bound) is not None: read, low, high = number, number(bound), number(bound)
            elif bound.count(".") > 1: read, low, high = version, version(bound), version(bound)
            else:
                read, low = instant, instant(bound)
                high = low + datetime.timedelta(days=1 if len(bound) == 10 else 0, milliseconds=-1)
            value = read(own)
            if value is None: return None
            return -1 if value < low else 1 if value > high else 0
        def holds(value, operator, operands):
            if value is missing: return operator == "!="
            if operator in ("=", "!="):
                found = value is not None and value.strip(" \t\r") in operands
                return found == (operator == "=")
            found = None if value is None else order(value.strip(" \t\r"), operands[0])
            if found is None: return False
            return {"<": found < 0, "<=": found <= 0, ">": found > 0, ">=": found >= 0}[operator]

        def condition():
            column = choose.choice(list(columns))
            pool = columns[column]
            if column == "country" or choose.random() < 0.3:
                operator = choose.choice(["=", "!="])
                operands = [text.strip() for text in choose.sample(pool, choose.randrange(1, 4))]
            else:
                operator = choose.choice(["<", "<=", ">", ">="])
                operands = [choose.choice({"age": ["18", "0", "-3", "9007199254740992", "1.8e1"],
                    "version": ["5.2.0", "5.10.0", "5.2.0.1"], "since": ["2024-02-29", "2024-03-01"]}[column])]
            def quoted(text):
                plain = re.fullmatch(r"[A-Za-z0-9é.+-][^\",]*", text) and choose.random() < 0.7
                return text if plain else '"' + text.replace('"', '""') + '"'
            blank = choose.choice(["", " "])
            name = {"jsonl": "p.age", "csv": "Age", "tsv": "age"}[form] if column == "age" else column
            return (column, operator, operands,
                name + blank + operator + blank + ("," + blank).join(map(quoted, operands)))
        conditions = [condition() for _ in range(choose.randrange(1, 4))]

        tokens = ["%064x" % choose.getrandbits(256) for _ in range(40)]
        opt_outs = set(tokens[:5])
        def token():
            return choose.choice(["", "eXpo[token]", "dQw4:APA91b"]) if choose.random() < 0.1 else choose.choice(tokens)
        rows, path = [], folder + "/list." + form
        if form == "jsonl":
            with open(path, "w") as file:
                for _ in range(300):
                    row = {"token": token(), "p": {}}
                    for column, pool in columns.items():
                        text = choose.choice(pool)
                        value = choose.choice([text, text, text, None, True, [text], {"x": text}])
                        if choose.random() < 0.1: continue
                        if value == text and number(text) is not None and re.fullmatch(r"-?(0|[1-9][0-9]*)([.e].*)?", text):
                            value = "RAW" + text if choose.random() < 0.5 else text
                        (row["p"] if column == "age" else row)[column] = value
                    line = json.dumps(row, ensure_ascii=choose.random() < 0.5)
                    file.write(re.sub(r'"RAW([^"]*)"', r"\1", line) + "\n")
            for line in open(path):
                row = json.loads(line, parse_float=str, parse_int=str)
                row["age"] = row["p"].get("age")
                def text(value):
                    if value is None: return missing
                    if isinstance(value, bool): return "true" if value else "false"
                    return value if isinstance(value, str) else None
                rows.append((row["token"], {name: text(row.get(name)) for name in columns}))
        else:
            names = ["country", "token", "age", "version", "since"]
            with open(path, "w", newline="") as file:
                writer = csv.writer(file, "excel" if form == "csv" else "excel-tab", lineterminator="\n")
                writer.writerow(names)
                for _ in range(300):
                    row = [choose.choice(texts), token()] + [choose.choice(columns[name]) for name in names[2:]]
                    writer.writerow(row[:choose.choice([5, 5, 5, 4, 3])])
            reader = csv.reader(open(path, newline=""), "excel" if form == "csv" else "excel-tab")
            next(reader)
            for row in reader:
                fields = dict(zip(names, row))
                rows.append((fields["token"], {name: fields.get(name, missing) for name in columns}))

        sent, result = set(), []
        for token, values in rows:
            matches = all(holds(values[column], operator, operands) for column, operator, operands, _ in conditions)
            if re.fullmatch("[0-9a-f]{64}", token):
                if token in opt_outs: result.append("skipped Suppressed")
                elif token in sent: result.append("skipped Duplicate")
                elif not matches: result.append("skipped Filtered")
                else:
                    result.append("accepted ")
                    sent.add(token)
            else: result.append("invalid MalformedToken" if matches else "skipped Filtered")
        open(folder + "/opt-outs", "w").write("".join(token + "\n" for token in sorted(opt_outs)))
        json.dump({"where": [text for *_, text in conditions], "rows": result}, open(folder + "/expected", "w"))
        """#

    /// Runs the judge for each folder; the seed is the folder's index.
    private static let judgeAll = """
        import sys
        judge = compile(sys.argv[1], "judge", "exec")
        for seed, folder in enumerate(sys.argv[3:]):
            exec(judge, dict(folder=folder, form=sys.argv[2], seed=seed))
        """

    private struct Judgement: Decodable {
        var `where`: [String]
        var rows: [String]
    }

    /// The judgement of a campaign's list, and the options of its conditions.
    private func judged(_ campaign: Campaign, _ form: String) throws -> (Judgement, [String]) {
        let folder = campaign.directory.path
        let text = try Data(contentsOf: URL(filePath: "\(folder)/expected"))
        let judgement = try JSONDecoder().decode(Judgement.self, from: text)
        let more =
            [
                "--tokens", "\(folder)/list.\(form)", "--suppress", "\(folder)/opt-outs",
                "--duplicates", "skip", "--max-invalid", "100",
            ] + judgement.where.flatMap { ["--where", $0] }
        return (judgement, more)
    }

    @Test(arguments: ["csv", "tsv", "jsonl"])
    func `Each row ends as Python says of the same list and conditions`(form: String) throws {
        let campaigns = try (0..<12).map { _ in try Campaign(rows: 1) }
        try Subprocess.run(
            "python3",
            ["-B", "-c", Self.judgeAll, Self.judge, form] + campaigns.map(\.directory.path),
            in: campaigns[0].directory)
        let apns = try LocalAPNs()
        for (seed, campaign) in campaigns.enumerated() {
            try expectJudgement(
                of: campaign, form, to: apns.endpoint, seed: seed, withDryRun: seed < 2)
        }
    }

    private func expectJudgement(
        of campaign: Campaign, _ form: String, to endpoint: String, seed: Int, withDryRun: Bool
    ) throws {
        let (judgement, more) = try judged(campaign, form)
        let note = Comment("seed \(seed): \(judgement.where)")
        guard judgement.rows.contains(where: { $0 != "invalid MalformedToken" }) else { return }
        if withDryRun {
            let dry = try campaign.send(to: endpoint, more + ["--dry-run"])
            #expect(dry.exitCode == 0, "\(dry.errors)")
            let words = dry.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            let sendable = judgement.rows.count { $0 == "accepted " }
            #expect(words.contains("to send \(sendable) "), note)
            let filtered = judgement.rows.count { $0 == "skipped Filtered" }
            #expect(words.contains("Filtered \(filtered)"), note)
        }
        let sent = try campaign.send(to: endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let rows = try campaign.export().map { "\($0.state) \($0.reason)" }
        #expect(rows == judgement.rows, note)
    }

    @Test func `A filter is a part of the campaign, however it is written`() throws {
        let campaign = try Campaign(rows: 1)
        let token = campaign.tokens.token(0)
        let list = try campaign.directory.write(
            "token,age,os\n\(token),18,ios\n\(token),17,ios\n", to: "list.csv")
        let apns = try LocalAPNs()
        let endpoint = apns.endpoint
        let more = ["--tokens", list, "--resume-or-begin"]
        let filter = ["--where", "age >= 18", "--where", "os = ios,ipados"]
        let sent = try campaign.send(to: endpoint, more + filter)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let same = ["--where", " age>=\"18\"", "--where", "os = ipados , \"ios\",ios"]
        let again = try campaign.send(to: endpoint, more + same)
        #expect(again.exitCode == 0, "\(again.errors)")
        for (other, now) in [
            (
                ["--where", "age >= 19", "--where", "os = ios,ipados"],
                "'age >= 19' and 'os = ios,ipados'"
            ),
            (["--where", "age >= 18"], "'age >= 18'"), ([], "not set"),
        ] {
            let refused = try campaign.send(to: endpoint, more + other)
            #expect(refused.exitCode == 2)
            #expect(
                refused.errors.contains(
                    "--where was 'age >= 18' and 'os = ios,ipados', now it is \(now)"),
                "\(refused.errors)")
        }
    }

    @Test
    func
        `Rows that a filter leaves out count for limit, preview, canary and the first look as skipped ones do`()
        throws
    {
        let campaign = try Campaign(rows: 2_400)
        let lines = (0..<2_400).map { row in
            // Rows of another platform come first, with tokens of another kind.
            row < 1_200
                ? "dQw4w9WgXcQ:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx\(row),android,\(row)"
                : "\(campaign.tokens.token(row)),ios,\(row)"
        }
        let list = try campaign.directory.write(
            "token,os,n\n" + lines.joined(separator: "\n") + "\n", to: "list.csv")
        let apns = try LocalAPNs()
        let endpoint = apns.endpoint
        let payload = try campaign.directory.write(
            #"{"aps":{"alert":"{{n}}"}}"#, to: "personal.json")
        let more = ["--tokens", list, "--where", "os = ios", "--payload", payload]
        let shown = try campaign.send(to: endpoint, more + ["--preview", "1"])
        #expect(shown.exitCode == 0, "\(shown.errors)")
        #expect(shown.output.contains(#"{"aps":{"alert":"1200"}}"#), "\(shown.output)")
        #expect(shown.output.hasPrefix("line 1202 "))
        let dry = try campaign.send(to: endpoint, more + ["--dry-run", "--limit", "1500"])
        #expect(dry.exitCode == 0, "\(dry.errors)")
        let words = dry.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("where os = ios"))
        #expect(words.contains("to send 300 "))
        let sent = try campaign.send(to: endpoint, more + ["--canary", "10", "--limit", "1500"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let rows = try campaign.export()
        #expect(rows.count == 1_500)
        #expect(rows.prefix(1_200).allSatisfy { $0.state == "skipped" && $0.reason == "Filtered" })
        #expect(rows.dropFirst(1_200).allSatisfy { $0.state == "accepted" })
    }

    @Test
    func `What no filter can be is refused with its place, and values of another kind are told`()
        throws
    {
        let campaign = try Campaign(rows: 3)
        let tokens = (0..<3).map { campaign.tokens.token($0) }
        let directory = campaign.directory
        let csv = try directory.write(
            "token,age\n\(tokens[0]),18\n\(tokens[1]),5.2.1\n\(tokens[2]),\n", to: "list.csv")
        let json = try directory.write(
            tokens.map { "{\"token\":\"\($0)\",\"user\":{\"age\":18}}\n" }.joined(),
            to: "list.jsonl")
        let file = try directory.write(
            "{\n  tokens: \"\(csv)\",\n  where: [\"age >= 18\", \"age > x\"],\n}",
            to: "campaign.json5")
        for (options, says) in [
            (
                ["--tokens", csv, "--where", "age >= x"],
                "--where 'age >= x': character 8: 'x' is not"
            ),
            (
                ["--campaign", file],
                "campaign.json5, line 3, column 10: --where 'age > x': condition 2, character 7"
            ),
            (["--tokens", csv, "--where", "agee >= 1"], "no column 'agee': did you mean 'age'?"),
            (["--tokens", campaign.list, "--where", "token = aa"], "a plain list of lines"),
            (["--tokens", campaign.list, "--where", "age = 1"], "a plain list of lines"),
            (["--to", tokens[0], "--where", "age = 1"], "--to has no column 'age': make"),
            (
                ["--tokens", json, "--where", "age >= 18"],
                "no row of --tokens \(json) has a value of 'age': did you mean user.age?"
            ),
        ] {
            let without: Set<String> =
                options.contains("--tokens") ? [] : ["tokens"]
            let refused = try Broadside.run(
                campaign.arguments(to: "localhost:1", options + ["--dry-run"], without: without),
                in: directory)
            #expect(refused.exitCode == 2, "\(options): \(refused.output)")
            #expect(refused.errors.contains(says), "\(refused.errors)")
        }
        let told = try campaign.send(
            to: "localhost:1", ["--tokens", csv, "--where", "age >= 18", "--dry-run"])
        #expect(told.exitCode == 0, "\(told.errors)")
        #expect(
            told.errors.contains(
                "warning: --where 'age >= 18': 1 row has a value that is not a number, the first on line 3 "
                    + "('5.2.1'): such values do not match; for versions compare with 18.0.0"),
            "\(told.errors)")
    }

    @Test
    func `A campaign whose filter keeps another spelling of true is refused before it begins`()
        throws
    {
        let campaign = try Campaign(rows: 4)
        let values = ["true", "TRUE", "1", "false"]
        let rows = values.enumerated().map { "\(campaign.tokens.token($0)),\($1)\n" }
        let list = try campaign.directory.write(
            "token,opted_out\n" + rows.joined(), to: "list.csv")
        let apns = try LocalAPNs()
        let options = ["--tokens", list, "--where", "opted_out != true"]
        for more in [["--dry-run"], []] {
            let refused = try campaign.send(to: apns.endpoint, options + more)
            #expect(refused.exitCode == 2, "\(refused.output)")
            #expect(
                refused.errors.contains("on line 3 ('TRUE' instead of 'true')")
                    && refused.errors.contains("add --where 'opted_out != TRUE,1'"),
                "\(refused.errors)")
        }
        #expect(try !campaign.directory.names(in: campaign.directory.path).contains("ledger"))
        let sent = try campaign.send(
            to: apns.endpoint, options + ["--where", "opted_out != TRUE,1"])
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        #expect(try apns.finish().count == 1)
    }
}
