//! Texts for people: numbers with their nouns, and untrusted text that is safe to print.

/// A number with thousands separators: `1,204`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and its noun, in singular or plural: `1 policy`, `3 policies`.
pub fn count_noun(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number as u64), if number == 1 { one } else { many })
}

/// Replaces control characters and bidirectional overrides in untrusted text, which could move
/// the cursor or reorder the line.
pub fn sanitize(text: &str) -> String {
    const BIDI_CONTROLS: [std::ops::RangeInclusive<char>; 3] =
        ['\u{200e}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    let is_bidi_control = |c: char| BIDI_CONTROLS.iter().any(|range| range.contains(&c));
    text.chars()
        .map(|c| if c.is_control() || is_bidi_control(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_separators() {
        let texts = [0, 7, 999, 1_000, 12_345, 1_234_567].map(count);
        assert_eq!(texts, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(count_noun(1, "policy", "policies"), "1 policy");
        assert_eq!(count_noun(1_200, "policy", "policies"), "1,200 policies");
    }

    #[test]
    fn untrusted_text_cannot_move_the_cursor() {
        assert_eq!(sanitize("a\u{1b}[2J\n\u{202e}b ç <b>"), "a\u{fffd}[2J\u{fffd}\u{fffd}b ç <b>");
    }
}
