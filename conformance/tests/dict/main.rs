//! The preset `dict` in front of a simulator of the DICT, for a day in virtual time. With any
//! behaviour of callers, the bank answers 429 to none of the requests that are admitted.
//!
//! Requests travel for a random time in both directions, so the bank charges before we settle, and
//! in another order. Callers that are denied come back at the instant that the denial named. All
//! eight categories look keys up, all 31 policies meet their limits, some answers are errors, and
//! the bank changes a category twice.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod bank_states;
mod operations;
mod rushes;

use std::collections::BTreeMap;

use catraca::memory::MemoryOptions;
use catraca::{
    BucketObservation, Catalog, Check, Credit, Engine, ManualClock, Outcome, Settle, Subject, Time,
};
use catraca_conformance::dict_simulator::{DictSimulator, Lookup};

use bank_states::{element, read_states};

const START_US: i64 = 1_800_000_000_000_000;
const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;
const POLL_US: i64 = 300 * SECOND_US;
/// The ISPB and the first category of each participant.
const PARTICIPANTS: [(&str, char); 9] = [
    ("00000001", 'H'),
    ("00000002", 'G'),
    ("00000003", 'F'),
    ("00000004", 'E'),
    ("00000005", 'D'),
    ("00000006", 'C'),
    ("00000007", 'B'),
    ("00000008", 'A'),
    ("00000009", 'G'),
];
/// Those whose callers look keys up all day; the others have rushes.
const BUSY: usize = 3;
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
        xml: String,
    },
    /// The bank assigns another category.
    Assign {
        participant: usize,
        category: char,
    },
    Rush(rushes::Rush),
    Operation(operations::OperationStep),
}

/// One end user at one participant.
#[derive(Clone, Copy)]
struct Caller {
    participant: usize,
    payer: Payer,
    /// Lookups of unknown keys, out of a hundred.
    unknown: u64,
    /// The mean time between two lookups, in seconds; without one there is no second lookup.
    pause: Option<u64>,
}

#[derive(Clone, Copy)]
enum Payer {
    Known(usize),
    /// A person of a rush.
    Numbered(u64),
}

impl Payer {
    fn number(self) -> String {
        match self {
            Self::Known(index) => PAYERS[index].to_owned(),
            Self::Numbered(number) => rushes::cpf(number),
        }
    }
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
    /// Admitted and denied requests of each gate, and of each participant's lookups.
    counts: BTreeMap<String, [u64; 2]>,
    /// The admitted payers of each rush.
    rushes: BTreeMap<u64, u64>,
    /// How often the bank gave each status.
    statuses: BTreeMap<u16, u64>,
}

impl Day {
    fn new(catalog: Catalog, is_limited: bool) -> Self {
        let clock = ManualClock::at(Time::from_micros(START_US));
        // Room for the references of every payer of a rush.
        let memory = MemoryOptions {
            reference_bytes: 512 << 20,
            mark_bytes: 512 << 20,
            ..MemoryOptions::default()
        };
        let engine = Engine::builder(catalog).clock(clock.clone()).memory(memory).build();
        let mut bank = DictSimulator::default();
        for (participant, category) in PARTICIPANTS {
            bank.set_category(0, participant, category);
            // As if it had had the category for long.
            bank.fill(participant);
            state_category(&engine, participant, &category.to_string());
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
            counts: BTreeMap::new(),
            rushes: BTreeMap::new(),
            statuses: BTreeMap::new(),
        };
        operations::begin(&mut day);
        rushes::begin(&mut day);
        for participant in 0..PARTICIPANTS.len() {
            day.at(0, DayStep::Poll(participant));
        }
        for participant in 0..BUSY {
            for payer in 0..PAYERS.len() {
                // Honest callers, careless ones and scanners; some pause for a second, some
                // minutes.
                let unknown = [2, 15, 90][(participant + payer) % 3];
                let pause = Some([1, 20, 120][payer % 3]);
                let payer = Payer::Known(payer);
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
                let status = match self.below(100) {
                    roll if roll < caller.unknown => 404,
                    99 => self.error(),
                    _ => 200,
                };
                let status = self.bank.get_entry(self.now, &lookup, status);
                *self.statuses.entry(status).or_default() += 1;
                let way = self.way();
                self.at(way, DayStep::Answer { caller, lookup, ticket, status });
            }
            DayStep::Answer { caller, lookup, ticket, status } => {
                self.settle(&ticket, Some(status));
                if status == 200 && self.below(100) < 70 {
                    let paid = SECOND_US * (1 + self.below(60) as i64);
                    self.at(paid, DayStep::Pay(lookup));
                }
                if let Some(pause) = caller.pause {
                    let pause = self.below(2 * pause * 1_000) as i64 * 1_000;
                    self.at(pause, DayStep::Ask(caller));
                }
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
            DayStep::TakeOver { participant, sent, xml } => self.take_over(participant, sent, &xml),
            DayStep::Assign { participant, category } => {
                self.bank.set_category(self.now, PARTICIPANTS[participant].0, category);
            }
            DayStep::Rush(rush) => self.rush(rush),
            DayStep::Operation(step) => self.operate(step),
        }
    }

    /// An error of the bank: its own, or one of the request.
    fn error(&mut self) -> u16 {
        [400, 410, 500, 503][self.below(4) as usize]
    }

    /// Notes whether a request was admitted.
    fn count(&mut self, what: &str, allowed: bool) {
        self.counts.entry(what.to_owned()).or_default()[usize::from(!allowed)] += 1;
    }

    fn take_over(&mut self, participant: usize, sent: Time, xml: &str) {
        let participant = PARTICIPANTS[participant].0;
        if let Some(category) = element(xml, "Category") {
            state_category(&self.engine, participant, &category);
        }
        let subject = Subject::from([("participant", participant)]);
        let states = read_states(xml);
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

    fn ask(&mut self, caller: Caller) {
        self.number += 1;
        let is_contact = self.below(2) == 0;
        let lookup = Lookup {
            participant: PARTICIPANTS[caller.participant].0.to_owned(),
            payer: caller.payer.number(),
            is_contact,
            reference: format!("E{}", self.number),
        };
        let gate = if is_contact { "getEntry.EMAIL" } else { "getEntry.CPF" };
        let subject = [("participant", &*lookup.participant), ("payer", &*lookup.payer)];
        let check = Check::new(gate, subject).reference(&lookup.reference);
        let decision = self.engine.check(&check).unwrap();
        drop(check);
        let group = format!("lookups of {}", lookup.participant);
        self.count(&group, decision.allowed);
        if self.is_limited && !decision.allowed {
            self.denied += 1;
            if caller.pause.is_none() {
                return;
            }
            // At the announced instant, or later.
            let wait = decision.retry_after().map_or(SECOND_US, |wait| wait.as_micros() as i64);
            let more = if self.below(2) == 0 { 0 } else { self.below(30 * 1_000_000) as i64 };
            return self.at(wait + more, DayStep::Ask(caller));
        }
        let ticket = decision.ticket.unwrap_or_default().to_string();
        let way = self.way();
        self.at(way, DayStep::Arrive { caller, lookup, ticket });
    }

    /// Without a status, the answer was lost on its way.
    fn settle(&mut self, ticket: &str, status: Option<u16>) {
        if !ticket.is_empty() {
            let outcome = status.map(Outcome::status).unwrap_or_default();
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
        let status = if xml.is_empty() { 429 } else { 200 };
        self.settle(&decision.ticket.unwrap_or_default(), Some(status));
        if status == 200 {
            let way = self.way();
            self.at(way, DayStep::TakeOver { participant, sent, xml });
        }
    }
}

fn state_category(engine: &Engine, participant: &str, category: &str) {
    engine.state_facts(None, "participant", participant, &[("category", category)]).unwrap();
}

fn preset(margin: Option<&str>) -> Catalog {
    let text = include_str!("../../../presets/dict/catalog.toml");
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
    println!("admitted and denied: {:?}\nanswers: {:?}", day.counts, day.statuses);
    assert_eq!(refusals, 0);
    // The day was no quiet one: callers met their limits, and the bank had much to do.
    assert!(requests > 100_000 && denied > 20_000, "{requests} {denied}");
    for (what, [admitted, denied]) in &day.counts {
        assert!(*admitted > 0 && *denied > 0, "{what}: {admitted} admitted, {denied} denied");
    }
    // The worker asks for the list itself, within its budget.
    assert_eq!(day.counts.len(), PARTICIPANTS.len() + operations::OPERATIONS.len());
    for status in [200, 400, 404, 410, 500, 503] {
        assert!(day.statuses.contains_key(&status), "{status}: {:?}", day.statuses);
    }
    let [before, risen, fallen] = rushes::ASSIGNED.map(|rush| day.admitted_by(rush));
    assert!(before < 250 && risen > 5_000 && fallen < 1_000, "{before} {risen} {fallen}");
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
