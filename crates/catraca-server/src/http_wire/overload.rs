//! The 503 that a connection above a limit gets before it is closed.

use crate::listener::ConnectionLimit;

/// A complete response as a constant, so that a refusal costs no formatting.
macro_rules! refusal {
    ($length:literal, $detail:literal) => {
        concat!(
            "HTTP/1.1 503 Service Unavailable\r\n",
            "content-type: application/problem+json\r\n",
            "retry-after: 1\r\n",
            "connection: close\r\n",
            "content-length: ",
            $length,
            "\r\n\r\n",
            r#"{"type":"/docs/errors/too-many-connections","title":"Service Unavailable","#,
            r#""status":503,"code":"too-many-connections","detail":""#,
            $detail,
            "\"}",
        )
    };
}

const FULL: &str = refusal!("178", "connections_max is reached; try again in a second");
const PER_ADDRESS: &str =
    refusal!("194", "too many connections from your address; close some, or reuse them");

/// The response for the limit that was reached.
pub fn response(limit: ConnectionLimit) -> &'static [u8] {
    match limit {
        ConnectionLimit::Total => FULL.as_bytes(),
        ConnectionLimit::PerAddress => PER_ADDRESS.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_has_the_length_it_announces_and_is_json() {
        for text in [FULL, PER_ADDRESS] {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
            let problem: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(problem["status"], 503);
        }
    }
}
