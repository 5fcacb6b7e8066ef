//! What operators rely on: a release lets the caller pass and ends no other block, a late settle
//! bans, and a change of `private` disables no list entry. Planted bugs are noticed here.

use std::sync::Arc;

use catraca::app::ListedBlock;
use catraca::records::{BlockQuery, ListName, Operator, Options, Records};
use catraca::{App, Catalog, Check, Engine, ManualClock, Outcome, Settle, Span, Time};
use catraca_core::lists::{AccessListEntry, ListTarget};
use tokio::runtime::{Builder, Runtime};

const CATALOG: &str = "[policy.spend]\neach = ['customer', 'session']\nwindow = '10 per 1h'\n\
    cost = 'reported'\nblock = '1h'\n\
    [policy.pay]\neach = ['customer', 'session']\n\
    ban = [ { when = 'status == 403', for = '1h' } ]\n";
const SUBJECT: [(&str, &str); 2] = [("customer", "c1"), ("session", "s1")];
const ANA: Operator<'static> = Operator { name: "ana", why: None };
const START: Time = Time::from_micros(1_800_000_000_000_000);

/// An application with records in a folder that is removed with it.
struct Desk {
    app: App,
    clock: ManualClock,
    runtime: Runtime,
    folder: std::path::PathBuf,
}

impl Desk {
    fn open(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("catraca-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let url = format!("sqlite:{}", folder.join("catraca.db").display());
        let records = Arc::new(Records::open(&url, Options::default()).unwrap());
        let clock = ManualClock::at(START);
        let engine = Engine::builder(Catalog::parse(CATALOG).unwrap()).clock(clock.clone());
        let app = App::local(engine.build()).records(records).build();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { app, clock, runtime, folder }
    }

    fn check(&self, gate: &str) -> catraca::Decision {
        self.runtime.block_on(self.app.check(&Check::new(gate, SUBJECT))).unwrap()
    }

    /// Checks, and settles after so long.
    fn settle_after(&self, gate: &str, span: Span, outcome: &Outcome) {
        let ticket = self.check(gate).ticket.unwrap();
        self.clock.advance(span);
        let settle = Settle::ticket(&ticket, outcome);
        self.runtime.block_on(self.app.settle(&settle)).unwrap();
    }

    fn blocks(&self) -> Vec<ListedBlock> {
        self.runtime.block_on(self.app.blocks(BlockQuery::default())).unwrap().rows
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_release_ends_every_block_of_the_settle_that_made_it() {
    let desk = Desk::open("every-block");
    let over = Outcome { cost: Some(50), ..Outcome::default() };
    desk.settle_after("spend", Span::ZERO, &over);
    let id = desk.blocks()[0].row.id;
    desk.runtime.block_on(desk.app.release_and_reset(&ANA, id, None, false)).unwrap();
    assert!(desk.blocks().is_empty(), "the session is still blocked");
    assert!(desk.check("spend").allowed);
}

#[test]
fn a_stale_id_releases_no_later_block() {
    let desk = Desk::open("stale-id");
    desk.settle_after("pay", Span::ZERO, &Outcome::status(403));
    let stale = desk.blocks()[0].row.id;
    desk.clock.advance(Span::from_secs(3_601));
    desk.settle_after("pay", Span::ZERO, &Outcome::status(403));
    let released = desk.runtime.block_on(desk.app.release(&ANA, stale, None, false));
    assert!(released.is_err(), "{released:?}");
    assert!(!desk.check("pay").allowed);
}

#[test]
fn a_policy_that_only_bans_is_settled_after_minutes() {
    let desk = Desk::open("late-ban");
    desk.settle_after("pay", Span::from_secs(300), &Outcome::status(403));
    assert!(!desk.check("pay").allowed);
}

#[test]
fn an_attribute_that_becomes_private_keeps_its_list_entries() {
    let desk = Desk::open("private");
    let target = ListTarget::Value { attribute: "customer".into(), value: "c1".into() };
    let entry = AccessListEntry { namespace: None, target, reason: None, until: None };
    let entries = vec![(entry, None)];
    let add = desk.app.add_to_list(&ANA, ListName::Block, entries, false);
    desk.runtime.block_on(add).unwrap();
    for private in ["", "[attribute.customer]\nprivate = true\n", ""] {
        let catalog = Catalog::parse(&format!("{CATALOG}{private}")).unwrap();
        desk.app.engine().reload(catalog);
        assert!(!desk.check("spend").allowed, "{private}");
    }
}
