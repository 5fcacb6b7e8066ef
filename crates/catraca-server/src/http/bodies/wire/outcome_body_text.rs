//! `body_text` of an outcome: a JSON string that contains the body of a response.

use catraca::core::outcome::OutcomeBody;

use crate::http::bodies::problem::Problem;

/// Reads a JSON string that contains JSON. Refuses anything but a string.
pub fn read(raw: &str, bytes_max: usize) -> Result<OutcomeBody, Problem> {
    if !raw.starts_with('"') {
        return Err(Problem::bad("bad-field", "`body_text` of `outcome` must be a string"));
    }
    // A string that cannot be decoded, such as half of a surrogate pair, is an invalid body.
    Ok(match serde_json::from_str::<String>(raw) {
        Ok(text) if text.is_empty() => OutcomeBody::default(),
        Ok(text) => OutcomeBody::from_json(text.as_bytes(), bytes_max),
        Err(_) => OutcomeBody { is_invalid: true, ..OutcomeBody::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_json_and_must_be_a_string() {
        let read_text = |raw: &str| read(raw, 1 << 16).expect("a string");
        assert_eq!(read_text(r#""{\"reject_id\":5}""#).value["reject_id"], 5);
        assert!(read_text(r#""<html>""#).is_invalid && read_text(r#""\ud800""#).is_invalid);
        assert_eq!(read_text("\"\""), OutcomeBody::default());
        assert!(read("{}", 9).is_err());
    }
}
