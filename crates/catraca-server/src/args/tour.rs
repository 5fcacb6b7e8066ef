//! The first thing that most people read of us: the verbs in groups, and a tour through them.

/// The verbs in groups, as a tour goes through them.
pub const GROUPS: &str = "\
Write and try policies:
  lint         Say everything that is wrong with a catalog, and where
  test         Run scenarios: steps at instants, with the decisions they must get
  explain      Say which policies a request meets, with which key, tier and price, and why
  simulate     Replay a history in virtual time and show what the catalog makes of it

Serve:
  serve        Serve decisions over HTTP; this is what happens without a verb
  keygen       Make a key for callers, and the lines that let it in
  backup       Copy the records to a file, while the server goes on
  restore      Put a backup of the records back

Ask a server:
  check        May this caller pass? Decide and charge
  peek         The same, and nothing is charged
  settle       Tell what came of a check, so that it is charged its real cost
  credit       Give back what a late event earns

Operate a server:
  blocks       Who is blocked, until when and why; block and release
  blocklist    Addresses and values that never pass
  allowlist    Addresses and values that always pass
  facts        Categories, plans, known tokens: what chooses a tier
  locks        Leases in force: who holds what, until when; ending them
  slots        Ranges of time in calendars: what is free, holding and confirming
  reset        Forget counters, block and level of one key, or of everybody under a policy
  selftest     Have the server try limits, locks and bookings on itself
  stats        Totals that add up, and who is blocked most often
  audit        What operators did: when, who, what and why
  events       What happens, as it happens
  config       The catalog in force, its reload, and the kill switch
  whoami       Which operator and address the server sees, and why
  privacy      All that is known of somebody, to hand out or to erase

About this program:
  completions  A script that completes verbs and options in a shell
  man          The manual pages
  openapi      Print the description of the HTTP API, OpenAPI 3.1, to make clients of
  help         This, or more about one verb";

/// Where everything goes.
pub const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}{after-help}

Options:
{options}
";

/// What a newcomer reads below the verbs.
pub const TOUR: &str = "\
A tour:
  catraca                                             serve a demo, and print a curl to paste
  catraca lint shop.toml                              is the catalog right?
  catraca explain -c shop.toml login ip=198.51.100.7  what counts for this caller, and why?
  catraca test shop.scenario.toml                     does it still do what we agreed on?
  catraca simulate -c shop.toml -f combined access.log
                                                      what would it have done last Tuesday?
  catraca simulate -c shop.toml --compare new.toml -f combined access.log --report out.html
                                                      what would this change do, on a page to send?
  catraca serve --config shop.toml                    decide for real, on 127.0.0.1:7878
  catraca keygen --role check                         a key for a caller, shown once
  catraca check login ip=198.51.100.7                 may this caller pass?
  catraca blocks list ip=198.51.100.7                 is this one blocked, until when, why?
  catraca blocks release ip=198.51.100.7              let it go
  catraca config mode login off                       the kill switch

Exit codes: 0 yes, 1 no (denied, lint errors, nothing there), 2 the command line or its input is
wrong, 3 the server cannot be reached, 4 it was done and standard output cannot be written.
`catraca help VERB` says more.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Args;
    use super::GROUPS;

    #[test]
    fn every_verb_is_in_a_group_with_its_own_words() {
        Args::command().debug_assert();
        let command = Args::command();
        for verb in command.get_subcommands() {
            let about = verb.get_about().unwrap().to_string();
            let line = format!("\n  {:<12} {about}", verb.get_name());
            assert!(GROUPS.contains(&line), "{line}");
        }
        let listed = GROUPS.lines().filter(|line| line.starts_with("  ")).count();
        // `help` is added when the command line is read.
        assert_eq!(listed, command.get_subcommands().count() + 1);
    }
}
