//! The services that are measured: without a layer, with ours, with tower_governor's.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::time::{Instant, SystemTime};

use axum::body::Body;
use catraca::tower::RateLimitLayer;
use catraca::{Catalog, Clock, Engine};
use http::{Request, Response, StatusCode};
use tower::{Layer, service_fn};
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

use crate::measure::{Mode, run_requests};

/// No request reaches this limit.
const ROOMY: &str = "bucket = { size = 200_000_000, refill = '1 per 30s' }";
/// Every request after the first of an address is denied.
const TIGHT: &str = "bucket = { size = 1, refill = '1 per 24h' }";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The service alone.
    Bare,
    /// tower_governor without headers, its default.
    Governor,
    /// tower_governor with `X-RateLimit-*`.
    GovernorHeaders,
    /// Our layer, a bucket: `RateLimit` headers, the decision in the request's extensions.
    Catraca,
    /// Our layer, a bucket with prices by status: a ticket is kept and settled.
    CatracaSettled,
    /// tower_governor, every request denied.
    GovernorDenied,
    /// Our layer, every request denied.
    CatracaDenied,
}

impl Subject {
    /// Every subject, in the order of the table.
    pub const ALL: [(Self, &str); 7] = [
        (Self::Bare, "bare"),
        (Self::Governor, "governor"),
        (Self::GovernorHeaders, "governor-headers"),
        (Self::Catraca, "catraca"),
        (Self::CatracaSettled, "catraca-settled"),
        (Self::GovernorDenied, "governor-denied"),
        (Self::CatracaDenied, "catraca-denied"),
    ];

    /// The subject with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, own)| *own == name).map(|(subject, _)| *subject)
    }

    /// Nanoseconds per request.
    pub fn run(self, mode: Mode, requests: u64) -> f64 {
        let service = service_fn(respond);
        let allowed = StatusCode::OK;
        let denied = StatusCode::TOO_MANY_REQUESTS;
        match self {
            Self::Bare => run_requests(service, mode, requests, allowed),
            Self::Governor => {
                let config = GovernorConfigBuilder::default()
                    .per_second(30)
                    .burst_size(200_000_000)
                    .finish();
                let config = config.expect("a valid configuration");
                run_requests(GovernorLayer::new(config).layer(service), mode, requests, allowed)
            }
            Self::GovernorHeaders => {
                let mut builder = GovernorConfigBuilder::default();
                let config = builder.per_second(30).burst_size(200_000_000).use_headers().finish();
                let config = config.expect("a valid configuration");
                run_requests(GovernorLayer::new(config).layer(service), mode, requests, allowed)
            }
            Self::GovernorDenied => {
                let config =
                    GovernorConfigBuilder::default().per_second(86_400).burst_size(1).finish();
                let config = config.expect("a valid configuration");
                run_requests(GovernorLayer::new(config).layer(service), mode, requests, denied)
            }
            Self::Catraca => {
                run_requests(layer(ROOMY, mode).layer(service), mode, requests, allowed)
            }
            Self::CatracaSettled => {
                let priced = format!("{ROOMY}\ncost = {{ '404' = 5, default = 1 }}");
                run_requests(layer(&priced, mode).layer(service), mode, requests, allowed)
            }
            Self::CatracaDenied => {
                run_requests(layer(TIGHT, mode).layer(service), mode, requests, denied)
            }
        }
    }
}

fn layer(limit: &str, mode: Mode) -> RateLimitLayer<Engine> {
    let catalog = Catalog::parse(&format!("[policy.site]\nby = ['ip']\n{limit}"));
    let builder = Engine::builder(catalog.expect("a valid catalog"));
    let engine = match mode {
        Mode::Time => builder.build(),
        Mode::Send => builder.clock(StandardClock(Instant::now())).build(),
    };
    RateLimitLayer::new(engine, "site").by_peer_address()
}

/// The clock of the standard library.
struct StandardClock(Instant);

impl Clock for StandardClock {
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.0.elapsed()
    }
}

fn respond(_: Request<()>) -> Ready<Result<Response<Body>, Infallible>> {
    ready(Ok(Response::new(Body::empty())))
}
