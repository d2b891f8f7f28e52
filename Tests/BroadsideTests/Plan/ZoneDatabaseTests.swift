import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns
@testable import BroadsidePolicy

/// Zones of the system by their names.
@Suite struct ZoneDatabaseTests {
    @Test func `A zone is found by its name, and the machine's own one is none`() throws {
        let database = ZoneDatabase()
        let berlin = try #require(database.rules(named: "Europe/Berlin"))
        // Summer time in June 2026.
        #expect(berlin.offset(at: 1_780_326_000) == 7_200)
        #expect(database.rules(named: "Europe/Berlin") == berlin, "also the second time")
        #expect(database.rules(named: "Etc/GMT+5")?.offset(at: 0) == -18_000)
        #expect(database.rules(named: "localtime") == nil)
        #expect(database.rules(named: "Europe/Nowhere") == nil)
        #expect(database.rules(named: "Europe") == nil, "a directory")
    }

    @Test(arguments: [
        "", "/", "/etc/localtime", "Europe/", "../../etc/passwd", "Europe//Berlin",
        "Europe/Ber lin", "Europe/.hidden", "a\0b", "Zürich",
    ])
    func `A text of another form is no name, and no file is opened for it`(_ text: String) {
        #expect(!ZoneDatabase.isName(text) && ZoneDatabase().rules(named: text) == nil)
    }

    @Test func `A name of --zone-default that is unknown is refused, with what to do`() throws {
        func message(_ database: ZoneDatabase, _ name: String) -> String? {
            do throws(BroadsideError) {
                _ = try database.rules(of: name, option: "zone-default")
                return nil
            } catch {
                return error.message
            }
        }
        #expect(message(ZoneDatabase(), "UTC") == nil)
        let unknown = try #require(message(ZoneDatabase(), "localtime"))
        #expect(unknown.contains("'localtime' is not a time zone of this system"))
        let empty = try TemporaryDirectory()
        let missing = try #require(message(ZoneDatabase(directory: empty.path), "UTC"))
        #expect(missing.contains("install the package tzdata"))
        let folder = try Self.folder(["UTC": "UTC"])
        let partial = try #require(message(ZoneDatabase(directory: folder.path), "Asia/Tokyo"))
        #expect(partial.contains("install the package tzdata"), "the folder has only UTC")
    }

    @Test func `A local zone that is unknown is refused, with what to do about its cause`() throws {
        func message(_ database: ZoneDatabase, _ zone: String) -> String {
            let error = database.unknownLocalZone(zone)
            #expect(error.exitCode == 2)
            return error.message
        }
        let folder = try Self.folder([
            "UTC": "UTC", "Europe/Berlin": "Europe/Berlin", "America/New_York": "America/New_York",
        ])
        let database = ZoneDatabase(directory: folder.path)
        let typo = message(database, "Europe/Berlni")
        #expect(typo.contains("'Europe/Berlni'") && typo.contains("TZ to a zone such as Europe/"))
        #expect(message(database, ":US/Eastern").contains("set TZ to America/New_York"))
        #expect(message(database, "Europe/Berlin").contains("unset TZDIR"))
        let empty = try TemporaryDirectory()
        let missing = message(ZoneDatabase(directory: empty.path), "Europe/Berlin")
        #expect(missing.contains("install the package tzdata"))
    }

    /// A folder of zones. The files have the given names, and the contents of the system's zones.
    private static func folder(_ zones: [String: String]) throws -> TemporaryDirectory {
        let folder = try TemporaryDirectory()
        for (name, source) in zones {
            let file = URL(filePath: "\(folder.path)/\(name)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            let contents = FileManager.default.contents(
                atPath: "\(ZoneDatabase.directory)/\(source)")
            try #require(contents).write(to: file)
        }
        return folder
    }

    @Test func `A name without a file has the rules of the zone to which it is a link`() throws {
        let folder = try Self.folder([
            "Asia/Kolkata": "Asia/Kolkata", "US/Eastern": "Asia/Tokyo",
            "America/New_York": "America/New_York",
        ])
        let database = ZoneDatabase(directory: folder.path)
        let india = try #require(database.rules(named: "Asia/Calcutta"))
        #expect(india == database.rules(named: "Asia/Kolkata"))
        #expect(india.offset(at: 1_780_326_000) == 19_800)
        #expect(database.rules(named: "asia/calcutta") == nil, "capital letters count")
        #expect(database.rules(named: "Asia/Saigon") == nil, "its zone has no file")
        // A file takes precedence over a link.
        #expect(database.rules(named: "US/Eastern")?.offset(at: 0) == 32_400)
    }

    @Test
    func `Each link leads to a zone with the rules that the link's own file has, from 2020 on`()
        throws
    {
        let names = ZoneLinks.targets.map { $0.key }
        #expect(names == Set(names).sorted(), "each name once, in order")
        // The rules that the files have, without links.
        func rules(_ name: String) -> TimeZoneRules? {
            FileManager.default.contents(atPath: "\(ZoneDatabase.directory)/\(name)")
                .flatMap { TimeZoneRules(file: [UInt8]($0)) }
        }
        for (name, target) in ZoneLinks.targets {
            #expect(!names.contains(target), "\(name) leads to another link")
            let found = try #require(rules(target), "\(target) has no file")
            guard let own = rules(name) else { continue }
            #expect(Self.course(own) == Self.course(found), "\(name) is not \(target)")
        }
    }

    /// The offset at the start of 2020, and the changes until 2040, each with its offset.
    private static func course(_ rules: TimeZoneRules) -> [Int64] {
        var time: Int64 = 1_577_836_800
        var course = [rules.offset(at: time)]
        while let change = rules.nextChange(after: time), change < 2_208_988_800 {
            time = change
            course += [change, rules.offset(at: change)]
        }
        return course
    }

    @Test func `A campaign whose zones are missing is refused, and the packages are named`() throws
    {
        let folder = try Self.folder(["Asia/Kolkata": "Asia/Kolkata"])
        let database = ZoneDatabase(directory: folder.path)
        try database.check(zonesOfCampaign: ["Asia/Calcutta", "Asia/Kolkata"])
        func refusal(_ zones: [String]) throws -> String {
            let error = try #require(throws: BroadsideError.self) {
                try database.check(zonesOfCampaign: zones)
            }
            #expect(error.exitCode == 2 && error.message.contains("tzdata-legacy"))
            return error.message
        }
        #expect(try refusal(["Asia/Calcutta", "Asia/Tokyo"]).contains("Asia/Tokyo, which this"))
        #expect(
            try refusal(["Asia/Tokyo", "Europe/Rome", "Mars/Base"])
                .contains("Asia/Tokyo and 2 other zones, which this system lacks"))
    }
}
