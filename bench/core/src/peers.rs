//! The peers: rate-limit libraries from the package registry, each used as its documentation says.
//! Nothing here may help or hinder a peer beyond giving it the common terms.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use throttlecrab::{AdaptiveStore, PeriodicStore, Store};

use crate::keys::KEY_LEN;
use crate::subject::{BURST, SECONDS_PER_UNIT, Subject};

type KeyedLimiter<K> = RateLimiter<K, DashMapStateStore<K>, DefaultClock>;

/// governor with owned text keys, as its guides show it.
pub struct GovernorString(KeyedLimiter<String>);

impl GovernorString {
    /// An empty limiter.
    pub fn new() -> Self {
        GovernorString(RateLimiter::dashmap(quota()))
    }
}

impl Subject for GovernorString {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        self.0.check_key(&key.to_owned()).is_ok()
    }
}

/// governor with fixed-size keys: its fastest form for this workload.
pub struct GovernorArray(KeyedLimiter<[u8; KEY_LEN]>);

impl GovernorArray {
    /// An empty limiter.
    pub fn new() -> Self {
        GovernorArray(RateLimiter::dashmap(quota()))
    }
}

impl Subject for GovernorArray {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        <&[u8; KEY_LEN]>::try_from(key.as_bytes()).is_ok_and(|key| self.0.check_key(key).is_ok())
    }
}

fn quota() -> Quota {
    let period = Duration::from_secs(u64::from(SECONDS_PER_UNIT));
    let burst = NonZeroU32::new(BURST).unwrap_or(NonZeroU32::MIN);
    Quota::with_period(period).expect("a period above zero").allow_burst(burst)
}

/// throttlecrab behind a mutex, because its API takes `&mut self`.
pub struct Throttlecrab<S: Store>(Mutex<throttlecrab::RateLimiter<S>>);

impl Throttlecrab<PeriodicStore> {
    /// Sized for `keys` from the start, cleaning on an interval.
    pub fn periodic(keys: u64) -> Self {
        Self::over(PeriodicStore::builder().capacity(keys as usize).build())
    }
}

impl Throttlecrab<AdaptiveStore> {
    /// Sized for `keys` from the start, cleaning as its own statistics suggest.
    pub fn adaptive(keys: u64) -> Self {
        Self::over(AdaptiveStore::builder().capacity(keys as usize).build())
    }
}

impl<S: Store> Throttlecrab<S> {
    fn over(store: S) -> Self {
        Throttlecrab(Mutex::new(throttlecrab::RateLimiter::new(store)))
    }
}

impl<S: Store + Send> Subject for Throttlecrab<S> {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        let burst = i64::from(BURST);
        let period = i64::from(SECONDS_PER_UNIT);
        let mut limiter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = limiter.rate_limit(key, burst, 1, period, 1, SystemTime::now());
        verdict.is_ok_and(|(allowed, _)| allowed)
    }
}
