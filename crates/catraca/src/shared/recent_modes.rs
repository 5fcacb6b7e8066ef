//! The modes that operators of any node have set in the last minute: other nodes learn of them by
//! notices, also while the records are unavailable. Of a notice and the records the newer one
//! counts.

use std::collections::BTreeMap;

use catraca_core::policy::Mode;
use catraca_core::time::{Span, Time};
use serde_json::{Value, json};

use super::SharedDriver;
use super::notice::{Notice, NoticeContent};
use crate::records::RecordKind;

/// How old the mode of a notice may be: later the records have it.
const MODES_AGE_MAX: Span = Span::from_secs(60);

/// By policy: when its mode was set, and the mode; none for the catalog's.
#[derive(Default)]
pub(super) struct RecentModes {
    /// Those that the records may not have yet.
    set: BTreeMap<String, (Time, Option<Mode>)>,
    /// Those that the records had when they were last read.
    recorded: BTreeMap<String, (Time, Mode)>,
    /// When modes were set back, for those that the records have no more. The notice of an earlier
    /// mode may still wait for the store on another node.
    withdrawn: BTreeMap<String, Time>,
}

impl SharedDriver {
    /// Publishes the modes that an operator set to other nodes: if the records are unavailable,
    /// they could not read them there. Returns the instant of the act.
    pub fn publish_modes(&self, changes: &[RecordKind]) -> Time {
        let at = self.store_now();
        let mut modes: Vec<Value> = Vec::new();
        for change in changes {
            let RecordKind::Mode(policy, mode) = change else { continue };
            self.recent_modes.lock().set.insert(policy.clone(), (at, *mode));
            modes.push(json!([policy, mode.map(Mode::as_str)]));
        }
        if modes.is_empty() || self.is_node_scope() {
            return at;
        }
        let attachment = self.seal_json(&json!({ "modes": modes }));
        self.notices.add(Notice { at, content: NoticeContent::Message, attachment });
        at
    }

    /// The records have the modes that an operator of this node set at this instant: what they say
    /// from now on is newer.
    pub fn forget_recorded_modes(&self, changes: &[RecordKind], at: Time) {
        let mut recent = self.recent_modes.lock();
        for change in changes {
            let RecordKind::Mode(policy, _) = change else { continue };
            if recent.set.get(policy).is_some_and(|(set_at, _)| *set_at == at) {
                recent.forget(policy);
            }
        }
    }

    /// Takes over the modes that other nodes set. The later one of each policy counts.
    pub(super) fn apply_messages(&self, notices: &[Notice]) {
        let mut any = false;
        for notice in notices.iter().filter(|notice| notice.key().is_none()) {
            let Some(body) = self.open_json(&notice.attachment) else {
                // With records of each node, they are counted when they are recorded.
                self.count_unreadable(u64::from(!self.is_node_scope()));
                continue;
            };
            for pair in body["modes"].as_array().into_iter().flatten() {
                let modes = [Mode::Enforce, Mode::Shadow, Mode::Off];
                let mode = modes.into_iter().find(|mode| pair[1] == mode.as_str());
                let Some(policy) = pair[0].as_str().filter(|_| mode.is_some() || pair[1].is_null())
                else {
                    self.count_unreadable(1);
                    continue;
                };
                let mut recent = self.recent_modes.lock();
                if recent.is_newest(policy, notice.at) {
                    recent.set.insert(policy.to_owned(), (notice.at, mode));
                    any = true;
                }
            }
        }
        if any {
            self.apply_recent_modes();
        }
    }

    /// Notes the modes that a read of the records has found, and applies those of the last minute
    /// that they do not have yet.
    pub(super) fn on_modes_read(&self, recorded: BTreeMap<String, (Time, Mode)>) {
        {
            let recent = &mut *self.recent_modes.lock();
            recent.replace_recorded(recorded);
            // What the records have once is theirs from then on, also if they change it later.
            let set = recent.set.iter();
            let known: Vec<String> = set
                .filter(|(policy, (at, mode))| recent.has_recorded(policy, *at, *mode))
                .map(|(policy, _)| policy.clone())
                .collect();
            known.iter().for_each(|policy| recent.forget(policy));
        }
        self.apply_recent_modes();
    }

    fn apply_recent_modes(&self) {
        let oldest = self.store_now().before(MODES_AGE_MAX);
        let mut recent = self.recent_modes.lock();
        recent.set.retain(|_, (at, _)| *at > oldest);
        recent.withdrawn.retain(|_, at| *at > oldest);
        for (policy, (_, mode)) in &recent.set {
            self.engine.override_mode(policy, *mode);
        }
    }
}

impl RecentModes {
    /// Takes what the records have now. A mode that they have no more was set back later.
    fn replace_recorded(&mut self, recorded: BTreeMap<String, (Time, Mode)>) {
        let before = std::mem::replace(&mut self.recorded, recorded);
        for (policy, (at, _)) in before {
            if !self.recorded.contains_key(&policy) {
                self.note_withdrawn(policy, at);
            }
        }
    }

    /// Forgets a mode that the records have. That it was set back is not in them.
    fn forget(&mut self, policy: &str) {
        if let Some((at, None)) = self.set.remove(policy) {
            self.note_withdrawn(policy.to_owned(), at);
        }
    }

    fn note_withdrawn(&mut self, policy: String, at: Time) {
        let known = self.withdrawn.entry(policy).or_insert(at);
        *known = at.max(*known);
    }

    /// Whether a mode of this instant is newer than what is known of its policy.
    fn is_newest(&self, policy: &str, at: Time) -> bool {
        let recorded = self.recorded.get(policy);
        let is_recorded = recorded.is_some_and(|(recorded_at, _)| *recorded_at > at);
        let is_withdrawn = self.withdrawn.get(policy).is_some_and(|withdrawn| *withdrawn >= at);
        let is_later = self.set.get(policy).is_none_or(|(set_at, _)| at >= *set_at);
        is_later && !is_recorded && !is_withdrawn
    }

    /// Whether the records have this mode of a policy, or a later one.
    fn has_recorded(&self, policy: &str, at: Time, mode: Option<Mode>) -> bool {
        match self.recorded.get(policy) {
            Some((recorded_at, recorded)) => *recorded_at > at || Some(*recorded) == mode,
            None => mode.is_none(),
        }
    }
}
