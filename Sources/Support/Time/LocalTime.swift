internal import Glibc

/// The time of day at this machine's place, with the zone's name: `00:55:02 CET`, and the date if it
/// is another one than in UTC; nil if the place's time is UTC.
package func localTime(_ milliseconds: UInt64) -> String? {
    var seconds = time_t(clamping: milliseconds / 1000)
    // SAFETY: both structs outlive the calls that fill them; the zone's name is copied at once.
    var local = unsafe tm()
    var utc = unsafe tm()
    guard unsafe localtime_r(&seconds, &local) != nil, unsafe gmtime_r(&seconds, &utc) != nil,
        unsafe local.tm_gmtoff != 0
    else { return nil }
    func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let zone = unsafe local.tm_zone.map { unsafe String(cString: $0) } ?? "local"
    let clock = unsafe [local.tm_hour, local.tm_min, local.tm_sec].map(two).joined(separator: ":")
    guard unsafe local.tm_mday != utc.tm_mday else { return "\(clock)\u{a0}\(zone)" }
    let date = unsafe "\(local.tm_year + 1900)-\(two(local.tm_mon + 1))-\(two(local.tm_mday))"
    return "\(date)\u{a0}\(clock)\u{a0}\(zone)"
}
