//! TLS on both sides, tested with the system's `curl` and `openssl`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::helpers::TestUpstream;
use crate::http::tls::certificate;
use crate::test_server::{TestServer, catalog_file};

const POLICY: &str = "[policy.site]\nby = ['ip']\nwindow = '99 per 1m'\n";

/// The address after these words of the greeting.
fn address_of(server: &TestServer, words: &str) -> String {
    let line = server.greeting.lines().find(|line| line.contains(words)).unwrap();
    let address = line.split("://").nth(1).and_then(|rest| rest.split(' ').next());
    address.unwrap().to_owned()
}

/// A proxy with TLS, whose upstream is another server with TLS. The proxy trusts `ca_file`.
fn proxied_health(ca_file: &str, http: &str) -> (String, String) {
    let upstream_file =
        catalog_file(&format!("{POLICY}[server]\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n"));
    let folder = upstream_file.parent().unwrap();
    certificate(folder, "7");
    let upstream = TestServer::from_file(&upstream_file);
    let port = upstream.address.rsplit(':').next().unwrap();
    let text = format!(
        "{POLICY}[[route]]\nmatch = '/healthz'\ngate = 'site'\n\
         upstream = 'https://localhost:{port}'\n\
         [proxy]\nlisten = '127.0.0.1:0'\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n{ca_file}\n"
    );
    let file = catalog_file(&text);
    let proxy_folder = file.parent().unwrap();
    for name in ["cert.pem", "key.pem"] {
        fs::copy(folder.join(name), proxy_folder.join(name)).unwrap();
    }
    let proxy = TestServer::from_file(&file);
    assert!(proxy.greeting.contains("the requests of https://"), "{}", proxy.greeting);
    let url = format!("https://{}/healthz", address_of(&proxy, "It proxies"));
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "30", "--cacert", "cert.pem", http, &url]);
    curl.args(["-w", " %{http_version} %{http_code}"]);
    let output = curl.current_dir(proxy_folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn clients_and_upstreams_may_use_tls() {
    for (option, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let (answer, error) = proxied_health("ca_file = 'cert.pem'", option);
        assert!(answer.ends_with(&format!(" {version} 200")), "{answer}{error}");
    }
}

#[test]
fn an_upstream_with_an_unknown_certificate_is_unreachable() {
    let (answer, error) = proxied_health("", "--http2");
    assert!(answer.contains("upstream-unreachable"), "{answer}{error}");
    assert!(answer.ends_with(" 502"), "{answer}{error}");
}

/// Makes an authority and a certificate of it for each name.
fn client_certificates(folder: &Path, authority: &str, names: &[&str]) {
    let script = format!(
        "set -e\n\
         echo extendedKeyUsage=clientAuth > extensions\n\
         openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
         -subj /CN={authority} -keyout {authority}.key -out {authority}.pem\n\
         for name in {}; do\n\
         openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name \
         -keyout $name.key -out $name.csr\n\
         openssl x509 -req -in $name.csr -extfile extensions -days 2 \
         -CA {authority}.pem -CAkey {authority}.key \
         -CAcreateserial -out $name.pem\n\
         done",
        names.join(" ")
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A proxy whose route counts by the certificate of the client, and the folder of its files.
fn certified_proxy(client_auth: &str, upstream: &TestUpstream) -> (TestServer, PathBuf) {
    let url = &upstream.url;
    let text = format!(
        "[policy.device]\nby = ['device']\nwindow = '1 per 1h'\non_missing = 'deny'\n\
         [[route]]\nmatch = '/**'\ngate = 'device'\nupstream = '{url}'\n\
         set = {{ device = 'certificate:subject' }}\n\
         [proxy]\nlisten = '127.0.0.1:0'\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n\
         client_ca = 'authority.pem'\nclient_auth = '{client_auth}'\n"
    );
    let file = catalog_file(&text);
    let folder = file.parent().unwrap().to_owned();
    certificate(&folder, "7");
    client_certificates(&folder, "authority", &["ana", "bea"]);
    client_certificates(&folder, "stranger", &["eve"]);
    (TestServer::from_file(&file), folder)
}

/// The status of a request with the certificate of a client; 0 if the handshake fails.
fn status_with(proxy: &TestServer, folder: &Path, client: Option<&str>, http: &str) -> u16 {
    let mut curl = Command::new("curl");
    curl.args(["-s", "--max-time", "30", "--cacert", "cert.pem", "-o", "answer", http]);
    curl.args(["-w", "%{http_code}"]).arg(format!("https://{}/", address_of(proxy, "It proxies")));
    if let Some(name) = client {
        curl.args(["--cert", &format!("{name}.pem"), "--key", &format!("{name}.key")]);
    }
    let output = curl.current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).parse().unwrap()
}

/// Regression: a verified certificate that cannot be read was like none, and nothing said so.
#[test]
fn a_verified_certificate_that_cannot_be_read_is_logged() {
    let upstream = TestUpstream::constant("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let (proxy, folder) = certified_proxy("required", &upstream);
    // A DNS name with a byte that is no letter: the signature is valid, the name is not.
    let script = "set -e\n\
                  echo 2.5.29.17=DER:30:03:82:01:ff >> extensions\n\
                  openssl x509 -req -in ana.csr -extfile extensions -days 2 \
                  -CA authority.pem -CAkey authority.key -out ana.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(&folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(status_with(&proxy, &folder, Some("ana"), "--http1.1"), 400);
    proxy.signal("TERM");
    let (_, stderr) = proxy.wait_for_exit();
    let line = "the certificate of a client cannot be read";
    assert_eq!(stderr.matches(line).count(), 1, "{stderr}");
}

#[test]
fn clients_are_counted_by_their_certificates() {
    let upstream = TestUpstream::constant("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let (proxy, folder) = certified_proxy("required", &upstream);
    for (client, http, status) in [
        (Some("ana"), "--http2", 200),
        (Some("ana"), "--http1.1", 429),
        (Some("bea"), "--http1.1", 200),
        // Of an authority that is not trusted.
        (Some("eve"), "--http1.1", 0),
        (None, "--http1.1", 0),
    ] {
        assert_eq!(status_with(&proxy, &folder, client, http), status, "{client:?}");
    }
    let (proxy, folder) = certified_proxy("optional", &upstream);
    for (client, status) in [(Some("ana"), 200), (Some("ana"), 429), (Some("eve"), 0), (None, 400)]
    {
        assert_eq!(status_with(&proxy, &folder, client, "--http2"), status, "{client:?}");
    }
}
