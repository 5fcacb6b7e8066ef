//! Every act adds a row to the history, and acts of operators add a line to the audit.

use catraca::Time;
use catraca::core::address::AddressRange;
use catraca::core::cell::block::Origin;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::core::policy::Mode;
use catraca::records::{
    AttributeValue, AuditNote, AuditQuery, AuditRow, BlockQuery, BlockRow, BlockStates, HistoryRow,
    ListName, Record, RecordKind, Records, RestoredItem, Revision,
};

use super::helpers::{TestDatabase, at, block_record, excess_block, subject_key, write};

fn acts(history: &[HistoryRow]) -> Vec<(&str, Origin, Time)> {
    history.iter().map(|row| (row.act.as_str(), row.origin, row.until)).collect()
}

fn only_block(records: &Records, now: Time) -> BlockRow {
    let page = records.blocks(&BlockQuery::default(), now).unwrap();
    assert_eq!(page.rows.len(), 1, "{page:?}");
    page.rows[0].clone()
}

/// covers: 000-27, 000-32, 000-33, B-09, X-21
#[test]
fn two_bans_leave_one_block_and_two_rows_of_history() {
    let database = TestDatabase::new();
    let records = database.open();
    let ban = |from, until| {
        Record::automatic(
            from,
            block_record(subject_key("pay", "198.51.100.7"), until, Origin::Ban, None),
        )
    };
    write(&records, vec![ban(at(0), at(600))]);
    write(&records, vec![ban(at(300), at(900))]);
    let block = only_block(&records, at(301));
    let history = records.history(&block).unwrap();
    let wanted = [("started", Origin::Ban, at(600)), ("extended", Origin::Ban, at(900))];
    assert_eq!(acts(&history), wanted);
    let row = records.block(block.id).unwrap().unwrap();
    assert_eq!((row.since, row.block.until), (at(0), at(900)));
    assert!(records.blocks(&BlockQuery::default(), at(900)).unwrap().rows.is_empty());
}

/// covers: B-07
#[test]
fn the_later_end_wins_with_its_origin_and_reason() {
    let database = TestDatabase::new();
    let records = database.open();
    let act = |from, until, origin, reason| {
        let kind = block_record(subject_key("login", "198.51.100.7"), until, origin, Some(reason));
        Record::automatic(from, kind)
    };
    write(&records, vec![act(at(0), at(900), Origin::Ban, "reject 5")]);
    write(&records, vec![act(at(1), at(60), Origin::Upstream, "busy")]);
    let row = only_block(&records, at(2));
    assert_eq!((row.block.until, row.block.origin), (at(900), Origin::Ban));
    assert_eq!(row.block.note.reason.as_deref(), Some("reject 5"));
    let after_its_end = act(at(1000), at(1060), Origin::Upstream, "busy");
    write(&records, vec![after_its_end]);
    let later = only_block(&records, at(1001));
    let block = &later.block;
    assert_eq!((later.since, block.until, block.origin), (at(1000), at(1060), Origin::Upstream));
    assert_eq!(acts(&records.history(&later).unwrap()), [("started", Origin::Upstream, at(1060))]);
    assert_ne!(later.id, row.id);
    let ended = records.block(row.id).unwrap().unwrap();
    assert_eq!((ended.since, ended.block), (row.since, row.block));
}

/// An id names one block: an extension keeps it, and a later block of the same key has another.
#[test]
fn an_ended_block_is_found_by_its_id_and_by_its_subject() {
    let database = TestDatabase::new();
    let records = database.open();
    let name = "198.51.100.7";
    let release = |from| {
        let kind = RecordKind::Release(subject_key("login", name));
        Record::operator(from, "ana", Some("wrong person"), kind)
    };
    write(&records, vec![excess_block("login", name, at(0), at(1800))]);
    let first = only_block(&records, at(1));
    let longer = block_record(subject_key("login", name), at(3600), Origin::Ban, Some("spam"));
    write(&records, vec![Record::automatic(at(2), longer)]);
    assert_eq!(only_block(&records, at(3)).id, first.id);
    write(&records, vec![release(at(60))]);
    write(&records, vec![excess_block("login", name, at(70), at(1870))]);
    write(&records, vec![excess_block("login", "203.0.113.9", at(70), at(1870))]);
    let query = |states, name: &str| {
        let about = AttributeValue { attribute: "ip".to_owned(), value: name.to_owned() };
        let query = BlockQuery { states, about: vec![about], ..BlockQuery::default() };
        records.blocks(&query, at(71)).unwrap().rows
    };
    let [later] = &query(BlockStates::Active, name)[..] else { panic!("one is active") };
    assert_ne!(later.id, first.id);

    let ended = records.block(first.id).unwrap().unwrap();
    let block = &ended.block;
    assert_eq!((ended.id, block.until, block.origin), (first.id, at(60), Origin::Ban));
    assert_eq!(block.note.reason.as_deref(), Some("spam"));
    let steps = records.history(&ended).unwrap();
    assert_eq!(
        steps.iter().map(|step| &*step.act).collect::<Vec<_>>(),
        ["started", "extended", "released"]
    );
    assert_eq!(query(BlockStates::Ended, name), std::slice::from_ref(&ended));
    let all: Vec<_> = query(BlockStates::All, name).iter().map(|row| row.id).collect();
    assert_eq!(all, [later.id, first.id]);
    assert!(query(BlockStates::Ended, "203.0.113.9").is_empty());
    let one = BlockQuery { states: BlockStates::All, limit: 2, ..BlockQuery::default() };
    let page = records.blocks(&one, at(71)).unwrap();
    let rest = BlockQuery { after: page.next, ..one };
    let rest = records.blocks(&rest, at(71)).unwrap();
    assert_eq!((page.rows.len(), rest.rows), (2, vec![ended]));
}

/// covers: X-29, 000-17
#[test]
fn a_release_ends_the_block_and_names_who_and_why() {
    let database = TestDatabase::new();
    let records = database.open();
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(1800))]);
    let block = only_block(&records, at(1));
    let release = RecordKind::Release(subject_key("login", "198.51.100.7"));
    write(&records, vec![Record::operator(at(60), "ana", Some("wrong person"), release)]);
    assert!(records.blocks(&BlockQuery::default(), at(60)).unwrap().rows.is_empty());
    let history = records.history(&block).unwrap();
    let last = history.last().unwrap();
    assert_eq!(
        (last.act.as_str(), last.until, last.by.as_deref()),
        ("released", at(60), Some("ana"))
    );
    assert_eq!(last.reason.as_deref(), Some("wrong person"));
    let audit = records.audit(&AuditQuery::default()).unwrap().rows;
    let [line] = &audit[..] else { panic!("{audit:?}") };
    assert_eq!((&*line.by, &*line.act, &*line.target), ("ana", "release", "login ip=198.51.100.7"));
    assert!(line.before.as_ref().unwrap().contains(&at(1800).to_rfc3339()), "{line:?}");
}

/// An older record that is written late, because the queue was full, must not undo a newer one.
#[test]
fn an_older_step_never_undoes_a_newer_one() {
    let database = TestDatabase::new();
    let records = database.open();
    let release = RecordKind::Release(subject_key("login", "198.51.100.7"));
    write(&records, vec![Record::operator(at(60), "ana", None, release)]);
    write(&records, vec![excess_block("login", "198.51.100.7", at(0), at(1800))]);
    assert!(records.blocks(&BlockQuery::default(), at(61)).unwrap().rows.is_empty());
}

fn audit_rows(records: &Records, act: &str) -> Vec<AuditRow> {
    let query = AuditQuery { act: Some(act.to_owned()), ..AuditQuery::default() };
    records.audit(&query).unwrap().rows
}

/// covers: 003-45, 003-48
#[test]
fn an_entry_is_changed_not_doubled_and_audited_with_what_was_before() {
    let database = TestDatabase::new();
    let records = database.open();
    let what = ListTarget::Range(AddressRange::parse("203.0.113.0/24").unwrap());
    let list = |until, reason: &str| {
        let entry = AccessListEntry {
            namespace: None,
            target: what.clone(),
            reason: Some(reason.to_owned()),
            until,
        };
        Record::operator(at(0), "ana", Some("case 9"), RecordKind::List(ListName::Block, entry))
    };
    write(&records, vec![list(Some(at(60)), "scan")]);
    write(&records, vec![list(None, "again")]);
    let mut found = Vec::new();
    records.restore(at(1_000_000), Time::ZERO, |row| found.push(row)).unwrap();
    let [RestoredItem::List(ListName::Block, entry)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((entry.until, entry.reason.as_deref()), (None, Some("again")));
    let audit = audit_rows(&records, "list");
    assert_eq!(audit.len(), 2);
    assert!(audit[0].before.as_ref().unwrap().contains("scan"), "{audit:?}");
    assert_eq!(audit[0].why.as_deref(), Some("case 9"));
    let unlist = RecordKind::Unlist(ListName::Block, entry.clone());
    write(&records, vec![Record::operator(at(9), "ana", None, unlist)]);
    assert_eq!(audit_rows(&records, "unlist").len(), 1);
}

#[test]
fn facts_and_modes_stand_until_they_are_taken_back() {
    let database = TestDatabase::new();
    let records = database.open();
    let about =
        AttributeValue { attribute: "participant".to_owned(), value: "12345678".to_owned() };
    let facts = vec![("category".to_owned(), "A".to_owned())];
    let by = |kind| Record::operator(at(0), "ana", None, kind);
    write(
        &records,
        vec![by(RecordKind::SetFacts { namespace: None, about: about.clone(), facts })],
    );
    write(&records, vec![by(RecordKind::Mode("login".to_owned(), Some(Mode::Off)))]);
    let restored = |records: &Records| {
        let mut found = Vec::new();
        records.restore(at(0), Time::ZERO, |row| found.push(format!("{row:?}"))).unwrap();
        found
    };
    assert_eq!(restored(&records).len(), 2, "{:?}", restored(&records));
    write(
        &records,
        vec![
            by(RecordKind::ForgetFacts { namespace: None, about }),
            by(RecordKind::Mode("login".to_owned(), None)),
        ],
    );
    assert_eq!(restored(&records), Vec::<String>::new());
    assert_eq!(audit_rows(&records, "mode")[0].before.as_deref(), Some("\"off\""));
    assert_eq!(audit_rows(&records, "forget")[0].before.as_deref(), Some("{\"category\":\"A\"}"));
}

#[test]
fn facts_are_listed_in_order_and_in_pages() {
    let database = TestDatabase::new();
    let records = database.open();
    let state = |attribute: &str, value: &str, name: &str| {
        let about = AttributeValue { attribute: attribute.to_owned(), value: value.to_owned() };
        let kind = RecordKind::SetFacts {
            namespace: None,
            about,
            facts: vec![(name.to_owned(), "x".to_owned())],
        };
        Record::operator(at(7), "ana", None, kind)
    };
    let all = [("b", "1", "n"), ("a", "2", "m"), ("a", "2", "l"), ("a", "10", "z")];
    write(&records, all.map(|(attribute, value, name)| state(attribute, value, name)).to_vec());
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let page = records.facts(None, after, 3).unwrap();
        assert!(page.rows.iter().all(|row| row.at == at(7) && row.by.as_deref() == Some("ana")));
        let names = page
            .rows
            .iter()
            .map(|row| format!("{} {} {}", row.about.attribute, row.about.value, row.name));
        seen.push(names.collect::<Vec<_>>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [vec!["a 10 z", "a 2 l", "a 2 m"], vec!["b 1 n"]]);
}

/// covers: 003-10
#[test]
fn every_catalog_is_a_revision_with_its_count_and_the_same_one_is_not() {
    let database = TestDatabase::new();
    let records = database.open();
    let revise = |revision: &str, policies| {
        let revision = Revision { revision: revision.to_owned(), policies: Some(policies) };
        Record::operator(at(0), "ana", Some("tuning"), RecordKind::Catalog(revision))
    };
    write(&records, vec![revise("aa", 22), revise("aa", 22), revise("bb", 24)]);
    let revisions = records.revisions(10).unwrap();
    let seen: Vec<_> = revisions.iter().map(|row| (&*row.revision, row.policies)).collect();
    assert_eq!(seen, [("bb", Some(24)), ("aa", Some(22))]);
    assert!(audit_rows(&records, "catalog")[0].before.as_ref().unwrap().contains("22"));
}

#[test]
fn records_remember_whether_keys_were_required_and_audit_every_change() {
    let database = TestDatabase::new();
    let records = database.open();
    let require = |required| Record::automatic(at(0), RecordKind::RequireKeys(required));
    assert!(!records.keys_required().unwrap());
    write(&records, vec![require(false)]);
    assert!(!records.keys_required().unwrap());
    write(&records, vec![require(true), require(true)]);
    records.close();
    let records = database.open();
    assert!(records.keys_required().unwrap());
    write(&records, vec![require(false)]);
    assert!(!records.keys_required().unwrap());
    let changes: Vec<_> = audit_rows(&records, "auth").into_iter().map(|row| row.after).collect();
    assert_eq!(changes, [Some("false".to_owned()), Some("true".to_owned())]);
}

#[test]
fn other_acts_of_operators_are_only_audited() {
    let database = TestDatabase::new();
    let records = database.open();
    let note = AuditNote { act: "backup".to_owned(), target: "nightly".to_owned() };
    write(&records, vec![Record::operator(at(0), "ana", None, RecordKind::Note(note))]);
    assert_eq!(audit_rows(&records, "backup")[0].target, "nightly");
}
