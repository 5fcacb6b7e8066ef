//! Names: which are allowed, and which was probably meant.
//!
//! Must not know what is named.

use super::bounds::NAME_MAX;
use super::node::Key;
use super::report::{Place, Report};

/// Whether a name is allowed; reports it if not.
pub(super) fn check(report: &mut Report, key: Key<'_>, what: &str) -> bool {
    check_at(report, key.place, key.text, what)
}

/// Whether a name at a place is allowed; reports it if not.
pub(super) fn check_at(report: &mut Report, place: Place, name: &str, what: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let fine = (1..=NAME_MAX).contains(&name.len()) && name.chars().all(allowed);
    if !fine {
        let shown =
            if name.is_empty() { "nothing".into() } else { format!("`{}`", name.escape_debug()) };
        let message = format!("{shown} cannot name {}", an(what));
        let fix = format!("use 1 to {NAME_MAX} letters, digits, `_`, `.` or `-`");
        report.error("bad-name", place, message, fix);
    }
    fine
}

/// A word with its article.
pub(super) fn an(what: &str) -> String {
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {what}")
}

/// A fix for a name that nobody knows: the nearest one, else all of them if they are few.
pub(super) fn suggest(report: &Report, name: &str, known: &[&str]) -> String {
    if report.is_full() {
        return String::new();
    }
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "remove it, or declare it".to_owned(),
        None if known.len() <= LISTED => format!("use one of: {}", known.join(", ")),
        None => format!("use one of: {}, …", known[..LISTED].join(", ")),
    }
}

/// The known name that takes the fewest typing mistakes, if it takes few.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let tolerated = (name.chars().count() / 3).clamp(1, 3);
    let alike = known.iter().filter(|other| name.len().abs_diff(other.len()) <= 4 * tolerated);
    let distances = alike.map(|other| (distance(name, other), *other));
    distances.filter(|(far, _)| *far <= tolerated).min_by_key(|(far, _)| *far).map(|(_, near)| near)
}

/// How many typing mistakes lie between two names: letters added, lost, changed, or swapped.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (folded(left), folded(right));
    let mut rows =
        [vec![0; right.len() + 1], (0..=right.len()).collect(), vec![0; right.len() + 1]];
    for i in 1..=left.len() {
        rows[2][0] = i;
        for j in 1..=right.len() {
            let changed = usize::from(left[i - 1] != right[j - 1]);
            let mut least = (rows[1][j - 1] + changed).min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = least;
        }
        rows.rotate_left(1);
    }
    rows[1][right.len()]
}

/// Letters without case, cut short: a long name is no typing mistake.
fn folded(name: &str) -> Vec<char> {
    name.chars().take(NAME_MAX).map(|c| c.to_ascii_lowercase()).collect()
}

/// How many known names a fix lists.
const LISTED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["window", "bucket", "on_failure", "by"];
        assert_eq!(nearest("windwo", &known), Some("window"));
        assert_eq!(nearest("Bucket", &known), Some("bucket"));
        assert_eq!(nearest("on-failure", &known), Some("on_failure"));
        assert_eq!(nearest("limit", &known), None);
    }

    #[test]
    fn swapped_letters_are_one_mistake() {
        assert_eq!(distance("gate", "gaet"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
