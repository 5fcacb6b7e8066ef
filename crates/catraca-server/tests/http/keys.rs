//! Keys for tests, made by the binary itself, and a server that knows them.

use crate::served::{Served, binary};
use crate::talk::{Answer, JSON};

/// A key, and the lines that let it in.
pub struct Key {
    pub key: String,
    pub table: String,
}

/// A key as `catraca keygen` makes it.
pub fn keygen(args: &[&str]) -> Key {
    let ran = binary().arg("keygen").args(args).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    let (key, rest) = text.split_once('\n').unwrap();
    let table = &rest[rest.find("[[auth.key]]").unwrap()..];
    assert!(!rest.contains(key), "the key is shown once: {text}");
    Key { key: key.to_owned(), table: table.to_owned() }
}

impl Key {
    /// One request without a body, with this key.
    pub fn ask(&self, served: &Served, request: &str) -> Answer {
        served.ask(request, &[("Authorization", &format!("Bearer {}", self.key))])
    }

    /// One POST of JSON with this key.
    pub fn post(&self, served: &Served, path: &str, body: &str) -> Answer {
        let mut talk = served.connect();
        let bearer = format!("Bearer {}", self.key);
        let headers = [JSON, ("Authorization", &bearer)];
        talk.send(&format!("POST {path}"), &headers, body.as_bytes());
        talk.answer()
    }
}
