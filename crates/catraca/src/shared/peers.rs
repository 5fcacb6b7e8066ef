//! The other nodes: which are alive, by which names, and with which revision of the catalog.
//!
//! Every node publishes its state with its heartbeats, by the store's clock.

use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

/// A node that was silent for longer is not alive.
const LIVE: Span = Span::from_secs(5);
/// A node that was silent for longer may be cut off from the store, and act nevertheless.
#[cfg(feature = "records")]
const SILENT: Span = Span::from_secs(1);
/// A node that was silent for longer is removed from the store.
const GONE: Span = Span::from_secs(60);
/// How long revisions may differ: nodes that are deployed together do not reload at one instant.
const REVISIONS_MAY_DIFFER: Span = Span::from_secs(10);
/// Names in a message.
const NAMES_MAX: usize = 5;

/// The state of a node, as the others read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeState {
    /// When the node last published it, by the store's clock.
    pub at: Time,
    pub revision: String,
    pub name: String,
}

impl NodeState {
    pub fn to_line(&self) -> String {
        let name: String = self.name.chars().filter(|c| !c.is_control()).collect();
        format!("{} {} {name}", self.at.micros(), self.revision)
    }

    /// Decodes a line; `None` if another program wrote it.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let at = Time::from_micros(words.next()?.parse().ok()?);
        let revision = words.next()?.to_owned();
        Some(Self { at, revision, name: words.next()?.to_owned() })
    }
}

/// The nodes as the store last showed them.
#[derive(Debug, Default)]
pub(super) struct Peers(Mutex<PeersState>);

#[derive(Debug, Default)]
struct PeersState {
    /// The other live nodes.
    live: Vec<NodeState>,
    /// Whether another node is silent and not gone.
    #[cfg(feature = "records")]
    any_silent: bool,
    /// Since when a live node has another revision.
    differ_since: Option<Time>,
    /// Why that is a problem, when it has lasted.
    problem: Option<String>,
    /// The ids of nodes to remove from the store.
    gone: Vec<String>,
}

impl Peers {
    /// Takes over the nodes that the store shows, at `now` by its clock.
    pub fn update(&self, own: &str, revision: &str, nodes: &[(String, String)], now: Time) {
        let others = nodes.iter().filter(|(id, _)| id != own);
        let mut live = Vec::new();
        let mut gone = Vec::new();
        for (id, line) in others {
            match NodeState::from_line(line) {
                Some(state) if now.since(state.at) <= LIVE => live.push(state),
                Some(state) if now.since(state.at) <= GONE => {}
                _ => gone.push(id.clone()),
            }
        }
        live.sort_by(|a, b| a.name.cmp(&b.name));
        #[cfg(feature = "records")]
        let any_silent = nodes.iter().filter(|(id, _)| id != own).any(|(_, line)| {
            let silent_for = NodeState::from_line(line).map(|state| now.since(state.at));
            silent_for.is_some_and(|time| time > SILENT && time <= GONE)
        });
        let mut state = self.0.lock();
        #[cfg(feature = "records")]
        {
            state.any_silent = any_silent;
        }
        let different: Vec<&NodeState> =
            live.iter().filter(|peer| peer.revision != revision).collect();
        let since = match different.is_empty() {
            true => None,
            false => Some(state.differ_since.unwrap_or(now)),
        };
        let lasts = since.is_some_and(|since| now.since(since) >= REVISIONS_MAY_DIFFER);
        state.problem = lasts.then(|| describe(revision, &different));
        state.differ_since = since;
        state.live = live;
        state.gone = gone;
    }

    /// Removes and returns the ids of nodes that are gone.
    pub fn take_gone(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().gone)
    }

    /// Whether another node has published nothing for a second, and less than a minute.
    #[cfg(feature = "records")]
    pub fn any_silent(&self) -> bool {
        self.0.lock().any_silent
    }

    /// How many nodes are alive, with this one.
    pub fn count(&self) -> usize {
        self.0.lock().live.len() + 1
    }

    /// The names of the other nodes that were alive when the store last answered.
    #[cfg(any(feature = "records", test))]
    pub fn names(&self) -> Vec<String> {
        self.0.lock().live.iter().map(|peer| peer.name.clone()).collect()
    }

    /// Why different revisions are a problem, if they are.
    pub fn revision_problem(&self) -> Option<String> {
        self.0.lock().problem.clone()
    }
}

fn describe(revision: &str, different: &[&NodeState]) -> String {
    let name = |peer: &&NodeState| format!("{} ({})", peer.name, peer.revision);
    let mut names: Vec<String> = different.iter().take(NAMES_MAX).map(name).collect();
    if different.len() > NAMES_MAX {
        names.push(format!("{} more", different.len() - NAMES_MAX));
    }
    format!(
        "nodes use different revisions of the catalog, each applies its own limits: this node \
         uses {revision}, and {}; give every node the same files",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_000_000_000);

    fn line(name: &str, revision: &str, at: Time) -> (String, String) {
        let state = NodeState { at, revision: revision.to_owned(), name: name.to_owned() };
        (format!("id-{name}"), state.to_line())
    }

    #[test]
    fn another_revision_is_a_problem_after_ten_seconds_and_until_it_is_equal() {
        let peers = Peers::default();
        let at = |seconds: i64| NOW.after(Span::from_secs(seconds));
        let update = |seconds, revision: &str| {
            let nodes = [line("a", "r1", at(seconds)), line("b", revision, at(seconds))];
            peers.update("id-a", "r1", &nodes, at(seconds));
            peers.revision_problem()
        };
        assert_eq!(update(0, "r2"), None);
        assert_eq!(update(9, "r2"), None);
        let problem = update(10, "r2").unwrap();
        assert!(problem.contains("b (r2)") && problem.contains("uses r1"), "{problem}");
        assert_eq!(update(11, "r1"), None);
        assert_eq!(update(12, "r2"), None, "it begins again");
        assert_eq!((peers.count(), peers.names()), (2, vec!["b".to_owned()]));
    }

    #[test]
    fn a_silent_node_is_not_alive_and_then_gone() {
        let peers = Peers::default();
        let old = NOW.before(Span::from_secs(6));
        let older = NOW.before(Span::from_secs(61));
        let nodes = [line("b", "r2", old), line("c", "r2", older), ("x".into(), "noise".into())];
        peers.update("id-a", "r1", &nodes, NOW);
        assert_eq!(peers.take_gone(), ["id-c", "x"]);
        assert_eq!((peers.count(), peers.names().len()), (1, 0));
        #[cfg(feature = "records")]
        {
            assert!(peers.any_silent());
            peers.update("id-a", "r1", &[nodes[1].clone(), line("d", "r1", NOW)], NOW);
            assert!(!peers.any_silent(), "one is gone, and one is alive");
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written_on_one_line() {
        let state = NodeState {
            at: Time::from_micros(7),
            revision: "ab12".to_owned(),
            name: "shop 1".to_owned(),
        };
        assert_eq!(NodeState::from_line(&state.to_line()), Some(state.clone()));
        let broken = NodeState { name: "a\nb".to_owned(), ..state };
        assert_eq!(broken.to_line(), "7 ab12 ab");
        assert_eq!(NodeState::from_line("x"), None);
    }
}
