//! `strftime_now` for templates that tell the model the date.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

struct Moment {
    year: i64,
    month: i64,
    day: i64,
    /// Day of the year from 1.
    ordinal: i64,
    /// 0 is Sunday.
    weekday: i64,
    /// Seconds since midnight.
    seconds: i64,
    micros: u32,
}

/// Formats a time, in UTC, as Python's `strftime` does in the C locale; an unknown directive stays as it is.
pub(super) fn strftime(format: &str, time: SystemTime) -> String {
    let moment = Moment::new(time);
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let mut rest = letters.clone();
        let bare = rest.next() == Some('-');
        if bare {
            letters = rest;
        }
        match letters.next().map(|directive| (directive, moment.directive(directive))) {
            Some((_, Some(value))) if bare => {
                let value = value.trim_start_matches(['0', ' ']);
                text.push_str(if value.is_empty() { "0" } else { value });
            }
            Some((_, Some(value))) => text.push_str(&value),
            Some((directive, None)) => {
                text.push_str(if bare { "%-" } else { "%" });
                text.push(directive);
            }
            None => text.push('%'),
        }
    }
    text
}

impl Moment {
    fn new(time: SystemTime) -> Self {
        // A clock before 1970 reads as 1970.
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let total = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let (days, seconds) = (total.div_euclid(86_400), total.rem_euclid(86_400));
        // Years counted from March, in eras of 400 years, so that the leap day comes last.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let ordinal = match month {
            1 | 2 => of_year - 305,
            _ => of_year + 60 + i64::from(leap),
        };
        let weekday = (days + 4).rem_euclid(7);
        Self { year, month, day, ordinal, weekday, seconds, micros: since.subsec_micros() }
    }

    fn directive(&self, directive: char) -> Option<String> {
        let (hour, minute, second) = (self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60);
        let hour12 = (hour + 11) % 12 + 1;
        let name = |names: &[&'static str], at: i64| names[usize::try_from(at).unwrap_or(0) % names.len()];
        let (day_name, month_name) = (name(&DAYS, self.weekday), name(&MONTHS, self.month - 1));
        Some(match directive {
            'Y' => self.year.to_string(),
            'y' => format!("{:02}", self.year % 100),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'H' => format!("{hour:02}"),
            'I' => format!("{hour12:02}"),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'f' => format!("{:06}", self.micros),
            'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'j' => format!("{:03}", self.ordinal),
            'w' => self.weekday.to_string(),
            'u' => (if self.weekday == 0 { 7 } else { self.weekday }).to_string(),
            'A' => day_name.to_owned(),
            'a' => day_name[..3].to_owned(),
            'B' => month_name.to_owned(),
            'b' | 'h' => month_name[..3].to_owned(),
            'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
            'D' | 'x' => format!("{:02}/{:02}/{:02}", self.month, self.day, self.year % 100),
            'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            'R' => format!("{hour:02}:{minute:02}"),
            'c' => format!(
                "{} {} {:2} {hour:02}:{minute:02}:{second:02} {}",
                &day_name[..3],
                &month_name[..3],
                self.day,
                self.year
            ),
            'z' | 'Z' => String::new(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }
}
