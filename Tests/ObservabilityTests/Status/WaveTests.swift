import BroadsideObservability
import BroadsideSupport
import Testing

/// Texts about a wave.
@Suite struct WaveTests {
    @Test func `The name of a zone with a reversed sign has the offset after it`() {
        var wave = Wave(atMilliseconds: 0, isAtOnce: true, localText: "1970-01-01 08:00")
        wave.add("Etc/GMT-8", rows: 2)
        wave.add("Asia/Manila", rows: 1)
        #expect(wave.rowsText == "3 rows in Etc/GMT-8 (UTC+8) and 1 other")
        #expect(wave.json.object.contains(#""zones":["Etc/GMT-8","Asia/Manila"]"#))
        #expect(Wave.zoneText("Etc/GMT") == "Etc/GMT")
    }
}
