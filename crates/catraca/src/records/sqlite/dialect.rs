//! What SQLite writes differently from PostgreSQL, in which the statements are written.

use std::collections::HashMap;

/// Words of PostgreSQL, each with SQLite's. SQLite has one schema, and compares text by bytes.
const WORDS: [(&str, &str); 6] = [
    ("catraca.", ""),
    ("$", "?"),
    ("greatest(", "max("),
    ("least(", "min("),
    ("strpos(", "instr("),
    (" COLLATE \"C\"", ""),
];

/// The statement in SQLite's words, on one line: it is hashed at every execution.
pub(super) fn translate(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    WORDS.iter().fold(line, |sql, (word, own)| sql.replace(word, own))
}

/// Translated statements by the address and length of their text, so that each is translated once.
#[derive(Debug, Default)]
pub(super) struct Translations(HashMap<(usize, usize), String>);

impl Translations {
    pub(super) fn get(&mut self, sql: &'static str) -> &str {
        self.0.entry((sql.as_ptr().addr(), sql.len())).or_insert_with(|| translate(sql))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_translated_word_by_word() {
        let sql = "SELECT greatest(b.until, $1), ' '
                   FROM catraca.blocks AS b ORDER BY b.origin COLLATE \"C\" LIMIT $2";
        let own = "SELECT max(b.until, ?1), ' ' FROM blocks AS b ORDER BY b.origin LIMIT ?2";
        assert_eq!(translate(sql), own);
    }
}
