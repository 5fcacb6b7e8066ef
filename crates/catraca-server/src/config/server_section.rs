//! `[server]`: the listener, the log, and how requests are read and denials written.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catraca::core::address::forwarded::AddressSource;
use catraca::core::located::{DefaultValue, Node, Report, ValueSchema};
use hyper::http::HeaderName;
use tracing::Level;

use super::allowed_origins::Origins;
use super::section::{Section, section};
use super::setting_kind::{
    FileName, Flag, Keyword, Millis, Optional, SettingContext, SettingKind, Share, WholeNumber,
    Word,
};
use crate::observe::log::{LogStyle, LogSubjects};
use crate::observe::traces::TraceTarget;

/// How long a phase of a connection may take: from 20 ms to one hour.
type Timeout = Millis<20, 3_600_000>;
/// A number of connections.
type ConnectionCount = WholeNumber<1, 1_000_000>;

section! {
    /// The fields of `[server]`.
    "server" => ServerSection {
        /// the address and port to listen on; `--listen` has precedence
        listen: Socket = DefaultValue::Text("127.0.0.1:7878"), Restart;
        /// host names, besides loopback, that [operators](auth.md#pages-of-other-sites) may use in
        /// their calls; without keys, this applies to all callers
        hosts: Hosts = DefaultValue::EmptyList, Live;
        /// the format of log lines: `text` for people, or `json`
        log: Word<LogStyle> = DefaultValue::Text("text"), Restart;
        /// `debug` adds a line for every check and every call about locks, see
        /// [Log](observe.md#log)
        log_level: Word<Level> = DefaultValue::Text("info"), Restart;
        /// how [log lines](observe.md#log) name callers: `pseudonym`, or `clear` for values of
        /// attributes that are not private
        log_subjects: Word<LogSubjects> = DefaultValue::Text("pseudonym"), Restart;
        /// whether to send the older `X-RateLimit-*` headers too
        x_ratelimit: Flag = DefaultValue::Flag(false), Live;
        /// the [body of denials](serve.md#from-a-reverse-proxy) of authorize calls
        denial: Word<DenialFormat> = DefaultValue::Text("problem"), Live;
        /// the origins of web pages that may read [denials](proxy.md#pages-of-other-origins) of
        /// authorize calls and every response that the proxy makes itself, such as
        /// `"https://shop.example"`; `"*"` is any page
        cors_origins: Origins = DefaultValue::EmptyList, Live;
        /// the one header in which trusted proxies send the client's address, `"forwarded"`, or
        /// `"peer"` to use only the address of the connection
        client_address: ClientAddress = DefaultValue::Text("x-forwarded-for"), Live;
        /// the most connections that are open at once;
        /// [at the limit](serve.md#when-connections-run-out), idle connections are closed first
        connections_max: ConnectionCount = DefaultValue::Integer(8_192), Restart;
        /// the most connections of one peer address that is not a trusted proxy; IPv6 addresses are
        /// grouped by `[network] ipv6_prefix`
        connections_per_address: Optional<ConnectionCount> =
            DefaultValue::Absent("half of what other addresses leave of `connections_max`"), Live;
        /// the time for the head of a request, and for the first byte of a connection
        head_timeout: Timeout = DefaultValue::Text("10s"), Restart;
        /// the time for the body of a request; then the response is a 408
        body_timeout: Timeout = DefaultValue::Text("10s"), Restart;
        /// the time to compute the response, after which it is a 503, and for the client to read it
        answer_timeout: Timeout = DefaultValue::Text("10s"), Restart;
        /// the time until the next request on the same connection
        idle_timeout: Timeout = DefaultValue::Text("75s"), Restart;
        /// whether a changed catalog is applied as soon as its file is saved; with `false` only by
        /// `catraca config reload` and `SIGHUP`, so that a change can be looked at before
        watch_files: Flag = DefaultValue::Flag(true), Restart;
        /// how long the server accepts connections after `SIGTERM`, while `/readyz` returns 503, so
        /// that load balancers notice
        stop_delay: Millis<0, 60_000> = DefaultValue::Text("0s"), Restart;
        /// a file with the certificate for [TLS](serve.md#tls), in PEM; needs `tls_key`. Turning
        /// TLS on or off needs a start, another certificate does not
        tls_cert: Optional<FileName> = DefaultValue::Absent("no TLS"), RestartIfAdded;
        /// a file with the private key of the certificate, in PEM
        tls_key: Optional<FileName> = DefaultValue::Absent(""), Live;
        /// a collector that receives [traces](observe.md#traces), OTLP over gRPC, such as
        /// `"http://127.0.0.1:4317"`
        traces: Optional<CollectorUrl> = DefaultValue::Absent("no traces"), Restart;
        /// the share of calls without a `traceparent` that are traced
        trace_share: Share = DefaultValue::Text("1%"), Restart;
    }
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

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The section that names them.
    pub section: &'static str,
    /// The certificate chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// How clients are authenticated; absent means that they are not.
    pub client_auth: Option<ClientAuthFiles>,
}

/// The certificates that sign those of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthFiles {
    /// The certificates of the authorities.
    pub ca: PathBuf,
    /// Whether a client without a certificate is refused.
    pub is_required: bool,
}

impl ServerSection {
    /// The timeouts of a connection.
    pub fn timeouts(&self) -> ConnectionTimeouts {
        ConnectionTimeouts {
            head: self.head_timeout,
            body: self.body_timeout,
            answer: self.answer_timeout,
            idle: self.idle_timeout,
        }
    }

    /// The files of the certificate, relative to the catalog's folder, if TLS is on.
    pub fn certificate(&self, folder: &Path) -> Option<TlsFiles> {
        let cert = folder.join(self.tls_cert.as_ref()?);
        let key = folder.join(self.tls_key.as_ref()?);
        Some(TlsFiles { section: Self::NAME, cert, key, client_auth: None })
    }

    /// Where spans are sent, if tracing is on.
    pub fn trace_target(&self) -> Option<TraceTarget> {
        let share = f64::from(self.trace_share.hundredths()) / 1e4;
        self.traces.clone().map(|address| TraceTarget { address, share })
    }
}

impl ConnectionTimeouts {
    /// The shortest timeout.
    pub fn shortest(&self) -> Duration {
        self.head.min(self.body).min(self.answer).min(self.idle)
    }
}

/// The format of a denial's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialFormat {
    /// problem+json, with the problem types of the rate-limit headers draft.
    Problem,
    /// problem+xml, as the DICT sends it.
    ProblemXml,
    /// A JSON object with a message for people.
    Message,
    /// A JSON object with a fixed error and the wait.
    Error,
    /// As `Error`, with `conflict: true`.
    Conflict,
    /// No body.
    Empty,
}

impl Keyword for DenialFormat {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("problem", Self::Problem),
        ("problem_xml", Self::ProblemXml),
        ("message", Self::Message),
        ("error", Self::Error),
        ("conflict", Self::Conflict),
        ("empty", Self::Empty),
    ];
}

impl Keyword for LogStyle {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

impl Keyword for LogSubjects {
    const WORDS: &'static [(&'static str, Self)] =
        &[("pseudonym", Self::Pseudonym), ("clear", Self::Clear)];
}

impl Keyword for Level {
    const WORDS: &'static [(&'static str, Self)] = &[("info", Self::INFO), ("debug", Self::DEBUG)];
}

/// An address and a port.
pub struct Socket;

impl SettingKind for Socket {
    type Value = SocketAddr;
    const SCHEMA: ValueSchema =
        ValueSchema::Pattern { pattern: ":[0-9]{1,5}$", words: "an address and a port" };

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<SocketAddr> {
        let wanted = "an address and a port such as \"127.0.0.1:7878\"";
        let text = node.text(report, wanted)?;
        let address = text.parse().ok();
        if address.is_none() {
            let message = format!("`{}` is not an address and a port", text.escape_debug());
            report.error("bad-address", node.location, message, format!("write {wanted}"));
        }
        address
    }
}

/// Names of hosts without ports.
pub struct Hosts;

impl SettingKind for Hosts {
    type Value = Vec<String>;
    const SCHEMA: ValueSchema =
        ValueSchema::AnyOf(&[HOST, ValueSchema::List { of: &HOST, most: usize::MAX }]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Vec<String>> {
        let texts = node.texts(report, "a list of texts such as [\"a.example\"]")?;
        let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
        let mut hosts = Vec::new();
        for (item, text) in &texts {
            if !text.is_empty() && text.bytes().all(is_host_byte) {
                hosts.push((*text).to_owned());
                continue;
            }
            let message = format!("`{}` is not the name of a host", text.escape_debug());
            let fix = "write names without ports, such as [\"a.example\"]";
            report.error("bad-address", item.location, message, fix);
        }
        (hosts.len() == texts.len()).then_some(hosts)
    }
}

const HOST: ValueSchema =
    ValueSchema::Pattern { pattern: "^[A-Za-z0-9.:-]+$", words: "the name of a host" };

/// Where a client's address is read from.
pub struct ClientAddress;

impl SettingKind for ClientAddress {
    type Value = AddressSource;
    const SCHEMA: ValueSchema = ValueSchema::Text;

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<AddressSource> {
        let name = node.text(report, "a text in quotes")?;
        let source = AddressSource::from_name(name);
        if source.header().is_some_and(|name| HeaderName::try_from(name).is_err()) {
            let message = format!("`{}` is not the name of a header", name.escape_debug());
            let fix = "write \"peer\", or the header in which your proxies put the client's \
                       address, such as \"x-forwarded-for\"";
            report.error("bad-name", node.location, message, fix);
            return None;
        }
        Some(source)
    }
}

/// The address of a collector of traces.
pub struct CollectorUrl;

impl SettingKind for CollectorUrl {
    type Value = String;
    const SCHEMA: ValueSchema = ValueSchema::Url(&["http"]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        let text = node.text(report, "a text in quotes")?;
        let address = TraceTarget::parse_address(text);
        if address.is_none() {
            let message = "this is not the address of a collector";
            let fix = "write one that accepts OTLP over unencrypted gRPC, such as \
                       http://127.0.0.1:4317";
            // The address may contain a password by mistake.
            report.private_error("bad-url", node.location, message, fix);
        }
        address
    }
}
