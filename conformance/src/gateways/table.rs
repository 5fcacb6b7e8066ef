//! The table of gateways and attacks.

use super::attacks::Attack;

/// How an attack ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AttackOutcome {
    /// Answered with this status, and the application saw nothing; 0 is a closed connection.
    Refused(u16),
    /// Passed as a request that no application takes for a guarded one.
    Harmless,
    /// The application may have served a guarded request.
    Passed,
    /// An error of the gateway or of Catraca.
    Failed(u16),
}

impl AttackOutcome {
    pub(crate) fn is_good(self) -> bool {
        matches!(self, AttackOutcome::Refused(_) | AttackOutcome::Harmless)
    }

    fn cell(self) -> String {
        match self {
            AttackOutcome::Refused(0) => "closed".to_owned(),
            AttackOutcome::Refused(status) => status.to_string(),
            AttackOutcome::Harmless => "other".to_owned(),
            AttackOutcome::Passed => "PASSED".to_owned(),
            AttackOutcome::Failed(status) => format!("FAILED {status}"),
        }
    }
}

/// The outcomes of one gateway, in the order of the attacks.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) outcomes: Vec<AttackOutcome>,
}

const LEGEND: &str = "
(400, 429: refused with this status; other: the application got a page that is not guarded, and no
header that replaces it; +gate: the call names its gate)
";

/// The table as text.
pub(crate) fn table(attacks: &[Attack], columns: &[Column]) -> String {
    let widest = attacks.iter().map(|attack| attack.name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{:8}  {:widest$}", "aim", "attack");
    for column in columns {
        text.push_str(&format!("  {}", column.name));
    }
    for (index, attack) in attacks.iter().enumerate() {
        text.push_str(&format!("\n{:8}  {:widest$}", attack.aim, attack.name));
        for column in columns {
            let cell = column.outcomes.get(index).map_or("-".to_owned(), |own| own.cell());
            text.push_str(&format!("  {cell:width$}", width = column.name.chars().count()));
        }
    }
    text.push_str(LEGEND);
    text
}
