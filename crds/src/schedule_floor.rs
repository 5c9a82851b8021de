//! Pure: which floor a schedule asks for at a time.

use crate::{Day, MemoryBundleSpec, Schedule, Window};
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// The floor in GB/s that holds at `now`: that of the first open window, else the spec's.
///
/// Windows are read on the wall clock of their time zone. A start that a change to summer time
/// skips comes as much later; one that a change back repeats is taken the first time, and an end
/// the first time too: a window is open on exactly one stretch of time. A time zone that is not
/// known closes every window.
pub fn floor_at(spec: &MemoryBundleSpec, now: Timestamp) -> u32 {
    let window = spec.schedule.as_ref().and_then(|schedule| open_window(schedule, now));
    window.map_or(spec.bandwidth_floor_gbs, |window| window.bandwidth_floor_gbs)
}

/// The first window that is open at `now`.
pub fn open_window(schedule: &Schedule, now: Timestamp) -> Option<&Window> {
    let zone = TimeZone::get(&schedule.time_zone).ok()?;
    let today = zone.to_datetime(now).date();
    schedule.windows.iter().find(|window| {
        days_around(today).any(|day| {
            stretch(window, day, &zone).is_some_and(|(start, end)| start <= now && now < end)
        })
    })
}

/// When the next window opens or closes.
pub fn next_change(schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
    let zone = TimeZone::get(&schedule.time_zone).ok()?;
    let today = zone.to_datetime(now).date();
    let stretches = schedule.windows.iter().flat_map(|window| {
        days_around(today).filter_map(|day| stretch(window, day, &zone)).collect::<Vec<_>>()
    });
    stretches.flat_map(|(start, end)| [start, end]).filter(|at| *at > now).min()
}

/// A window that is open now began today or yesterday, or just after midnight tomorrow where a
/// clock change moves it.
fn days_around(today: Date) -> impl Iterator<Item = Date> {
    (-1..=1).filter_map(move |offset| today.checked_add(offset.days()).ok())
}

/// From when to when the window that begins on `day` is open.
fn stretch(window: &Window, day: Date, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    if !window.days.iter().any(|it| weekday(*it) == day.weekday()) {
        return None;
    }
    let (start, end) = (clock(&window.start)?, clock(&window.end)?);
    let last = if end <= start { day.tomorrow().ok()? } else { day };
    let at = |date: Date, time: Time| {
        // "Compatible": into a gap, later; into a fold, the first time.
        zone.to_ambiguous_timestamp(DateTime::from_parts(date, time)).compatible().ok()
    };
    Some((at(day, start)?, at(last, end)?))
}

fn clock(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

fn weekday(day: Day) -> Weekday {
    match day {
        Day::Mon => Weekday::Monday,
        Day::Tue => Weekday::Tuesday,
        Day::Wed => Weekday::Wednesday,
        Day::Thu => Weekday::Thursday,
        Day::Fri => Weekday::Friday,
        Day::Sat => Weekday::Saturday,
        Day::Sun => Weekday::Sunday,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LatencyClass;

    const WEEK: [Day; 7] = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];

    fn window(days: &[Day], start: &str, end: &str, floor: u32) -> Window {
        Window {
            name: format!("w{floor}"),
            days: days.to_vec(),
            start: start.into(),
            end: end.into(),
            bandwidth_floor_gbs: floor,
        }
    }

    fn spec(zone: &str, windows: Vec<Window>) -> MemoryBundleSpec {
        let mut spec = MemoryBundleSpec::new(1 << 30, LatencyClass::T1, 10);
        spec.schedule = Some(Schedule { time_zone: zone.into(), windows });
        spec
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn check(spec: &MemoryBundleSpec, table: &[(&str, u32)]) {
        for (time, floor) in table {
            assert_eq!(floor_at(spec, at(time)), *floor, "at {time}");
        }
    }

    #[test]
    fn the_first_window_wins_and_outside_all_the_spec_holds() {
        let windows =
            vec![window(&[Day::Mon], "09:00", "12:00", 50), window(&WEEK, "08:00", "18:00", 30)];
        // 2026-03-02 is a Monday.
        check(
            &spec("UTC", windows),
            &[
                ("2026-03-02T07:59:59Z", 10),
                ("2026-03-02T08:00:00Z", 30),
                ("2026-03-02T09:00:00Z", 50),
                ("2026-03-02T12:00:00Z", 30),
                ("2026-03-03T09:00:00Z", 30),
                ("2026-03-02T18:00:00Z", 10),
            ],
        );
    }

    #[test]
    fn a_window_past_midnight_belongs_to_the_day_it_begins_on() {
        // Friday night only.
        let night = spec("UTC", vec![window(&[Day::Fri], "22:00", "06:00", 80)]);
        check(
            &night,
            &[
                ("2026-03-06T05:00:00Z", 10),
                ("2026-03-06T22:00:00Z", 80),
                ("2026-03-07T05:59:59Z", 80),
                ("2026-03-07T06:00:00Z", 10),
                ("2026-03-07T22:30:00Z", 10),
            ],
        );
        assert_eq!(
            next_change(night.schedule.as_ref().unwrap(), at("2026-03-06T21:00:00Z")),
            Some(at("2026-03-06T22:00:00Z"))
        );
        assert_eq!(
            next_change(night.schedule.as_ref().unwrap(), at("2026-03-06T23:00:00Z")),
            Some(at("2026-03-07T06:00:00Z"))
        );
    }

    #[test]
    fn equal_ends_mean_a_whole_day() {
        let day = spec("UTC", vec![window(&[Day::Mon], "08:00", "08:00", 20)]);
        check(
            &day,
            &[
                ("2026-03-02T08:00:00Z", 20),
                ("2026-03-03T07:59:59Z", 20),
                ("2026-03-03T08:00:00Z", 10),
            ],
        );
    }

    #[test]
    fn a_start_that_summer_time_skips_comes_as_much_later() {
        // Berlin, 2026-03-29: 02:00 becomes 03:00.
        let early = spec("Europe/Berlin", vec![window(&WEEK, "02:30", "05:00", 40)]);
        check(
            &early,
            &[
                ("2026-03-28T01:30:00Z", 40),
                ("2026-03-29T01:00:00Z", 10),
                ("2026-03-29T01:30:00Z", 40),
                ("2026-03-29T02:59:59Z", 40),
                ("2026-03-29T03:00:00Z", 10),
            ],
        );
    }

    #[test]
    fn an_hour_that_comes_twice_opens_a_window_once() {
        // Berlin, 2026-10-25: 03:00 becomes 02:00.
        let early = spec("Europe/Berlin", vec![window(&WEEK, "02:15", "02:45", 40)]);
        check(
            &early,
            &[
                ("2026-10-25T00:14:59Z", 10),
                ("2026-10-25T00:15:00Z", 40),
                ("2026-10-25T00:45:00Z", 10),
                ("2026-10-25T01:20:00Z", 10),
            ],
        );
        // A window over the change is an hour longer.
        let night = spec("Europe/Berlin", vec![window(&WEEK, "22:00", "06:00", 40)]);
        check(&night, &[("2026-10-24T20:00:00Z", 40), ("2026-10-25T04:59:59Z", 40)]);
        check(&night, &[("2026-10-25T05:00:00Z", 10)]);
    }

    #[test]
    fn zones_far_from_utc_have_their_own_days() {
        // Kiritimati is 14 hours ahead: its Monday begins on Sunday at 10:00 UTC.
        let monday = spec("Pacific/Kiritimati", vec![window(&[Day::Mon], "00:00", "00:00", 70)]);
        check(
            &monday,
            &[
                ("2026-03-01T09:59:59Z", 10),
                ("2026-03-01T10:00:00Z", 70),
                ("2026-03-02T10:00:00Z", 10),
            ],
        );
    }

    #[test]
    fn an_unknown_zone_or_a_wrong_clock_opens_nothing() {
        check(&spec("Mars/Base", vec![window(&WEEK, "00:00", "00:00", 9)]), &[(NOW, 10)]);
        check(&spec("UTC", vec![window(&WEEK, "25:00", "26:00", 9)]), &[(NOW, 10)]);
        assert_eq!(floor_at(&MemoryBundleSpec::new(1, LatencyClass::T0, 3), at(NOW)), 3);
    }

    const NOW: &str = "2026-03-02T10:00:00Z";
}
