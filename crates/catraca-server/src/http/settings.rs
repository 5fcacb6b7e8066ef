//! The front end's own settings: `[server]`, and the proxies of `[network]`.
//!
//! Every mistake is named with its field and a fix; a field that nobody knows is a mistake too.
//! Must not open anything.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::http::HeaderName;
use catraca::Catalog;
use catraca::core::address::forwarded::Source;
use catraca::core::address::{Address, Range};
use catraca::core::rate::Percent;
use catraca::core::time::parse_span;
use tracing::Level;

use super::denial;
use super::tls::Files;
use super::visit::Phase;
use crate::observe::log::Style;
use crate::observe::traces::Target;

/// Where the server listens unless the catalog or the command line says otherwise.
pub const ADDRESS: &str = "127.0.0.1:7878";
/// Connections served at once unless the catalog says otherwise.
const CONNECTIONS: usize = 8_192;
/// The most that the catalog may say.
const CONNECTIONS_MAX: usize = 1_000_000;
/// The shortest and longest patience that makes sense.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(3_600));
/// The longest time between the word to stop and the shut door.
const STOP_DELAY_MAX: Duration = Duration::from_secs(60);
/// The share of calls that are traced though nobody asked for it.
const TRACE_SHARE: &str = "1%";
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

/// How connections, addresses and headers are treated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The names by which operators may call, besides loopback.
    pub hosts: Vec<String>,
    /// The files of the certificate and of its key, as they are written.
    pub tls: (Option<String>, Option<String>),
    /// Where spans go, if anywhere.
    pub traces: Option<Target>,
    /// How log lines are written.
    pub log: Style,
    /// How much is written.
    pub log_level: Level,
    /// Whether `X-RateLimit-*` headers are sent too.
    pub x_ratelimit: bool,
    /// What a gateway's denial looks like.
    pub denial: denial::Shape,
    /// Where a caller's address is read from.
    pub source: Source,
    /// The proxies whose headers are believed.
    pub trusted_proxies: Vec<Range>,
    /// Connections served at once.
    pub connections_max: usize,
    /// Connections of one peer address, if the catalog says it.
    pub connections_per_address: Option<usize>,
    /// The bits of an IPv6 address that name its network.
    pub ipv6_prefix: u8,
    /// How long a connection is waited for.
    pub patience: Patience,
    /// How long connections are still taken after the word to stop.
    pub stop_delay: Duration,
}

/// How long a connection is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a request's head.
    pub head: Duration,
    /// For its body.
    pub body: Duration,
    /// Until the answer is made and taken.
    pub answer: Duration,
    /// For the next request.
    pub idle: Duration,
}

impl Settings {
    /// The settings of a catalog.
    pub fn read(catalog: &Catalog) -> Result<Self> {
        let none = toml::Table::new();
        let section = Section(catalog.settings.sections.get("server").unwrap_or(&none));
        section.refuse_unknown()?;
        let usual = Patience::default();
        Ok(Self {
            listen: section.listen()?,
            hosts: section.hosts()?,
            tls: section.tls()?,
            traces: section.traces()?,
            log: section.log()?,
            log_level: section.log_level()?,
            x_ratelimit: section.flag("x_ratelimit")?,
            denial: section.denial()?,
            source: section.source()?,
            trusted_proxies: catalog.network.trusted_proxies.clone(),
            connections_max: section.connections("connections_max")?.unwrap_or(CONNECTIONS),
            connections_per_address: section.connections("connections_per_address")?,
            ipv6_prefix: catalog.network.ipv6_prefix,
            patience: Patience {
                head: section.patience("head_timeout", usual.head)?,
                body: section.patience("body_timeout", usual.body)?,
                answer: section.patience("answer_timeout", usual.answer)?,
                idle: section.patience("idle_timeout", usual.idle)?,
            },
            stop_delay: section.stop_delay()?,
        })
    }
}

impl Settings {
    /// The files of the certificate, relative to the catalog's folder, if there is to be one.
    pub fn certificate(&self, folder: &Path) -> Result<Option<Files>> {
        Files::named(self.tls.0.as_deref(), self.tls.1.as_deref(), folder)
    }

    /// Whether a peer is one of the trusted proxies.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        let peer = Address::from_ip(peer);
        self.trusted_proxies.iter().any(|range| range.contains(&peer))
    }

    /// The network by which a peer's connections are counted; none for a trusted proxy, whose
    /// connections carry the requests of many callers.
    pub fn counted_as(&self, peer: IpAddr) -> Option<IpAddr> {
        let network = Address::from_ip(peer).network(self.ipv6_prefix);
        (!self.trusts(peer)).then_some(network)
    }
}

impl Patience {
    /// The patience with a phase.
    pub fn of(&self, phase: Phase) -> Duration {
        match phase {
            Phase::First | Phase::Head => self.head,
            Phase::Body => self.body,
            Phase::Answer => self.answer,
            Phase::Idle => self.idle,
        }
    }

    /// The shortest of all.
    pub fn shortest(&self) -> Duration {
        self.head.min(self.body).min(self.answer).min(self.idle)
    }
}

impl Default for Patience {
    fn default() -> Self {
        let (head, idle) = (Duration::from_secs(10), Duration::from_secs(75));
        Self { head, body: head, answer: head, idle }
    }
}

/// The table `[server]`.
struct Section<'c>(&'c toml::Table);

impl Section<'_> {
    fn refuse_unknown(&self) -> Result<()> {
        match self.0.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            Some(odd) => bail!("[server] has no field `{odd}`; it has: {}", FIELDS.join(", ")),
            None => Ok(()),
        }
    }

    fn listen(&self) -> Result<SocketAddr> {
        let text = self.text("listen")?.unwrap_or(ADDRESS);
        let fix =
            || format!("[server] listen = {text:?}: write an address and port, such as {ADDRESS}");
        text.parse().with_context(fix)
    }

    fn hosts(&self) -> Result<Vec<String>> {
        let Some(value) = self.0.get("hosts") else { return Ok(Vec::new()) };
        let name = |value: &toml::Value| {
            let text = value.as_str()?;
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
            (!text.is_empty() && text.bytes().all(plain)).then(|| text.to_owned())
        };
        let names = value.as_array().and_then(|list| list.iter().map(name).collect());
        names.with_context(|| {
            format!("[server] hosts = {value}: write names without ports, such as [\"a.example\"]")
        })
    }

    fn tls(&self) -> Result<(Option<String>, Option<String>)> {
        let name = |field| Ok::<_, anyhow::Error>(self.text(field)?.map(str::to_owned));
        Ok((name("tls_cert")?, name("tls_key")?))
    }

    fn traces(&self) -> Result<Option<Target>> {
        let share = self.text("trace_share")?.unwrap_or(TRACE_SHARE);
        let fix = || format!("[server] trace_share = {share:?}: write a share such as \"1%\"");
        let share = f64::from(Percent::parse(share).with_context(fix)?.hundredths()) / 1e4;
        self.text("traces")?.map(|address| Target::read(address, share)).transpose()
    }

    fn log(&self) -> Result<Style> {
        match self.text("log")? {
            None | Some("text") => Ok(Style::Text),
            Some("json") => Ok(Style::Json),
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

    fn denial(&self) -> Result<denial::Shape> {
        let Some(word) = self.text("denial")? else { return Ok(denial::Shape::default()) };
        let found = denial::SHAPES.iter().find(|(own, _)| *own == word);
        found.map(|(_, shape)| *shape).with_context(|| {
            let words: Vec<&str> = denial::SHAPES.iter().map(|(word, _)| *word).collect();
            format!("[server] denial = {word:?}: write one of {}", words.join(", "))
        })
    }

    fn source(&self) -> Result<Source> {
        let Some(name) = self.text("client_address")? else { return Ok(Source::XForwardedFor) };
        let source = Source::named(name);
        let header = source.header().is_none_or(|name| HeaderName::try_from(name).is_ok());
        ensure!(
            header,
            "[server] client_address = {name:?}: write \"peer\", or the header in which your \
             proxies put the caller's address, such as \"x-forwarded-for\""
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

    fn patience(&self, field: &str, usual: Duration) -> Result<Duration> {
        let Some(text) = self.text(field)? else { return Ok(usual) };
        let fix = || format!("[server] {field} = {text:?}: write a time from 20ms to 1h");
        let span = parse_span(text).with_context(fix)?;
        let wait = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
        ensure!((PATIENCE.0..=PATIENCE.1).contains(&wait), "{}", fix());
        Ok(wait)
    }

    fn stop_delay(&self) -> Result<Duration> {
        let Some(text) = self.text("stop_delay")? else { return Ok(Duration::ZERO) };
        let fix = || format!("[server] stop_delay = {text:?}: write a time from 1ms to 1m");
        let span = parse_span(text).with_context(fix)?;
        let wait = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
        ensure!(wait <= STOP_DELAY_MAX, "{}", fix());
        Ok(wait)
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
