//! Dates and times in words, in the calendar of today carried backwards.

use bytes::{BufMut, BytesMut};

fn put_padded(out: &mut BytesMut, value: i64, width: u32) {
    (0..width).rev().for_each(|place| out.put_u8(b'0' + (value / 10_i64.pow(place) % 10) as u8));
}

/// Days from 0000-03-01 to 2000-01-01.
const DAYS_TO_2000: i64 = 730_425;
const DAYS_IN_400_YEARS: i64 = 146_097;

/// Year, month and day. Years are counted from March, so that the leap day is their last and months have a fixed rhythm.
fn civil(days_from_2000: i64) -> (i64, i64, i64) {
    let days = days_from_2000 + DAYS_TO_2000;
    let (era, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    // A year ends after 365 days, but every fourth a day later, every hundredth not, the four hundredth again.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    // Five months from March on have 153 days, as have the next five.
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + carry, month, day_of_month)
}

/// Days from 2000-01-01 to a date.
#[must_use]
pub fn days_from_2000(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_2000
}

/// Writes a date as the server does in ISO style.
pub(super) fn put_date(out: &mut BytesMut, days_from_2000: i64) {
    let (year, month, day) = civil(days_from_2000);
    put_padded(out, year, 4);
    out.put_u8(b'-');
    put_padded(out, month, 2);
    out.put_u8(b'-');
    put_padded(out, day, 2);
}

const SECONDS_A_DAY: i64 = 86_400;

/// Writes a timestamp, in microseconds since 2000-01-01 00:00, as the server does in ISO style; whole seconds only.
pub(super) fn put_timestamp(out: &mut BytesMut, microseconds: i64) {
    let seconds = microseconds.div_euclid(1_000_000);
    put_date(out, seconds.div_euclid(SECONDS_A_DAY));
    let second = seconds.rem_euclid(SECONDS_A_DAY);
    for (mark, part) in [(b' ', second / 3600), (b':', second / 60 % 60), (b':', second % 60)] {
        out.put_u8(mark);
        put_padded(out, part, 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_told_from_its_days_and_its_days_from_it() {
        assert_eq!((days_from_2000(2000, 1, 1), days_from_2000(1970, 1, 1)), (0, -10_957));
        for days in (-200_000..200_000).step_by(17) {
            let (year, month, day) = civil(days);
            assert_eq!(days_from_2000(year, month, day), days, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn dates_follow_one_another() {
        let days = |year: i64| (0..366).take_while(move |&day| civil(day + days_before(year)).0 == year).count();
        fn days_before(year: i64) -> i64 {
            365 * (year - 2000) + (year - 2000 + 3).div_euclid(4) - (year - 2000 + 99).div_euclid(100)
                + (year - 2000 + 399).div_euclid(400)
        }
        for (year, length) in
            [(1900, 365), (1999, 365), (2000, 366), (2010, 365), (2024, 366), (2100, 365), (2400, 366)]
        {
            assert_eq!((civil(days_before(year)), days(year)), ((year, 1, 1), length), "{year}");
        }
        assert_eq!(civil(3653), (2010, 1, 1));
    }
}
