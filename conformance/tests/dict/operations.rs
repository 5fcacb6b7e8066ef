//! Callers of every operation that is no lookup: each asks for more than its bucket has.

use catraca::{Check, Decision};

use super::{Day, DayStep, PARTICIPANTS, SECOND_US};

/// A gate of each policy that is not about lookups, the policy's name at the bank, and its refill
/// in a minute at the participant that calls it. The worker's own gate is no such operation.
pub const OPERATIONS: [(&str, &str, i64); 27] = [
    ("getEntryStatistics", "ENTRIES_STATISTICS_READ", 2),
    ("createEntry", "ENTRIES_WRITE", 1_200),
    ("updateEntry", "ENTRIES_UPDATE", 600),
    ("getClaim", "CLAIMS_READ", 600),
    ("confirmClaim", "CLAIMS_WRITE", 1_200),
    ("listClaims.with_role", "CLAIMS_LIST_WITH_ROLE", 40),
    ("listClaims.without_role", "CLAIMS_LIST_WITHOUT_ROLE", 10),
    ("createSyncVerification", "SYNC_VERIFICATIONS_WRITE", 10),
    ("createCidSetFile", "CIDS_FILES_WRITE", 0),
    ("getCidSetFile", "CIDS_FILES_READ", 10),
    ("listCidSetEvents", "CIDS_EVENTS_LIST", 20),
    ("getEntryByCid", "CIDS_ENTRIES_READ", 1_200),
    ("getInfractionReport", "INFRACTION_REPORTS_READ", 600),
    ("createInfractionReport", "INFRACTION_REPORTS_WRITE", 1_200),
    ("listInfractionReports.with_role", "INFRACTION_REPORTS_LIST_WITH_ROLE", 40),
    ("listInfractionReports.without_role", "INFRACTION_REPORTS_LIST_WITHOUT_ROLE", 10),
    ("checkKeys", "KEYS_CHECK", 70),
    ("getRefund", "REFUNDS_READ", 1_200),
    ("createRefund", "REFUNDS_WRITE", 2_400),
    ("listRefunds.with_role", "REFUND_LIST_WITH_ROLE", 40),
    ("listRefunds.without_role", "REFUND_LIST_WITHOUT_ROLE", 10),
    ("getFraudMarker", "FRAUD_MARKERS_READ", 600),
    ("createFraudMarker", "FRAUD_MARKERS_WRITE", 1_200),
    ("listFraudMarkers", "FRAUD_MARKERS_LIST", 600),
    ("getPersonStatistics", "PERSONS_STATISTICS_READ", 12_000),
    ("getBucketState", "POLICIES_READ", 60),
    ("listEventNotifications", "EVENT_LIST", 40),
];

/// A burst is over after so many requests.
const BURST: u64 = 1_000;
/// What a bucket of the bank has at the start, if it is larger: other programs used the rest up.
/// More than the hundredth part of the largest bucket, which stays in reserve.
const TOKENS: i64 = 800;
/// The worker has taken the figures of the bank over.
const START_US: i64 = SECOND_US;
const BURSTS: i64 = 4;
const PARTICIPANT: &str = PARTICIPANTS[0].0;

/// A request on its way.
pub enum OperationStep {
    /// So many of a burst are left.
    Ask {
        operation: usize,
        left: u64,
    },
    /// A denied caller comes back.
    Return {
        operation: usize,
    },
    Arrive {
        operation: usize,
        ticket: String,
    },
    Answer {
        ticket: String,
        status: Option<u16>,
    },
}

/// Drains the large buckets of the bank, and adds the bursts of all operations to the day.
pub fn begin(day: &mut Day) {
    for (operation, (_, policy, _)) in OPERATIONS.into_iter().enumerate() {
        day.bank.drain(0, policy, PARTICIPANT, TOKENS);
        for burst in 0..BURSTS {
            let at = START_US + burst * 5 * 3_600 * SECOND_US;
            let ask = OperationStep::Ask { operation, left: BURST };
            day.at(at, DayStep::Operation(ask));
        }
    }
}

impl Day {
    pub fn operate(&mut self, step: OperationStep) {
        match step {
            OperationStep::Ask { operation, left } => {
                self.ask_operation(operation, true);
                if left > 1 {
                    // Four times the refill, and twenty a second more.
                    let interval = 60 * SECOND_US / (4 * OPERATIONS[operation].2 + 1_200);
                    let next = OperationStep::Ask { operation, left: left - 1 };
                    self.at(interval, DayStep::Operation(next));
                }
            }
            OperationStep::Return { operation } => self.ask_operation(operation, false),
            OperationStep::Arrive { operation, ticket } => {
                let wanted = match self.below(20) {
                    0 => self.error(),
                    _ => 200,
                };
                let policy = OPERATIONS[operation].1;
                let status = self.bank.operate(self.now, policy, PARTICIPANT, wanted);
                *self.statuses.entry(status).or_default() += 1;
                // One answer of fifty is lost.
                let status = (self.below(50) > 0).then_some(status);
                let way = self.way();
                self.at(way, DayStep::Operation(OperationStep::Answer { ticket, status }));
            }
            OperationStep::Answer { ticket, status } => self.settle(&ticket, status),
        }
    }

    fn ask_operation(&mut self, operation: usize, may_return: bool) {
        let gate = OPERATIONS[operation].0;
        let check = Check::new(gate, [("participant", PARTICIPANT)]);
        let decision: Decision = self.engine.check(&check).unwrap();
        drop(check);
        self.count(gate, decision.allowed);
        if self.is_limited && !decision.allowed {
            self.denied += 1;
            let wait = decision.retry_after().map_or(SECOND_US, |wait| wait.as_micros() as i64);
            if may_return {
                self.at(wait, DayStep::Operation(OperationStep::Return { operation }));
            }
            return;
        }
        let ticket = decision.ticket.unwrap_or_default().to_string();
        let way = self.way();
        self.at(way, DayStep::Operation(OperationStep::Arrive { operation, ticket }));
    }
}
