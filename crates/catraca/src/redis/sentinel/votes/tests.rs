//! Votes of Sentinels at given instants.

use super::*;

fn address(port: u16) -> RedisAddress {
    RedisAddress::Tcp("h".to_owned(), port)
}

/// The report of Sentinel `id` of three.
fn report(id: u16, primary: u16, epoch: u64) -> SentinelReport {
    let others = (1..=3).filter(|other| *other != id);
    SentinelReport {
        id: id.to_string(),
        primary: address(primary),
        epoch,
        is_failing_over: false,
        down_after: Some(Duration::from_secs(u64::from(id))),
        others: others.map(|other| (other.to_string(), address(other))).collect(),
    }
}

fn after(start: Instant, millis: u64) -> Instant {
    start + Duration::from_millis(millis)
}

#[test]
fn a_primary_is_confirmed_by_the_newest_majority() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1)]);
    votes.on_report(&address(1), start, report(1, 100, 4));
    assert_eq!(votes.addresses(), [address(1), address(2), address(3)], "the others are listed");
    assert_eq!(votes.confirmed_at(&address(100), 4, start), Err(Doubt::Minority));
    votes.on_report(&address(2), after(start, 10), report(2, 100, 4));
    assert_eq!(votes.confirmed_at(&address(100), 4, after(start, 20)), Ok(start));
    votes.on_report(&address(3), after(start, 30), report(3, 100, 4));
    let confirmed = votes.confirmed_at(&address(100), 4, after(start, 40));
    assert_eq!(confirmed, Ok(after(start, 10)));
    assert_eq!(votes.confirmed_at(&address(101), 4, after(start, 40)), Err(Doubt::Minority));
}

#[test]
fn one_report_of_a_higher_epoch_or_of_a_failover_is_enough_to_doubt() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1)]);
    for id in 1..=3 {
        votes.on_report(&address(id), start, report(id, 100, 4));
    }
    let failing_over = SentinelReport { is_failing_over: true, ..report(3, 100, 4) };
    votes.on_report(&address(3), start, failing_over);
    let doubt = Doubt::FailingOver(address(100));
    assert_eq!(votes.confirmed_at(&address(100), 4, start), Err(doubt));
    votes.on_report(&address(3), start, report(3, 101, 5));
    let doubt = Doubt::Replaced(address(101));
    assert_eq!(votes.confirmed_at(&address(100), 4, start), Err(doubt));
    let named = NamedPrimary { server: address(101), epoch: 5, by_majority: false };
    assert_eq!(votes.named_primary(start), Some(named));
    assert_eq!(votes.confirmed_at(&address(101), 5, start), Err(Doubt::Minority));
    votes.on_report(&address(1), start, report(1, 101, 5));
    assert_eq!(votes.confirmed_at(&address(101), 5, start), Ok(start));
    assert!(votes.named_primary(start).is_some_and(|named| named.by_majority));
}

#[test]
fn a_sentinel_that_hangs_overrules_nobody_after_a_second() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1)]);
    let failing_over = SentinelReport { is_failing_over: true, ..report(3, 100, 4) };
    votes.on_report(&address(3), start, failing_over);
    let later = after(start, 1_001);
    votes.on_report(&address(1), later, report(1, 100, 4));
    votes.on_report(&address(2), later, report(2, 100, 4));
    assert_eq!(votes.confirmed_at(&address(100), 4, later), Ok(later));
    assert_eq!((votes.recent_count(later), votes.total(later)), (2, 3));
}

#[test]
fn a_sentinel_with_two_addresses_has_one_vote() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1), address(11)]);
    votes.on_report(&address(1), start, report(1, 100, 4));
    votes.on_report(&address(11), start, report(1, 100, 4));
    assert_eq!(votes.confirmed_at(&address(100), 4, start), Err(Doubt::Minority));
    assert_eq!((votes.total(start), votes.majority(start)), (3, 2));
}

#[test]
fn listed_sentinels_are_added_after_those_of_the_url_were_asked() {
    let start = Instant::now();
    let url = [address(11), address(12)];
    let mut votes = SentinelVotes::new(&url);
    votes.on_report(&address(11), start, report(1, 100, 4));
    assert_eq!(votes.addresses(), url);
    votes.on_report(&address(12), start, report(2, 100, 4));
    assert_eq!(votes.addresses(), [address(3), address(11), address(12)], "1 and 2 are known");
}

#[test]
fn an_answer_of_a_majority_or_of_every_sentinel_is_waited_for() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1), address(2), address(3)]);
    let error = || ConnectError::Unreachable { server: "h:1".to_owned(), reason: String::new() };
    votes.on_report(&address(1), start, report(1, 100, 4));
    assert!(!votes.is_answered_since(start));
    votes.on_error(&address(2), start, error());
    assert!(!votes.is_answered_since(start));
    votes.on_error(&address(3), start, error());
    assert!(votes.is_answered_since(start), "every Sentinel was tried");
    votes.on_report(&address(2), after(start, 5), report(2, 100, 4));
    assert!(!votes.is_answered_since(after(start, 5)));
    votes.on_report(&address(1), after(start, 5), report(1, 100, 4));
    assert!(votes.is_answered_since(after(start, 5)), "a majority answered");
}

#[test]
fn the_shortest_wait_is_that_of_a_sentinel_that_answers() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1), address(2), address(3)]);
    assert_eq!(votes.shortest_down_after(start), None);
    votes.on_report(&address(1), start, report(1, 100, 4));
    votes.on_report(&address(2), after(start, 900), report(2, 100, 4));
    let shortest = Some((address(1), Duration::from_secs(1)));
    assert_eq!(votes.shortest_down_after(after(start, 1_000)), shortest);
    let shortest = Some((address(2), Duration::from_secs(2)));
    assert_eq!(votes.shortest_down_after(after(start, 1_001)), shortest);
}

/// Regression: the last report of a Sentinel made its id known for ever, so its new address was
/// never asked, and dead addresses filled the list.
#[test]
fn a_sentinel_that_moves_is_asked_at_its_new_address_and_no_more_at_the_old_one() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1)]);
    let mut listed = report(1, 100, 4);
    votes.on_report(&address(1), start, listed.clone());
    for id in 2..=3 {
        votes.on_report(&address(id), start, report(id, 100, 4));
    }
    for round in 1..100 {
        let now = after(start, u64::from(round) * 2_000);
        listed.others = vec![("2".to_owned(), address(2)), ("3".to_owned(), address(100 + round))];
        votes.on_report(
            &address(2),
            now,
            SentinelReport { others: Vec::new(), ..report(2, 100, 4) },
        );
        votes.on_report(&address(1), now, listed.clone());
        assert_eq!(votes.addresses(), [address(1), address(2), address(100 + round)]);
        votes.on_report(&address(100 + round), now, report(3, 100, 4));
    }
    let error = ConnectError::Unreachable { server: "h:3".to_owned(), reason: String::new() };
    votes.on_error(&address(3), start, error);
    assert!(!votes.addresses().contains(&address(3)), "its link was still ending");
}

/// The report of a Sentinel that was reset: it lists no others.
fn report_alone(id: u16, primary: u16, epoch: u64) -> SentinelReport {
    SentinelReport { others: Vec::new(), ..report(id, primary, epoch) }
}

/// Regression: the only Sentinel that a node reached was a majority of one.
#[test]
fn a_sentinel_that_lists_no_others_is_no_majority_of_those_of_the_url() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1), address(2), address(3)]);
    votes.on_report(&address(1), start, report_alone(1, 100, 0));
    assert_eq!((votes.total(start), votes.majority(start)), (3, 2));
    assert_eq!(votes.confirmed_at(&address(100), 0, start), Err(Doubt::Minority));
    assert!(votes.named_primary(start).is_some_and(|named| !named.by_majority));
    votes.on_report(&address(2), start, report_alone(2, 100, 0));
    assert_eq!(votes.confirmed_at(&address(100), 0, start), Ok(start));
}

/// As before, of Sentinels that the URL does not name.
#[test]
fn a_sentinel_that_forgets_the_others_is_no_majority_of_those_that_a_node_knows() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1)]);
    for id in 1..=3 {
        votes.on_report(&address(id), start, report(id, 100, 4));
    }
    let later = after(start, 5_000);
    votes.on_report(&address(1), later, report_alone(1, 101, 2));
    assert_eq!((votes.recent_count(later), votes.total(later)), (1, 3));
    let named = NamedPrimary { server: address(101), epoch: 2, by_majority: false };
    assert_eq!(votes.named_primary(later), Some(named), "the node stays where it is");
    assert_eq!(votes.confirmed_at(&address(101), 2, later), Err(Doubt::Minority));
    assert_eq!(votes.addresses(), [address(1), address(2), address(3)]);
}

#[test]
fn a_sentinel_is_forgotten_when_a_majority_lists_it_no_more() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1), address(2)]);
    for id in 1..=3 {
        votes.on_report(&address(id), start, report(id, 100, 4));
    }
    let later = after(start, 5_000);
    let mut removed = [report(1, 100, 4), report(2, 100, 4)];
    removed.iter_mut().for_each(|one| one.others.retain(|(id, _)| id != "3"));
    let [first, second] = removed;
    votes.on_report(&address(1), later, first);
    assert_eq!(votes.total(later), 3, "one Sentinel decides nothing");
    votes.on_report(&address(2), later, second);
    assert_eq!((votes.total(later), votes.addresses()), (2, vec![address(1), address(2)]));
}

/// A Sentinel of the URL that was replaced keeps its place, and does not count twice.
#[test]
fn a_sentinel_that_replaces_one_of_the_url_does_not_raise_the_majority() {
    let start = Instant::now();
    let mut votes = SentinelVotes::new(&[address(1), address(2), address(3)]);
    for id in 1..=3 {
        votes.on_report(&address(id), start, report(id, 100, 4));
    }
    let later = after(start, 5_000);
    let listing = |id: u16| {
        let others = [1, 2, 4].into_iter().filter(|other| *other != id);
        let others = others.map(|other| (other.to_string(), address(other))).collect();
        SentinelReport { others, ..report(id, 100, 4) }
    };
    for id in [1, 2, 4] {
        votes.on_report(&address(id), later, listing(id));
    }
    assert_eq!((votes.total(later), votes.majority(later)), (3, 2));
}
