//! A test certificate authority and a server certificate, created with openssl.

use std::path::Path;
use std::process::Command;

/// Writes `ca.pem`, `ca.key`, `server.pem` (for `localhost`) and `server.key` into a directory.
/// Returns whether it succeeded: not if openssl is missing.
pub fn make(directory: &Path) -> bool {
    let script = "set -e
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 \
          -subj /CN=catraca-test-ca -addext basicConstraints=critical,CA:TRUE
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
        printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
          -extfile ext -out server.pem";
    let output = Command::new("bash").args(["-c", script]).current_dir(directory).output();
    output.is_ok_and(|output| output.status.success())
}
