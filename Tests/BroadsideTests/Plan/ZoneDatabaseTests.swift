import BroadsidePolicy
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

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
    }
}
