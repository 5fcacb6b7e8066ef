//! Measures what a reverse proxy costs: catraca beside nginx alone, and beside nginx that asks
//! catraca before it forwards (`auth_request`). The upstream without a proxy shows what each adds.
//!
//! The proxies are on core 0. The upstream is a bare server on core 1, with the load.

use std::fs;
use std::path::{Path, PathBuf};

use crate::args::{FLOOR, Plan};
use crate::child::{Server, free_port, step_aside};
use crate::conduct::{Target, in_order, measure_target, print_rows};
use crate::report;
use crate::stream;

/// Requests per second in the open loop: what every proxy can do on one core.
const RATE: f64 = 5_000.0;
const BODY: &str = r#"{"order":1}"#;

/// A way to the upstream.
#[derive(Clone, Copy)]
pub enum Proxy {
    /// nginx with `proxy_pass`.
    Nginx,
    /// nginx that asks catraca first.
    NginxAsks,
    /// The proxy of catraca.
    Catraca,
    /// The upstream without a proxy.
    Direct,
}

/// The first one is what the others are compared with.
pub const WAYS: [Proxy; 4] = [Proxy::Nginx, Proxy::NginxAsks, Proxy::Catraca, Proxy::Direct];
const PROXIES: [Proxy; 3] = [Proxy::Nginx, Proxy::NginxAsks, Proxy::Catraca];

/// A proxy that runs, with what belongs to it.
pub struct Site {
    /// The port of the proxy, or that of the upstream if there is no proxy.
    pub port: u16,
    /// The processes of the proxy; none if there is no proxy.
    pub servers: Vec<Server>,
    /// The server behind it.
    pub upstream: Server,
    folder: PathBuf,
}

impl Proxy {
    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::NginxAsks => "nginx + auth_request",
            Self::Catraca => "catraca",
            Self::Direct => "direct",
        }
    }
}

/// Runs all rounds and prints the tables.
pub fn run(plan: &Plan) -> Result<(), String> {
    step_aside();
    let mut rows = Vec::new();
    let mut streams = Vec::new();
    for round in 0..plan.rounds {
        for proxy in in_order(round, &WAYS) {
            eprintln!("round {}/{}: {}", round + 1, plan.rounds, proxy.name());
            let site = Site::start(plan, *proxy)?;
            let target = Target {
                name: proxy.name(),
                port: site.port,
                path: "/orders/{key}",
                body: BODY,
                rate: RATE,
                measured: &site.servers.iter().collect::<Vec<_>>(),
                beside: &[&site.upstream],
            };
            rows.push(measure_target(plan, round, &target)?);
            streams.push(stream::measure(round, *proxy, &site)?);
        }
    }
    let names = PROXIES.map(Proxy::name);
    print_rows(plan, &rows, &names, RATE)?;
    if plan.json.as_deref() != Some("-") {
        println!("\n{}", report::write_added(&rows, &names, Proxy::Direct.name(), RATE));
        println!("{}", stream::table(&streams));
    }
    Ok(())
}

impl Site {
    fn start(plan: &Plan, proxy: Proxy) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("catraca-bench-{}", free_port()?));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let behind = free_port()?;
        let own = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let own = own.display().to_string();
        let command = [&own, FLOOR, "hyper", &behind.to_string()].map(str::to_owned);
        let upstream = Server::start_on("1", &command, behind, None)?;
        let port = match proxy {
            Proxy::Direct => behind,
            _ => free_port()?,
        };
        let servers = match proxy {
            Proxy::Direct => Vec::new(),
            Proxy::Nginx => vec![start_nginx(plan, &folder, port, behind, None)?],
            Proxy::NginxAsks => {
                let (catraca, api) = start_catraca(plan, &folder, None, behind)?;
                vec![catraca, start_nginx(plan, &folder, port, behind, Some(api))?]
            }
            Proxy::Catraca => vec![start_catraca(plan, &folder, Some(port), behind)?.0],
        };
        Ok(Self { port, servers, upstream, folder })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.servers.clear();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts catraca, as a proxy on `listen` if there is one; returns the port of its API too.
fn start_catraca(
    plan: &Plan,
    folder: &Path,
    listen: Option<u16>,
    behind: u16,
) -> Result<(Server, u16), String> {
    let proxy = listen.map(|port| format!("[proxy]\nlisten = \"127.0.0.1:{port}\"\n"));
    let upstream = listen.map(|_| format!("upstream = \"http://127.0.0.1:{behind}\"\n"));
    let route = |path: &str| {
        format!(
            "[[route]]\nmatch = \"{path}\"\ngate = \"api\"\n{}",
            upstream.as_deref().unwrap_or_default()
        )
    };
    let orders = route("POST /orders/{user}") + "set = { user = \"path:2\" }\n";
    let stream = route("GET /stream");
    let catalog = format!(
        "[policy.api]\nby = [\"user|ip\"]\n\
         bucket = {{ size = 1000000, refill = \"1000000 per 1h\" }}\n\
         [records]\nurl = \"none\"\n[network]\ntrusted_proxies = [\"127.0.0.1\"]\n\
         {}{orders}{stream}",
        proxy.unwrap_or_default()
    );
    let file = folder.join("catalog.toml");
    fs::write(&file, catalog).map_err(|error| format!("{}: {error}", file.display()))?;
    let api = free_port()?;
    let words = ["serve", "--config", &file.display().to_string(), "--listen"];
    let mut command = vec![plan.catraca.display().to_string()];
    command.extend(words.map(str::to_owned));
    command.push(format!("127.0.0.1:{api}"));
    Ok((Server::start(&command, listen.unwrap_or(api), None)?, api))
}

/// Starts nginx in one process, which asks the API of catraca on the port `asks`.
fn start_nginx(
    plan: &Plan,
    folder: &Path,
    port: u16,
    behind: u16,
    asks: Option<u16>,
) -> Result<Server, String> {
    let room = folder.display();
    let ask = asks.map(|_| "auth_request /_catraca;").unwrap_or_default();
    let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {room}/{name};\n"))
        .concat();
    let asked = asks.map_or_else(String::new, |api| {
        format!("upstream catraca {{ server 127.0.0.1:{api}; keepalive 64; {KEEP} }}\n")
    });
    let config = format!(
        "daemon off;\nmaster_process off;\npid {room}/nginx.pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\naccess_log off;\n{temp}{KEEP}\n\
         upstream app {{ server 127.0.0.1:{behind}; keepalive 64; {KEEP} }}\n{asked}\
         server {{\nlisten 127.0.0.1:{port};\n{LOCATION_ASK}\
         location / {{ {ask} proxy_pass http://app; {FORWARD} }}\n}}\n}}\n",
        LOCATION_ASK = if asks.is_some() { ASK } else { "" },
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, config).map_err(|error| format!("{}: {error}", file.display()))?;
    let words = ["-p", &room.to_string(), "-c", &file.display().to_string()];
    let mut command = vec![plan.nginx.display().to_string()];
    command.extend(words.map(str::to_owned));
    Server::start(&command, port, None)
}

/// Connections are not closed after 1,000 requests, the default of nginx.
const KEEP: &str = "keepalive_requests 100000000;";

const FORWARD: &str = "proxy_http_version 1.1; proxy_set_header Connection \"\"; \
    proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; \
    proxy_set_header X-Forwarded-Proto $scheme; proxy_max_temp_file_size 0;";

const ASK: &str = "location = /_catraca { internal; proxy_pass http://catraca/v1/authorize; \
    proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass_request_body off; \
    proxy_set_header Content-Length \"\"; proxy_set_header X-Original-URI $request_uri; \
    proxy_set_header X-Original-Method $request_method; \
    proxy_set_header X-Forwarded-For $remote_addr; }\n";
