//! Settings of the server: `[server]`, and `trusted_proxies` of `[network]`.
//!
//! An invalid or unknown field is an error that names the field and a fix. Nothing is opened here.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use catraca::Catalog;
use catraca::core::address::forwarded::AddressSource;
use catraca::core::address::{Address, AddressRange};
use catraca::core::rate::Percent;
use catraca::core::time::parse_span;
use hyper::http::HeaderName;
use tracing::Level;

use super::denial_format::{DENIAL_FORMATS, DenialFormat};
use super::tls_files::TlsFiles;
use crate::observe::log::LogStyle;
use crate::observe::traces::TraceTarget;

/// The default of `listen`.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:7878";
/// The default of `connections_max`.
const DEFAULT_CONNECTIONS: usize = 8_192;
/// The largest `connections_max`.
const CONNECTIONS_MAX: usize = 1_000_000;
/// Bounds of the timeouts.
const TIMEOUT_MIN: Duration = Duration::from_millis(20);
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// The largest `stop_delay`.
const STOP_DELAY_MAX: Duration = Duration::from_secs(60);
/// The default of `trace_share`: the share of calls without a `traceparent` that are traced.
const DEFAULT_TRACE_SHARE: &str = "1%";
const FIELDS: [&str; 18] = [
    "listen",
    "hosts",
    "log",
    "log_level",
    "x_ratelimit",
    "denial",
    "client_address",
    "connections_max",
    "connections_per_address",
    "head_timeout",
    "body_timeout",
    "answer_timeout",
    "idle_timeout",
    "stop_delay",
    "tls_cert",
    "tls_key",
    "traces",
    "trace_share",
];

/// The settings of `[server]`, with what it needs of `[network]`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Host names that the admin API accepts in `Host`, besides loopback.
    pub hosts: Vec<String>,
    /// `tls_cert`, as written.
    pub tls_cert: Option<String>,
    /// `tls_key`, as written.
    pub tls_key: Option<String>,
    /// Where spans are sent, if tracing is on.
    pub traces: Option<TraceTarget>,
    /// The format of log lines.
    pub log: LogStyle,
    /// The lowest level that is logged.
    pub log_level: Level,
    /// Whether `X-RateLimit-*` headers are sent in addition.
    pub x_ratelimit: bool,
    /// The format of a denial by `/v1/authorize`.
    pub denial: DenialFormat,
    /// Where a client's address is read from.
    pub source: AddressSource,
    /// The proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<AddressRange>,
    /// The most connections at once.
    pub connections_max: usize,
    /// The most connections of one peer address; half of all by default.
    pub connections_per_address: Option<usize>,
    /// The prefix length of an IPv6 network, which counts as one peer address.
    pub ipv6_prefix: u8,
    /// How long each phase of a connection may take.
    pub timeouts: ConnectionTimeouts,
    /// How long new connections are still accepted after a stop was requested.
    pub stop_delay: Duration,
}

/// How long each phase of a connection may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionTimeouts {
    /// Until the head of a request has arrived.
    pub head: Duration,
    /// Until its body has arrived.
    pub body: Duration,
    /// Until the response is made and the client has read it.
    pub answer: Duration,
    /// Until the next request on a kept-alive connection.
    pub idle: Duration,
}

impl Settings {
    /// Reads the settings of a catalog.
    pub fn read(catalog: &Catalog) -> Result<Self> {
        let none = toml::Table::new();
        let section = Section(catalog.settings.sections.get("server").unwrap_or(&none));
        section.refuse_unknown()?;
        let default = ConnectionTimeouts::default();
        Ok(Self {
            listen: section.listen()?,
            hosts: section.hosts()?,
            tls_cert: section.text("tls_cert")?.map(str::to_owned),
            tls_key: section.text("tls_key")?.map(str::to_owned),
            traces: section.traces()?,
            log: section.log()?,
            log_level: section.log_level()?,
            x_ratelimit: section.flag("x_ratelimit")?,
            denial: section.denial()?,
            source: section.source()?,
            trusted_proxies: catalog.network.trusted_proxies.clone(),
            connections_max: section.connections("connections_max")?.unwrap_or(DEFAULT_CONNECTIONS),
            connections_per_address: section.connections("connections_per_address")?,
            ipv6_prefix: catalog.network.ipv6_prefix,
            timeouts: ConnectionTimeouts {
                head: section.timeout("head_timeout", default.head)?,
                body: section.timeout("body_timeout", default.body)?,
                answer: section.timeout("answer_timeout", default.answer)?,
                idle: section.timeout("idle_timeout", default.idle)?,
            },
            stop_delay: section.stop_delay()?,
        })
    }

    /// The files of the certificate, relative to the catalog's folder, if TLS is on.
    pub fn certificate(&self, folder: &Path) -> Result<Option<TlsFiles>> {
        TlsFiles::from_settings(self.tls_cert.as_deref(), self.tls_key.as_deref(), folder)
    }

    /// Whether a peer is in `trusted_proxies`.
    pub fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        let peer = Address::from_ip(peer);
        self.trusted_proxies.iter().any(|range| range.contains(&peer))
    }

    /// The network that a peer's connections count against; none for a trusted proxy, whose
    /// connections carry the requests of many clients.
    pub fn counted_as(&self, peer: IpAddr) -> Option<IpAddr> {
        let network = Address::from_ip(peer).network(self.ipv6_prefix);
        (!self.is_trusted_proxy(peer)).then_some(network)
    }
}

impl ConnectionTimeouts {
    /// The shortest timeout.
    pub fn shortest(&self) -> Duration {
        self.head.min(self.body).min(self.answer).min(self.idle)
    }
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        let ten_seconds = Duration::from_secs(10);
        let idle = Duration::from_secs(75);
        Self { head: ten_seconds, body: ten_seconds, answer: ten_seconds, idle }
    }
}

/// The TOML table `[server]`.
struct Section<'c>(&'c toml::Table);

impl Section<'_> {
    fn refuse_unknown(&self) -> Result<()> {
        match self.0.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            Some(unknown) => {
                bail!("[server] has no field `{unknown}`; it has: {}", FIELDS.join(", "))
            }
            None => Ok(()),
        }
    }

    fn listen(&self) -> Result<SocketAddr> {
        let text = self.text("listen")?.unwrap_or(DEFAULT_ADDRESS);
        let fix = || {
            format!(
                "[server] listen = {text:?}: write an address and port, such as {DEFAULT_ADDRESS}"
            )
        };
        text.parse().with_context(fix)
    }

    fn hosts(&self) -> Result<Vec<String>> {
        let Some(value) = self.0.get("hosts") else { return Ok(Vec::new()) };
        let name = |value: &toml::Value| {
            let text = value.as_str()?;
            let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
            (!text.is_empty() && text.bytes().all(is_host_byte)).then(|| text.to_owned())
        };
        let names = value.as_array().and_then(|list| list.iter().map(name).collect());
        names.with_context(|| {
            format!("[server] hosts = {value}: write names without ports, such as [\"a.example\"]")
        })
    }

    fn traces(&self) -> Result<Option<TraceTarget>> {
        let share = self.text("trace_share")?.unwrap_or(DEFAULT_TRACE_SHARE);
        let fix = || format!("[server] trace_share = {share:?}: write a share such as \"1%\"");
        let share = f64::from(Percent::parse(share).with_context(fix)?.hundredths()) / 1e4;
        self.text("traces")?.map(|address| TraceTarget::read(address, share)).transpose()
    }

    fn log(&self) -> Result<LogStyle> {
        match self.text("log")? {
            None | Some("text") => Ok(LogStyle::Text),
            Some("json") => Ok(LogStyle::Json),
            Some(other) => bail!("[server] log = {other:?}: write \"text\" or \"json\""),
        }
    }

    fn log_level(&self) -> Result<Level> {
        match self.text("log_level")? {
            None | Some("info") => Ok(Level::INFO),
            Some("debug") => Ok(Level::DEBUG),
            Some(other) => bail!("[server] log_level = {other:?}: write \"info\" or \"debug\""),
        }
    }

    fn denial(&self) -> Result<DenialFormat> {
        let Some(name) = self.text("denial")? else { return Ok(DenialFormat::default()) };
        let found = DENIAL_FORMATS.iter().find(|(own, _)| *own == name);
        found.map(|(_, format)| *format).with_context(|| {
            let names: Vec<&str> = DENIAL_FORMATS.iter().map(|(own, _)| *own).collect();
            format!("[server] denial = {name:?}: write one of {}", names.join(", "))
        })
    }

    fn source(&self) -> Result<AddressSource> {
        let Some(name) = self.text("client_address")? else {
            return Ok(AddressSource::XForwardedFor);
        };
        let source = AddressSource::from_name(name);
        let is_valid = source.header().is_none_or(|name| HeaderName::try_from(name).is_ok());
        ensure!(
            is_valid,
            "[server] client_address = {name:?}: write \"peer\", or the header in which your \
             proxies put the client's address, such as \"x-forwarded-for\""
        );
        Ok(source)
    }

    fn connections(&self, field: &str) -> Result<Option<usize>> {
        let Some(value) = self.0.get(field) else { return Ok(None) };
        let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| (1..=CONNECTIONS_MAX).contains(number));
        let fix =
            || format!("[server] {field} = {value}: write a number from 1 to {CONNECTIONS_MAX}");
        number.map(Some).with_context(fix)
    }

    fn timeout(&self, field: &str, default: Duration) -> Result<Duration> {
        let Some(text) = self.text(field)? else { return Ok(default) };
        let fix = || format!("[server] {field} = {text:?}: write a time from 20ms to 1h");
        let span = parse_span(text).with_context(fix)?;
        let timeout = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
        ensure!((TIMEOUT_MIN..=TIMEOUT_MAX).contains(&timeout), "{}", fix());
        Ok(timeout)
    }

    fn stop_delay(&self) -> Result<Duration> {
        let Some(text) = self.text("stop_delay")? else { return Ok(Duration::ZERO) };
        let fix = || format!("[server] stop_delay = {text:?}: write a time from 1ms to 1m");
        let span = parse_span(text).with_context(fix)?;
        let delay = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
        ensure!(delay <= STOP_DELAY_MAX, "{}", fix());
        Ok(delay)
    }

    fn flag(&self, field: &str) -> Result<bool> {
        let Some(value) = self.0.get(field) else { return Ok(false) };
        value.as_bool().with_context(|| format!("[server] {field} = {value}: write true or false"))
    }

    fn text(&self, field: &str) -> Result<Option<&str>> {
        let Some(value) = self.0.get(field) else { return Ok(None) };
        let text = value.as_str();
        text.map(Some)
            .with_context(|| format!("[server] {field} = {value}: write it between quotes"))
    }
}
