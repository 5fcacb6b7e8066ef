//! The text of `catraca --help`: the verbs in groups, and examples.

/// The verbs in groups, with the same texts as in `CliVerb`.
pub const GROUPS: &str = "\
Write and test policies:
  init         Write the catalog, scenarios and README of a preset into a folder
  presets      List the presets of `catraca init`
  lint         Report every error in a catalog, with its position
  test         Run scenarios: requests at given times, with the decisions they must get
  explain      Show which policies apply to a request, with which key, tier and price, and why
  simulate     Replay a history in virtual time and show what the catalog decides
  types        Print the gates of a catalog and their attributes as TypeScript or Go
  policies     Print the policies of a catalog as a table, for people or for a document
  variables    Print the variables of a catalog with their values
  hash         Hash a value, so that a catalog can state facts about it without containing it
  import       Take over limits and tables of a limiter that is written in TypeScript
  export       Print policies in the form that `catraca import` reads

Serve:
  serve        Serve decisions over HTTP; the default without a verb
  keygen       Make an API key, and the catalog lines that accept it
  backup       Copy the records to a file while the server runs
  restore      Restore the records from a backup

Call a server:
  check        Check whether a caller may pass, and charge it
  peek         Check without charging
  settle       Report the outcome of a check, so that its real cost is charged
  credit       Report a later event that gives units back

Operate a server:
  inspect      All there is to know of a caller: policies, lists, facts and blocks
  blocks       List, add and release blocks
  blocklist    Addresses and values that are always denied
  allowlist    Addresses and values that are always allowed
  facts        Facts about attribute values, such as plans and categories, that select tiers
  locks        Acquire, renew, list and release the leases of locks
  slots        Bookings in calendars: list free time, hold, confirm, move, cancel
  reset        Clear counters, block and ban level of one key, or of all keys of a policy
  selftest     Make the server test its limits, locks and bookings
  stats        Decision totals, and the subjects blocked most often
  conformance  Which programs use which policy, and which limits are outside the catalog
  audit        The acts of operators: when, who, what and why
  events       Follow denials, blocks and other events live
  config       Show or reload the active catalog; override a policy's mode
  whoami       Which operator, role and address the server sees, and why
  privacy      Export or erase the data stored about a person

About this program:
  completions  Print a shell completion script
  man          Print or write the manual pages
  openapi      Print the OpenAPI 3.1 description of the HTTP API
  help         This text, or the help of one verb";

/// The layout for clap: the groups and examples come as `after-help`.
pub const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}{after-help}

Options:
{options}
";

/// Examples in the order of a first use, below the verbs.
pub const EXAMPLES: &str = "\
Examples:
  catraca                                             serve a demo, and print a curl to paste
  catraca init window-block                           a ready catalog, to copy and change
  catraca lint shop.toml                              is the catalog valid?
  catraca explain -c shop.toml login ip=198.51.100.7  which policies apply, and why?
  catraca test shop.scenario.toml                     are the decisions as expected?
  catraca simulate -c shop.toml -f combined access.log
                                                      what would it have decided last week?
  catraca simulate -c shop.toml --compare new.toml -f combined access.log --report out.html
                                                      the effect of a change, as an HTML report
  catraca serve -c shop.toml                          start the server, on 127.0.0.1:7878
  catraca keygen --role check                         an API key, printed once
  catraca check login ip=198.51.100.7                 may this caller pass?
  catraca blocks list ip=198.51.100.7                 is it blocked, until when and why?
  catraca blocks release ip=198.51.100.7              end its blocks
  catraca config mode login off                       the kill switch

Exit codes: 0 yes, 1 no (denied, lint errors, not found), 2 the command line or its input is
invalid, 3 the server cannot be reached, 4 it was done but standard output cannot be written.
`catraca help VERB` shows the options and examples of a verb.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::CliArgs;
    use super::GROUPS;

    #[test]
    fn every_verb_is_in_a_group_with_its_own_text() {
        CliArgs::command().debug_assert();
        let command = CliArgs::command();
        for verb in command.get_subcommands() {
            let about = verb.get_about().unwrap().to_string();
            let line = format!("\n  {:<12} {about}", verb.get_name());
            assert!(GROUPS.contains(&line), "{line}");
        }
        let listed = GROUPS.lines().filter(|line| line.starts_with("  ")).count();
        // clap adds `help` when it parses, so it is not among the subcommands here.
        assert_eq!(listed, command.get_subcommands().count() + 1);
    }
}
