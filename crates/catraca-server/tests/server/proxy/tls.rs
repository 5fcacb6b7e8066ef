//! TLS on both sides, tested with the system's `curl` and `openssl`.

use std::fs;
use std::process::Command;

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
