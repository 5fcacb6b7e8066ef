//! API keys for tests, made by `catraca keygen`, and requests that carry them.

use crate::raw_connection::{HttpResponse, JSON};
use crate::test_server::{TestServer, binary};

/// An API key and its `[[auth.key]]` table of the catalog.
pub struct Key {
    pub key: String,
    pub table: String,
}

/// Makes a key with `catraca keygen`.
pub fn keygen(args: &[&str]) -> Key {
    let output = binary().arg("keygen").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (key, rest) = text.split_once('\n').unwrap();
    let table = &rest[rest.find("[[auth.key]]").unwrap()..];
    assert!(!rest.contains(key), "the key is shown once: {text}");
    Key { key: key.to_owned(), table: table.to_owned() }
}

impl Key {
    /// Sends one request without a body, with this key.
    pub fn request(&self, server: &TestServer, request: &str) -> HttpResponse {
        server.request(request, &[("Authorization", &format!("Bearer {}", self.key))])
    }

    /// Sends one POST of JSON, with this key.
    pub fn post(&self, server: &TestServer, path: &str, body: &str) -> HttpResponse {
        let mut connection = server.connect();
        let bearer = format!("Bearer {}", self.key);
        let headers = [JSON, ("Authorization", &bearer)];
        connection.send(&format!("POST {path}"), &headers, body.as_bytes());
        connection.read_response()
    }
}
