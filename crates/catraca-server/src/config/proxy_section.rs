//! `[proxy]`: the listener of the reverse proxy, and how it talks to upstreams.

use std::path::Path;
use std::time::Duration;

use catraca::core::located::DefaultValue;
use catraca::core::request::DEFAULT_NAMESPACE;

use super::section::{Section, section};
use super::server_section::{ClientAuthFiles, Socket, TlsFiles};
use super::setting_kind::{FileName, Keyword, Millis, NamespaceName, Optional, WholeNumber, Word};

/// How long a step of a proxied request may take: from 20 ms to one day.
type StepTimeout = Millis<20, 86_400_000>;
/// Up to 16 MiB.
type RequestBytes = WholeNumber<0, 16_777_216>;
/// A number of connections to one upstream.
type UpstreamConnections = WholeNumber<1, 100_000>;
/// The least default of `requests_per_client`: a page loads so many parts at once.
const CLIENT_REQUESTS_MIN: usize = 32;
/// A number of requests of one client.
type ClientRequests = WholeNumber<1, 100_000>;

section! {
    /// The fields of `[proxy]`.
    "proxy" => ProxySection {
        /// the address and port on which requests are proxied to the
        /// [upstreams](proxy.md) of routes. Anyone may call it: it needs no API key
        listen: Optional<Socket> = DefaultValue::Absent("no proxy"), Restart;
        /// the [namespace](auth.md) of the checks, the settles and the bans of proxied requests
        namespace: NamespaceName = DefaultValue::Text(DEFAULT_NAMESPACE), Live;
        /// the time to connect to an upstream, and to wait for a free connection
        connect_timeout: StepTimeout = DefaultValue::Text("2s"), Live;
        /// the time until an upstream begins its response; each part of the request's body starts
        /// it again
        first_byte_timeout: StepTimeout = DefaultValue::Text("60s"), Live;
        /// bytes per second that a client must send of a body, on average over each
        /// `first_byte_timeout` in which it is waited for. A slower one gets a 408; 0 for no limit
        upload_rate_min: WholeNumber<0, 1_000_000_000> = DefaultValue::Integer(100), Live;
        /// the time between two parts of a response, and without a byte on an upgraded connection
        idle_timeout: StepTimeout = DefaultValue::Text("5m"), Live;
        /// the largest body of a request from which a route reads fields, in bytes. It is in memory
        /// until the request is forwarded; a larger one gets 413 on such a route
        body_bytes_max: RequestBytes = DefaultValue::Integer(65_536), Live;
        /// how long an upstream that failed gets no requests, if its route has others
        down_time: StepTimeout = DefaultValue::Text("5s"), Live;
        /// the most connections to one upstream
        connections_max: UpstreamConnections = DefaultValue::Integer(1_024), Restart;
        /// the most requests in progress of one client that is not a trusted proxy; further ones
        /// get a 429. IPv6 addresses are grouped by `[network] ipv6_prefix`
        requests_per_client: Optional<ClientRequests> =
            DefaultValue::Absent("a quarter of `connections_max`, and at least 32"), Live;
        /// the most connections to one upstream that wait for the next request
        idle_connections: UpstreamConnections = DefaultValue::Integer(64), Restart;
        /// how long a connection waits for the next request before it is closed; must be shorter
        /// than the keep-alive timeout of the upstreams
        keep_alive: StepTimeout = DefaultValue::Text("30s"), Live;
        /// a file with the certificate for TLS to clients, in PEM; needs `tls_key`. Turning TLS on
        /// or off needs a start, another certificate does not
        tls_cert: Optional<FileName> = DefaultValue::Absent("no TLS"), RestartIfAdded;
        /// a file with the private key of the certificate, in PEM
        tls_key: Optional<FileName> = DefaultValue::Absent(""), Live;
        /// a file with the certificates that sign those of clients, in PEM. Clients then
        /// authenticate with a certificate, and routes can read it (`certificate:subject`); needs
        /// `tls_cert`
        client_ca: Optional<FileName> = DefaultValue::Absent("clients have no certificates"), Live;
        /// whether a client without a certificate is refused (`required`) or has no attributes of
        /// it (`optional`); needs `client_ca`
        client_auth: Word<ClientAuth> = DefaultValue::Text("required"), Live;
        /// a file with the certificates that sign those of `https` upstreams, in PEM
        ca_file: Optional<FileName> = DefaultValue::Absent("those of the system"), Restart;
    }
}

/// Whether clients need a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A handshake without one fails.
    Required,
    /// A client may have none.
    Optional,
}

impl Keyword for ClientAuth {
    const WORDS: &'static [(&'static str, Self)] =
        &[("required", Self::Required), ("optional", Self::Optional)];
}

/// How long each step of a proxied request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyTimeouts {
    /// Until a connection to the upstream is ready.
    pub connect: Duration,
    /// Until the head of the response arrives.
    pub first_byte: Duration,
    /// Until the next part of the response arrives.
    pub idle: Duration,
    /// How long a failed upstream gets no requests.
    pub down: Duration,
    /// How long an idle connection is kept.
    pub keep_alive: Duration,
    /// Bytes per second that a client must send of a body.
    pub upload_rate_min: u64,
}

impl ProxySection {
    /// The files of the certificate, relative to the catalog's folder, if TLS is on.
    pub fn certificate(&self, folder: &Path) -> Option<TlsFiles> {
        let cert = folder.join(self.tls_cert.as_ref()?);
        let key = folder.join(self.tls_key.as_ref()?);
        let client_auth = self.client_ca.as_ref().map(|file| ClientAuthFiles {
            ca: folder.join(file),
            is_required: self.client_auth == ClientAuth::Required,
        });
        Some(TlsFiles { section: Self::NAME, cert, key, client_auth })
    }

    /// The most requests in progress of one client.
    pub fn client_requests_max(&self) -> usize {
        let default = || (self.connections_max / 4).max(CLIENT_REQUESTS_MIN);
        self.requests_per_client.unwrap_or_else(default)
    }

    /// The timeouts of proxied requests.
    pub fn timeouts(&self) -> ProxyTimeouts {
        ProxyTimeouts {
            connect: self.connect_timeout,
            first_byte: self.first_byte_timeout,
            idle: self.idle_timeout,
            down: self.down_time,
            keep_alive: self.keep_alive,
            upload_rate_min: self.upload_rate_min as u64,
        }
    }
}
