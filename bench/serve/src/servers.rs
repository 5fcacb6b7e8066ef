//! The servers that are measured: how each is started and what it is asked.

use crate::args::{FLOOR, Plan};

/// The catalog that catraca serves here.
const CATALOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/catalog.toml");

/// One server.
pub struct Subject {
    /// Its name in the tables.
    pub name: &'static str,
    /// The path of a check.
    pub path: &'static str,
    /// The body of a check; `{key}` is replaced by eight digits.
    pub body: &'static str,
    command: Vec<String>,
}

/// The one under test.
pub const OURS: &str = "catraca";

const CHECK: &str = r#"{"gate":"api","subject":{"user":"u:{key}"}}"#;

impl Subject {
    /// The command line, on a port.
    pub fn command(&self, port: u16) -> Vec<String> {
        let port = port.to_string();
        self.command.iter().map(|word| word.replace("{port}", &port)).collect()
    }
}

/// All servers of a run.
pub fn all(plan: &Plan) -> Result<Vec<Subject>, String> {
    let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
    let own = own.display().to_string();
    let floor = |name, kind: &str| {
        let command = [&own, FLOOR, kind, "{port}"].map(str::to_owned).to_vec();
        Subject { name, path: "/v1/check", body: CHECK, command }
    };
    let mut all = vec![floor("bare hyper", "hyper"), floor("bare axum", "axum"), ours(plan)];
    all.extend(plan.throttlecrab.as_ref().map(|binary| peer(&binary.display().to_string())));
    Ok(all)
}

/// The server under test.
pub fn ours(plan: &Plan) -> Subject {
    let binary = plan.catraca.display().to_string();
    let words = [&binary, "serve", "--config", CATALOG, "--listen", "127.0.0.1:{port}"];
    let command = words.map(str::to_owned).to_vec();
    Subject { name: OURS, path: "/v1/check", body: CHECK, command }
}

/// Its store is sized for all keys, since a fuller one slows down on every write.
fn peer(binary: &str) -> Subject {
    let words = "--http --http-host 127.0.0.1 --http-port {port} --log-level warn \
                 --store-capacity 400000";
    let words = std::iter::once(binary).chain(words.split_whitespace());
    Subject {
        name: "throttlecrab-server",
        path: "/throttle",
        body: concat!(
            r#"{"key":"u:{key}","max_burst":1000000,"count_per_period":1000000,"#,
            r#""period":3600,"quantity":1}"#
        ),
        command: words.map(str::to_owned).collect(),
    }
}
