//! What callers saw, judged: nobody surely held what somebody else surely held.
//!
//! Each grant has a window in which its caller surely held it, whatever the messages did on their
//! way, and a wider one in which they may have. It needs no search: a sweep over the windows finds
//! every overlap, and it never blames a right answer. Must not look inside the server.

use std::collections::BTreeMap;

/// One call, as its caller saw it. Instants are of one monotonic clock, in microseconds.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What was asked for: a name, or a calendar.
    pub name: String,
    /// Which part of it; for names all of it.
    pub range: (i64, i64),
    /// When the acquire was sent.
    pub sent: i64,
    /// When its answer came; never, if it did not.
    pub answered: Option<i64>,
    /// What it was.
    pub answer: Answer,
}

/// What an acquire came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was granted.
    Granted {
        /// Its number.
        fence: i64,
        /// How long it was said to last, from the answer on.
        ttl: i64,
        /// When the release was sent, if it was.
        release_sent: Option<i64>,
        /// When it was said to be released.
        released: Option<i64>,
    },
    /// Somebody else had it.
    Conflict,
    /// Nobody knows: no answer, or one that says so.
    Unknown {
        /// How long it would have lasted.
        ttl: i64,
    },
}

/// The whole range of a name.
pub const ALL: (i64, i64) = (0, 1);

/// How far a lease may end from when it was told to, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slack {
    /// Earlier: by what the wall clock was stepped forward, where leases are counted on it.
    pub early: i64,
    /// Later, such as after a restart.
    pub late: i64,
}

/// Everything that must not be; nothing if all is well.
pub fn judge(seen: &[Seen], slack: Slack) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut names: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    for one in seen {
        names.entry(&one.name).or_default().push(one);
    }
    for (name, all) in &names {
        overlaps(name, all, slack.early, &mut wrong);
        conflicts(name, all, slack.late, &mut wrong);
    }
    fences(seen, &mut wrong);
    wrong
}

/// From when to when a caller surely held it.
fn surely(seen: &Seen, early: i64) -> Option<(i64, i64)> {
    let Answer::Granted { ttl, release_sent, .. } = seen.answer else { return None };
    let until = seen.sent + ttl - early;
    let until = release_sent.map_or(until, |sent| until.min(sent));
    seen.answered.filter(|from| *from < until).map(|from| (from, until))
}

/// From when to when they may have.
fn possibly(seen: &Seen, late: i64) -> Option<(i64, i64)> {
    let last = |ttl: i64| seen.answered.map_or(i64::MAX, |at| at.saturating_add(ttl + late));
    match seen.answer {
        Answer::Granted { ttl, released, .. } => {
            let until = released.map_or(last(ttl), |at| last(ttl).min(at));
            Some((seen.sent, until))
        }
        // Its grant may come as late as its answer could have.
        Answer::Unknown { ttl } => Some((seen.sent, last(ttl))),
        Answer::Conflict => None,
    }
}

fn meet(one: (i64, i64), other: (i64, i64)) -> bool {
    one.0 < other.1 && other.0 < one.1
}

fn overlaps(name: &str, all: &[&Seen], early: i64, wrong: &mut Vec<String>) {
    let mut held: Vec<((i64, i64), &Seen)> =
        all.iter().filter_map(|seen| surely(seen, early).map(|window| (window, *seen))).collect();
    held.sort_by_key(|(window, _)| *window);
    for (at, (window, seen)) in held.iter().enumerate() {
        let later = held[at + 1..].iter().take_while(|(other, _)| other.0 < window.1);
        for (other, who) in later.filter(|(_, who)| meet(seen.range, who.range)) {
            wrong.push(format!("{name}: held twice, {window:?} {seen:?} and {other:?} {who:?}"));
        }
    }
}

fn conflicts(name: &str, all: &[&Seen], late: i64, wrong: &mut Vec<String>) {
    for seen in all.iter().filter(|seen| seen.answer == Answer::Conflict) {
        let window = (seen.sent, seen.answered.unwrap_or(i64::MAX).saturating_add(1));
        let held = all.iter().any(|other| {
            let may = possibly(other, late).is_some_and(|may| meet(window, may));
            may && meet(seen.range, other.range)
        });
        if !held {
            wrong.push(format!("{name}: a conflict with nobody, {seen:?}"));
        }
    }
}

fn fences(seen: &[Seen], wrong: &mut Vec<String>) {
    let grants = seen.iter().filter_map(|one| match one.answer {
        Answer::Granted { fence, .. } => Some((one.sent, one.answered?, fence)),
        _ => None,
    });
    let mut by_sent: Vec<(i64, i64, i64)> = grants.collect();
    by_sent.sort_unstable();
    let mut by_answer = by_sent.clone();
    by_answer.sort_unstable_by_key(|(_, answered, _)| *answered);
    let (mut highest, mut before) = (i64::MIN, by_answer.iter().peekable());
    for (sent, _, fence) in &by_sent {
        while let Some((_, _, earlier)) = before.next_if(|(_, answered, _)| answered < sent) {
            highest = highest.max(*earlier);
        }
        if *fence <= highest {
            wrong.push(format!("fence {fence} came after {highest} was answered"));
        }
    }
    let mut numbers: Vec<i64> = by_sent.iter().map(|(.., fence)| *fence).collect();
    numbers.sort_unstable();
    for pair in numbers.windows(2).filter(|pair| pair[0] == pair[1]) {
        wrong.push(format!("fence {} was given twice", pair[0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Slack = Slack { early: 0, late: 0 };

    fn granted(sent: i64, answered: i64, fence: i64, ttl: i64) -> Seen {
        let answer = Answer::Granted { fence, ttl, release_sent: None, released: None };
        Seen { name: "n".into(), range: ALL, sent, answered: Some(answered), answer }
    }

    #[test]
    fn what_must_not_be_is_found_and_what_may_be_is_not() {
        let one = granted(0, 5, 1, 100);
        assert!(judge(&[one.clone(), granted(90, 101, 2, 100)], NONE).is_empty());
        assert_eq!(judge(&[one.clone(), granted(10, 20, 2, 100)], NONE).len(), 1);
        let next = granted(200, 210, 1, 5);
        assert_eq!(judge(&[one.clone(), next], NONE).len(), 2, "the same, and not higher");
        let conflict =
            |sent, answered| Seen { answer: Answer::Conflict, ..granted(sent, answered, 0, 0) };
        assert!(judge(&[one.clone(), conflict(50, 60)], NONE).is_empty());
        assert!(judge(&[one.clone(), conflict(104, 106)], NONE).is_empty());
        assert_eq!(judge(&[one.clone(), conflict(105, 106)], NONE).len(), 1);
        let late = Slack { late: 1, ..NONE };
        assert!(judge(&[one, conflict(105, 106)], late).is_empty(), "a lease may end late");
    }

    #[test]
    fn ranges_that_touch_are_no_overlap() {
        let slot = |range, sent, fence| Seen { range, ..granted(sent, sent + 1, fence, 100) };
        assert!(judge(&[slot((0, 10), 0, 1), slot((10, 20), 5, 6)], NONE).is_empty());
        assert_eq!(judge(&[slot((0, 10), 0, 1), slot((9, 20), 5, 6)], NONE).len(), 1);
    }

    #[test]
    fn a_step_of_the_clock_excuses_what_it_made_and_no_more() {
        let (one, next) = (granted(0, 5, 1, 100), granted(80, 95, 2, 100));
        let stepped = |early| Slack { early, ..NONE };
        assert_eq!(judge(&[one.clone(), next.clone()], stepped(4)).len(), 1);
        assert!(judge(&[one, next], stepped(5)).is_empty());
    }
}
