//! Every act that needs records, and the state that these acts change.

use catraca::app::{FactMap, ListTargetText};
use catraca::core::address::AddressRange;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::core::policy::Mode;
use catraca::records::{BlockId, BlockQuery, ListName, Operator};
use catraca::{App, AppError, Check};

use super::helpers::{IP, proposal, subject};

const RANGE: &str = "198.51.100.0/24";

fn list_entry() -> AccessListEntry {
    let target = ListTarget::Range(AddressRange::parse(RANGE).unwrap());
    AccessListEntry { namespace: None, target, reason: Some("scanner".to_owned()), until: None }
}

/// Gives every act something to change.
pub fn set_up(app: &App) {
    let engine = app.engine();
    engine.block("default", "login", &subject(), proposal(None)).unwrap();
    engine.state_facts(None, "ip", IP, &[("plan", "gold")]).unwrap();
    engine.add_to_list(ListName::Block, vec![list_entry()]);
}

/// Tries every act on this subject and on the first block; returns the name and the result of each.
pub async fn try_every_act(
    app: &App,
    by: &Operator<'_>,
) -> Vec<(&'static str, Result<(), AppError>)> {
    let facts = FactMap::from([("plan".to_owned(), "silver".to_owned())]);
    let entry = AccessListEntry { reason: None, ..list_entry() };
    let target = ListTargetText::Range(RANGE.to_owned());
    let list = ListName::Block;
    vec![
        (
            "block",
            app.block(by, "default", "login", &subject(), proposal(Some("fraud"))).await.map(drop),
        ),
        ("release", app.release(by, first_block(app).await, None, false).await.map(drop)),
        ("reset", app.reset(by, "default", "login", &subject()).await.map(drop)),
        ("reset_policy", app.reset_policy(by, "login").await.map(drop)),
        ("set_mode", app.set_mode(by, "login", Some(Mode::Off)).await.map(drop)),
        ("set_facts", app.set_facts(by, None, "ip", IP, facts).await.map(drop)),
        ("forget_facts", app.forget_facts(by, None, "ip", IP).await.map(drop)),
        ("add_to_list", app.add_to_list(by, list, vec![(entry, None)], false).await.map(drop)),
        ("remove_from_list", app.remove_from_list(by, list, None, &target).await.map(drop)),
        ("export", app.export(by, None, "ip", IP).await.map(drop)),
        ("erase", app.erase(by, None, "ip", IP).await.map(drop)),
    ]
}

/// The id of the first block in the records; any id if there is none.
async fn first_block(app: &App) -> BlockId {
    let found = app.blocks(BlockQuery::default()).await.map(|page| page.rows);
    found.ok().and_then(|rows| rows.first().map(|block| block.row.id)).unwrap_or_else(some_block)
}

/// The id of a block that does not exist.
pub fn some_block() -> BlockId {
    "1000000000000".parse().unwrap()
}

/// The state that these acts change, to be compared.
pub async fn state(app: &App) -> impl PartialEq + std::fmt::Debug {
    let peek = Check { lists: false, ..Check::new("login", subject()) };
    (
        app.peek(&peek).await.unwrap(),
        app.facts_about(None, "ip", IP).unwrap(),
        app.engine().run_time_list_entry(ListName::Block, None, &list_entry().target),
        app.engine().mode_override("login"),
    )
}
