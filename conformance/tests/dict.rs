//! The preset `dict` in front of a simulator of the DICT, for a day in virtual time. With any
//! behaviour of callers, the bank answers 429 to none of the requests that are admitted.
//!
//! Requests travel for a random time in both directions, so the bank charges before we settle, and
//! in another order. Callers that are denied come back at the instant that the denial named.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeMap;

use catraca::{
    BucketObservation, Catalog, Check, Credit, Engine, ManualClock, Outcome, Settle, Subject, Time,
};
use catraca_conformance::dict_simulator::{DictSimulator, Lookup};

const START_US: i64 = 1_800_000_000_000_000;
const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;
const POLL_US: i64 = 300 * SECOND_US;
/// The ISPB and category of each participant.
const PARTICIPANTS: [(&str, char); 3] = [("00000001", 'H'), ("00000002", 'G'), ("00000003", 'F')];
const PAYERS: [&str; 6] = [
    "11144477735",
    "52998224725",
    "11222333000181",
    "12345678909",
    "12ABC34501DE35",
    "98765432100",
];

/// What happens at an instant.
enum DayStep {
    /// A caller wants to look a key up.
    Ask(Caller),
    /// The request reaches the bank.
    Arrive {
        caller: Caller,
        lookup: Lookup,
        ticket: String,
    },
    /// The answer reaches us.
    Answer {
        caller: Caller,
        lookup: Lookup,
        ticket: String,
        status: u16,
    },
    /// The payment order reaches the bank, and a moment later us.
    Pay(Lookup),
    Credit(Lookup),
    /// The worker asks for the states of a participant's buckets, and gets them.
    Poll(usize),
    TakeOver {
        participant: usize,
        sent: Time,
        states: Vec<(String, i64, i64)>,
    },
}

/// One end user at one participant.
#[derive(Clone, Copy)]
struct Caller {
    participant: usize,
    payer: usize,
    /// Lookups of unknown keys, out of a hundred.
    unknown: u64,
    /// The mean time between two lookups, in seconds.
    pause: u64,
}

struct Day {
    engine: Engine,
    clock: ManualClock,
    bank: DictSimulator,
    /// By instant and number.
    queue: BTreeMap<(i64, u64), DayStep>,
    queued: u64,
    random: u64,
    now: i64,
    denied: u64,
    number: u64,
    /// Whether requests are checked; without it, they go to the bank as they come.
    is_limited: bool,
}

impl Day {
    fn new(catalog: Catalog, is_limited: bool) -> Self {
        let clock = ManualClock::at(Time::from_micros(START_US));
        let engine = Engine::builder(catalog).clock(clock.clone()).build();
        let mut bank = DictSimulator::default();
        for (participant, category) in PARTICIPANTS {
            bank.set_category(participant, category);
            let category = category.to_string();
            let facts = [("category", &*category)];
            engine.state_facts(None, "participant", participant, &facts).unwrap();
        }
        let mut day = Self {
            engine,
            clock,
            bank,
            queue: BTreeMap::new(),
            queued: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
            denied: 0,
            number: 0,
            is_limited,
        };
        for participant in 0..PARTICIPANTS.len() {
            day.at(0, DayStep::Poll(participant));
            for payer in 0..PAYERS.len() {
                // Honest callers, careless ones and scanners; some pause for a second, some
                // minutes.
                let unknown = [2, 15, 90][(participant + payer) % 3];
                let pause = [1, 20, 120][payer % 3];
                day.at(0, DayStep::Ask(Caller { participant, payer, unknown, pause }));
            }
        }
        day
    }

    fn at(&mut self, delay: i64, step: DayStep) {
        self.queued += 1;
        self.queue.insert((self.now + delay, self.queued), step);
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    /// The time of a request or an answer on its way: 1 to 400 ms.
    fn way(&mut self) -> i64 {
        1_000 + self.below(399_000) as i64
    }

    fn run(&mut self) {
        while let Some(((at, _), step)) = self.queue.pop_first() {
            if at >= DAY_US {
                return;
            }
            self.now = at;
            self.clock.set(Time::from_micros(START_US + at));
            self.step(step);
        }
    }

    fn step(&mut self, step: DayStep) {
        match step {
            DayStep::Ask(caller) => self.ask(caller),
            DayStep::Arrive { caller, lookup, ticket } => {
                let is_known = self.below(100) >= caller.unknown;
                let status = self.bank.get_entry(self.now, &lookup, is_known);
                let way = self.way();
                self.at(way, DayStep::Answer { caller, lookup, ticket, status });
            }
            DayStep::Answer { caller, lookup, ticket, status } => {
                self.settle(&ticket, status);
                if status == 200 && self.below(100) < 70 {
                    let paid = SECOND_US * (1 + self.below(60) as i64);
                    self.at(paid, DayStep::Pay(lookup));
                }
                let pause = self.below(2 * caller.pause * 1_000) as i64 * 1_000;
                self.at(pause, DayStep::Ask(caller));
            }
            DayStep::Pay(lookup) => {
                self.bank.pay(self.now, &lookup.reference);
                let way = self.way();
                self.at(way, DayStep::Credit(lookup));
            }
            DayStep::Credit(lookup) => {
                let caller = [("participant", &*lookup.participant), ("payer", &*lookup.payer)];
                let subject = Subject::from(caller);
                let reference = &lookup.reference;
                let call = Credit::new(reference, "payment", &subject);
                let credit = self.engine.credit(&call).unwrap();
                // Without limits, denied lookups are sent too, and have no reference.
                assert!(credit.is_ok() || !self.is_limited, "{credit:?}");
            }
            DayStep::Poll(participant) => self.poll(participant),
            DayStep::TakeOver { participant, sent, states } => {
                let subject = Subject::from([("participant", PARTICIPANTS[participant].0)]);
                let observed: Vec<_> = states
                    .iter()
                    .map(|(policy, available, capacity)| BucketObservation {
                        policy,
                        available: *available,
                        capacity: Some(*capacity),
                    })
                    .collect();
                self.engine.reconcile("default", &subject, sent, &observed).unwrap();
            }
        }
    }

    fn ask(&mut self, caller: Caller) {
        self.number += 1;
        let is_contact = self.below(2) == 0;
        let lookup = Lookup {
            participant: PARTICIPANTS[caller.participant].0.to_owned(),
            payer: PAYERS[caller.payer].to_owned(),
            is_contact,
            reference: format!("E{}", self.number),
        };
        let gate = if is_contact { "getEntry.EMAIL" } else { "getEntry.CPF" };
        let subject = [("participant", &*lookup.participant), ("payer", &*lookup.payer)];
        let check = Check::new(gate, subject).reference(&lookup.reference);
        let decision = self.engine.check(&check).unwrap();
        drop(check);
        if self.is_limited && !decision.allowed {
            self.denied += 1;
            // At the announced instant, or later.
            let wait = decision.retry_after().map_or(SECOND_US, |wait| wait.as_micros() as i64);
            let more = if self.below(2) == 0 { 0 } else { self.below(30 * 1_000_000) as i64 };
            return self.at(wait + more, DayStep::Ask(caller));
        }
        let ticket = decision.ticket.unwrap_or_default().to_string();
        let way = self.way();
        self.at(way, DayStep::Arrive { caller, lookup, ticket });
    }

    fn settle(&mut self, ticket: &str, status: u16) {
        if !ticket.is_empty() {
            let outcome = Outcome::status(status);
            self.engine.settle(&Settle::ticket(ticket, &outcome)).unwrap();
        }
    }

    fn poll(&mut self, participant: usize) {
        let name = PARTICIPANTS[participant].0;
        let check = Check::new("listBucketStates", [("participant", name)]);
        let decision = self.engine.check(&check).unwrap();
        self.at(POLL_US, DayStep::Poll(participant));
        if !decision.allowed {
            return;
        }
        let sent = Time::from_micros(START_US + self.now);
        let xml = self.bank.states(self.now, name, "").unwrap_or_default();
        self.settle(&decision.ticket.unwrap_or_default(), if xml.is_empty() { 429 } else { 200 });
        let way = self.way();
        self.at(way, DayStep::TakeOver { participant, sent, states: read_states(&xml) });
    }
}

/// Name, tokens and size of each policy.
fn read_states(xml: &str) -> Vec<(String, i64, i64)> {
    let element = |policy: &str, name: &str| {
        let after = policy.split(&format!("<{name}>")).nth(1)?;
        after.split('<').next().map(str::to_owned)
    };
    let policies = xml.split("<Policy>").skip(1);
    policies
        .map(|policy| {
            let number = |name| element(policy, name).unwrap().parse().unwrap();
            (element(policy, "Name").unwrap(), number("AvailableTokens"), number("Capacity"))
        })
        .collect()
}

fn preset(margin: Option<&str>) -> Catalog {
    let text = include_str!("../../presets/dict/catalog.toml");
    let text = match margin {
        Some(margin) => text
            .replace("${DICT_MARGIN:99%}", margin)
            .replace("${DICT_LOOKUP_MARGIN:90%}", margin)
            .replace(", \"payer_in_flight\", \"participant_in_flight\"", ""),
        None => text.to_owned(),
    };
    Catalog::parse(&text).unwrap()
}

/// covers: 001-01, 001-32, X-11
#[test]
fn for_a_day_the_bank_refuses_nothing_that_was_admitted() {
    let mut day = Day::new(preset(None), true);
    day.run();
    let requests = day.bank.requests();
    let refusals = day.bank.refusals();
    let denied = day.denied;
    println!("{requests} requests at the bank, {refusals} times 429; {denied} denied before");
    assert_eq!(refusals, 0);
    // The day was no quiet one: callers met their limits, and the bank had much to do.
    assert!(requests > 5_000 && denied > 2_000, "{requests} {denied}");
}

#[test]
fn without_limits_the_bank_refuses_and_without_margins_sometimes() {
    let mut unlimited = Day::new(preset(None), false);
    unlimited.run();
    assert!(unlimited.bank.refusals() > 10_000, "{}", unlimited.bank.refusals());
    let mut exact = Day::new(preset(Some("100%")), true);
    exact.run();
    println!("without margins: {} times 429", exact.bank.refusals());
    assert!(exact.bank.refusals() > 0, "the margins of the preset would not be needed");
}
