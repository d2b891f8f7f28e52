import BroadsideSupport

// A start that ended before it could note its date. A repeat after midnight would begin the next
// date, so the error names the date.

extension NightRun {
    /// Adds today's date to the error of a start that ended before its night was known, unless a
    /// repeat after midnight would come too late for that night.
    public static func namingToday(_ error: BroadsideError) -> BroadsideError {
        namingToday(error, at: Clock.now().wallMilliseconds)
    }

    static func namingToday(_ error: BroadsideError, at now: UInt64) -> BroadsideError {
        guard ZoneVariable.unknownZone(at: now) == nil, let today = NightDate(localDayOf: now)
        else {
            return error
        }
        return naming(today, error, at: now, length: NightOptions.defaultNightLength / millisecond)
    }

    /// Adds the date of a start to its error.
    ///
    /// - Parameters:
    ///   - now: Time of the start, in milliseconds.
    ///   - length: Length of a night, in milliseconds. If midnight comes later than that, nothing
    ///     is added: a repeat after midnight is then for the next date.
    static func naming(
        _ date: NightDate, _ error: BroadsideError, at now: UInt64, length: UInt64
    ) -> BroadsideError {
        var naming = error
        if error.exitCode == ExitCode.inUse {
            naming.message += ", then run the same command with --date \(date)"
        } else if NightDate(localDayOf: now + length) != NightDate(localDayOf: now) {
            naming.message += "; after midnight, run the same command with --date \(date)"
        }
        return naming
    }
}

extension NightCall {
    /// Adds the date of this start to its error, if the date is not noted.
    func naming(_ error: BroadsideError) -> BroadsideError {
        let history = (try? NightNotes.history(folder: folder.path)) ?? NightHistory()
        guard given == nil, let date = try? date(history), history[date] == nil else {
            return error
        }
        return NightRun.naming(date, error, at: now, length: length)
    }
}
