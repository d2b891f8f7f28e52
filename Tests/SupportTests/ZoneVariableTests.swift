import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideSupport

/// Which values of the environment variable `TZ` the C library can follow.
@Suite struct ZoneVariableTests {
    @Test(arguments: [
        "", ":", "UTC", "utc", "Etc/UTC", ":Etc/GMT", "GMT0", "Etc/Greenwich", "/etc/localtime",
        ":/etc/localtime", "UTC0", "EST5EDT", "CET-1CEST,M3.5.0,M10.5.0", "<+03>-3", "<-03>+3",
        "WIN-1SUM,J100,J200",
    ])
    func `UTC, a rule as in POSIX and the machine's zone need no file of a zone`(
        _ value: String
    ) throws {
        let empty = try TemporaryDirectory()
        #expect(ZoneVariable.isKnown(value, directory: empty.path))
    }

    @Test func `The name of a zone needs a zone's file in the folder, and a path needs one there`()
        throws
    {
        let folder = try TemporaryDirectory()
        let empty = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/Europe", withIntermediateDirectories: false)
        let file = try folder.write("TZif2 and so on", to: "Europe/Berlin")
        try folder.write("TZi", to: "Europe/Short")
        try folder.write("# no zone", to: "Europe/Other")
        for value in ["Europe/Berlin", ":Europe/Berlin", file, ":\(file)"] {
            #expect(ZoneVariable.isKnown(value, directory: folder.path), "\(value)")
        }
        for value in [
            "Europe/Berlni", "europe/berlin", "Europe/Berlin ", "\"Europe/Berlin\"", "Europe",
            "Europe/Short", "Europe/Other", "CET", "Etc/GMT+5", "<CET", "<CET>", "ab1", "CET+",
            "\(file)2",
        ] {
            #expect(!ZoneVariable.isKnown(value, directory: folder.path), "\(value)")
        }
        #expect(!ZoneVariable.isKnown("Europe/Berlin", directory: empty.path))
    }
}
