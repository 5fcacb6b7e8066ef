//! Messages of denials: fills in `{retry_after}` as a duration in words, and `{retry_after_s}` as
//! whole seconds.
//!
//! Durations are rounded up, so that a caller that waits as long as the message says is not early.

use crate::catalog::Language;
use crate::time::Span;

/// Fills in the placeholders of a message.
pub fn render(template: &str, retry: Option<Span>, language: Language) -> String {
    // At least one second, since the texts have no smaller unit.
    let seconds = retry.map(|wait| wait.ceil_secs().max(1));
    let number = seconds.map_or_else(String::new, |seconds| seconds.to_string());
    let words = seconds.map_or_else(|| never(language).to_owned(), |s| in_words(s, language));
    template.replace("{retry_after_s}", &number).replace("{retry_after}", &words)
}

fn never(language: Language) -> &'static str {
    match language {
        Language::English => "indefinitely",
        Language::Portuguese => "por tempo indeterminado",
    }
}

/// A duration in its two largest units, the smaller one rounded up. Below two minutes in seconds,
/// below an hour in minutes.
fn in_words(seconds: i64, language: Language) -> String {
    let (large, small) = match seconds {
        0..=119 => return with_unit(seconds, 0, language),
        120..=3_540 => return with_unit((seconds + 59) / 60, 1, language),
        // From 59 min 1 s on, rounding up gives 1 hour, not 60 minutes; the same for a day.
        3_541..=86_340 => split(seconds, 60, 60, 1),
        _ => split(seconds, 3_600, 24, 2),
    };
    match small.0 {
        0 => with_unit(large.0, large.1, language),
        _ => [
            with_unit(large.0, large.1, language),
            conjunction(language),
            with_unit(small.0, small.1, language),
        ]
        .join(" "),
    }
}

/// Splits a duration into a number of units of `rank + 1` and the rest in units of `rank`. A rank
/// is the index of a unit, as in [`with_unit`].
fn split(seconds: i64, unit: i64, per: i64, rank: usize) -> ((i64, usize), (i64, usize)) {
    // Rounded up in the smaller unit before it is split: 1 h 59 min 30 s becomes 2 hours.
    let units = (seconds + unit - 1) / unit;
    ((units / per, rank + 1), (units % per, rank))
}

fn conjunction(language: Language) -> String {
    match language {
        Language::English => "and".to_owned(),
        Language::Portuguese => "e".to_owned(),
    }
}

/// A number with its unit: rank 0 is seconds, 1 minutes, 2 hours, 3 days.
fn with_unit(number: i64, rank: usize, language: Language) -> String {
    let (one, many) = match language {
        Language::English => {
            [("second", "seconds"), ("minute", "minutes"), ("hour", "hours"), ("day", "days")][rank]
        }
        Language::Portuguese => {
            [("segundo", "segundos"), ("minuto", "minutos"), ("hora", "horas"), ("dia", "dias")]
                [rank]
        }
    };
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pt(seconds: i64) -> String {
        render("Aguarde {retry_after}.", Some(Span::from_secs(seconds)), Language::Portuguese)
    }

    /// covers: B-11, 000-40
    #[test]
    fn the_wait_is_written_in_the_language_of_the_catalog() {
        assert_eq!(pt(600), "Aguarde 10 minutos.");
        assert_eq!(pt(601), "Aguarde 11 minutos.");
        assert_eq!(pt(45), "Aguarde 45 segundos.");
        assert_eq!(pt(1), "Aguarde 1 segundo.");
        assert_eq!(pt(3_540), "Aguarde 59 minutos.");
        assert_eq!(pt(3_541), "Aguarde 1 hora.");
        assert_eq!(pt(3_600), "Aguarde 1 hora.");
        assert_eq!(pt(86_340), "Aguarde 23 horas e 59 minutos.");
        assert_eq!(pt(86_341), "Aguarde 1 dia.");
        assert_eq!(pt(5_400), "Aguarde 1 hora e 30 minutos.");
        assert_eq!(pt(90_000), "Aguarde 1 dia e 1 hora.");
        let en = render(
            "{retry_after} ({retry_after_s})",
            Some(Span::from_millis(1)),
            Language::English,
        );
        assert_eq!(en, "1 second (1)");
    }
}
