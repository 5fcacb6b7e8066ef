//! An authority of a test's own and a server's certificate under it, made with openssl.
//!
//! Must not be trusted outside the test that made it: the keys lie beside it.

use std::path::Path;
use std::process::Command;

/// Writes `ca.pem`, `ca.key`, `server.pem` (for `localhost`) and `server.key` into a directory.
/// Says whether it could: not where there is no openssl.
pub fn make(directory: &Path) -> bool {
    let script = "set -e
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 \
          -subj /CN=catraca-test-ca -addext basicConstraints=critical,CA:TRUE
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
        printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
          -extfile ext -out server.pem";
    let made = Command::new("bash").args(["-c", script]).current_dir(directory).output();
    made.is_ok_and(|made| made.status.success())
}
