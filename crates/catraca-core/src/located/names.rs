//! Names: which characters they may have, and suggestions for mistyped ones.

use super::{LocatedKey, Report, SourceLocation};

/// The most characters of a name.
pub const NAME_MAX: usize = 64;
/// The form of a name, as a regular expression.
pub const NAME_PATTERN: &str = "^[A-Za-z0-9_.-]{1,64}$";

/// Whether a key is a valid name; reports it if not. `what` is the kind of thing it names.
pub fn check_key(report: &mut Report, key: LocatedKey<'_>, what: &str) -> bool {
    check_name(report, key.location, key.text, what)
}

/// Whether a text has the form of a name.
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=NAME_MAX).contains(&text.len()) && text.chars().all(allowed)
}

/// Whether a name is valid; reports it at `location` if not.
pub fn check_name(report: &mut Report, location: SourceLocation, name: &str, what: &str) -> bool {
    let valid = is_name(name);
    if !valid {
        let shown =
            if name.is_empty() { "nothing".into() } else { format!("`{}`", name.escape_debug()) };
        let message = format!("{shown} cannot name {}", with_article(what));
        let fix = format!("use 1 to {NAME_MAX} letters, digits, `_`, `.` or `-`");
        report.error("bad-name", location, message, fix);
    }
    valid
}

/// A noun with its indefinite article.
pub fn with_article(what: &str) -> String {
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {what}")
}

/// A fix for an unknown name: the nearest known one, else the first known names.
pub fn suggest(report: &Report, name: &str, known: &[&str]) -> String {
    if report.is_full() {
        // The error will not be shown, and the search for the nearest name takes time.
        return String::new();
    }
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "remove it, or declare it".to_owned(),
        None if known.len() <= NAMES_LISTED => format!("use one of: {}", known.join(", ")),
        None => format!("use one of: {}, …", known[..NAMES_LISTED].join(", ")),
    }
}

/// The known name with the fewest typing mistakes, if they are few for its length, or else the
/// shortest one that begins with the name.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    nearest_by_distance(name, known).or_else(|| shortest_with_prefix(name, known))
}

fn shortest_with_prefix<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let longer = known.iter().filter(|other| name.len() >= PREFIX_MIN && other.starts_with(name));
    longer.min_by_key(|other| other.len()).copied()
}

fn nearest_by_distance<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // One mistake for every three letters, from one to three.
    let tolerated = (name.chars().count() / 3).clamp(1, 3);
    // A cheap test first: each mistake changes the length by at most one character, of up to 4
    // bytes.
    let alike = known.iter().filter(|other| name.len().abs_diff(other.len()) <= 4 * tolerated);
    let distances = alike.map(|other| (distance(name, other), *other));
    distances.filter(|(far, _)| *far <= tolerated).min_by_key(|(far, _)| *far).map(|(_, near)| near)
}

/// The edit distance of two names (Damerau-Levenshtein): letters inserted, deleted, substituted or
/// swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left = fold_case(left);
    let right = fold_case(right);
    // The last two rows of the matrix of distances, and the one being computed.
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

/// The letters in lower case. Cut at the longest valid name, to bound the time of `distance`.
fn fold_case(name: &str) -> Vec<char> {
    name.chars().take(NAME_MAX).map(|c| c.to_ascii_lowercase()).collect()
}

/// The fewest letters from which the rest of a name is guessed.
const PREFIX_MIN: usize = 3;

/// The number of known names that a fix lists.
const NAMES_LISTED: usize = 32;

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
    fn the_shortest_name_that_begins_alike_is_found() {
        let known = ["blocklisted", "blocked", "ok"];
        assert_eq!(nearest("block", &known), Some("blocked"));
        assert_eq!(nearest("bl", &known), None);
    }

    #[test]
    fn swapped_letters_are_one_mistake() {
        assert_eq!(distance("gate", "gaet"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
