//! Suggestions for misspelt names, by edit distance.

/// The fix for an unknown name: the nearest known name, or the list of all.
pub(super) fn suggest(name: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|other| (distance(name, other), *other)).min();
    match nearest {
        // Up to a third of the letters may differ.
        Some((far, near)) if far <= name.len().div_ceil(3) => format!("did you mean `{near}`?"),
        Some(_) => format!("use one of: {}", known.join(", ")),
        None => "remove it: no name is possible here".to_owned(),
    }
}

/// The Levenshtein distance: letters to add, drop or change to turn one name into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        // The value above and to the left in the matrix, of which only one row is kept.
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_meant_and_a_far_one_is_not() {
        let known = ["allowed", "reason", "retry_after_ms"];
        assert_eq!(suggest("retry_after", &known), "did you mean `retry_after_ms`?");
        assert_eq!(suggest("alowed", &known), "did you mean `allowed`?");
        assert_eq!(suggest("x", &known), "use one of: allowed, reason, retry_after_ms");
    }

    #[test]
    fn letters_are_counted() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
