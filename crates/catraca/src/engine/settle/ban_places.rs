//! The places of one settle among the bans that `ban_storm` allows.
//!
//! They are taken when the settle is planned, and given back when the settle ends without a ban,
//! also if its call is dropped while it waits for the store.

use std::collections::HashMap;

use catraca_core::ban_storm::BanStorm;
use catraca_core::policy::{Name, Policy};
use catraca_core::rate::Rate;
use catraca_core::time::Time;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// The places of one settle, one for each policy with `ban_storm` that it may ban under.
pub(super) struct BanPlaces<'e> {
    storms: &'e Mutex<HashMap<Name, BanStorm>>,
    places: SmallVec<[BanPlace; 1]>,
}

struct BanPlace {
    policy: Name,
    limit: Rate,
    is_taken: bool,
}

impl<'e> BanPlaces<'e> {
    /// No place yet.
    pub fn new(storms: &'e Mutex<HashMap<Name, BanStorm>>) -> Self {
        Self { storms, places: SmallVec::new() }
    }

    /// Returns whether the settle may ban under a policy, and takes a place for it. All rows of the
    /// policy share it. Reads no clock and takes no lock for policies without `ban_storm`.
    pub fn try_take(&mut self, policy: &Policy, now: impl Fn() -> Time) -> bool {
        let Some(limit) = policy.ban_storm else { return true };
        if let Some(place) = self.places.iter().find(|place| place.policy == policy.name) {
            return place.is_taken;
        }
        let name = policy.name.clone();
        let is_taken = self.storms.lock().entry(name.clone()).or_default().try_take(limit, now());
        self.places.push(BanPlace { policy: name, limit, is_taken });
        is_taken
    }

    /// Counts the ban of the settle under a policy. Returns whether it began a storm.
    pub fn record_ban(&mut self, policy: &Policy, now: Time) -> bool {
        let mut places = self.places.iter_mut();
        let place = places.find(|place| place.is_taken && place.policy == policy.name);
        let Some(place) = place else { return false };
        place.is_taken = false;
        let mut storms = self.storms.lock();
        storms.get_mut(&place.policy).is_some_and(|storm| storm.record_ban(place.limit, now))
    }

    /// Gives back the places that did not become bans.
    pub fn give_back(&mut self) {
        for place in self.places.drain(..).filter(|place| place.is_taken) {
            if let Some(storm) = self.storms.lock().get_mut(&place.policy) {
                storm.give_back();
            }
        }
    }
}

impl Drop for BanPlaces<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}
