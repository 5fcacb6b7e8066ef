//! What a document asks to be done: files to write and commands to run, in order.
//!
//! Only fenced blocks speak; prose never does. Must not run anything.

use anyhow::{Context, Result, bail, ensure};

/// One thing to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Put a block into a file.
    File { name: String, body: String },
    /// Run a command and compare.
    Command(Command),
    /// Start a server, which stays until the document ends, and compare what it printed.
    Serve(Command),
    /// Start a PostgreSQL, which stays until the document ends.
    Postgres,
}

/// A command with the output the document promises.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    /// Line in the document, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) expected: Vec<String>,
}

impl Step {
    pub(crate) fn command(&self) -> Option<&Command> {
        match self {
            Step::Command(command) | Step::Serve(command) => Some(command),
            Step::File { .. } | Step::Postgres => None,
        }
    }
}

impl Command {
    /// `echo $?` right after a command is how a document says that it fails on purpose.
    pub(crate) fn shows_status(&self) -> bool {
        self.text.trim() == "echo $?"
    }
}

struct Block<'a> {
    info: &'a str,
    /// Line of the first line inside, from 1.
    line: usize,
    lines: Vec<&'a str>,
}

pub(crate) fn parse(markdown: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for block in blocks(markdown)? {
        steps.extend(read(&block).with_context(|| format!("the block at line {}", block.line))?);
    }
    Ok(steps)
}

/// The body of the only block with a tag, such as `gateway=nginx`.
pub(crate) fn block_with_tag(markdown: &str, tag: &str) -> Result<String> {
    let blocks = blocks(markdown)?;
    let has_tag = |block: &&Block| block.info.split(',').any(|own| own.trim() == tag);
    let mut found = blocks.iter().filter(has_tag);
    let block = found.next().with_context(|| format!("no block is tagged `{tag}`"))?;
    ensure!(found.next().is_none(), "more than one block is tagged `{tag}`");
    Ok(body(block))
}

/// Fenced blocks; a fence is closed by one at least as long, so longer ones may quote shorter.
fn blocks(markdown: &str) -> Result<Vec<Block<'_>>> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((start, line)) = lines.next() {
        let Some((fence, info)) = opening(line) else { continue };
        let mut inside = Vec::new();
        loop {
            let (_, line) = lines.next().with_context(|| format!("line {}: no end", start + 1))?;
            if line.starts_with(fence) && line.trim_end().bytes().all(|byte| byte == b'`') {
                break;
            }
            inside.push(line);
        }
        blocks.push(Block { info, line: start + 2, lines: inside });
    }
    Ok(blocks)
}

fn opening(line: &str) -> Option<(&str, &str)> {
    let marks = line.len() - line.trim_start_matches('`').len();
    (marks >= 3).then(|| (&line[..marks], line[marks..].trim()))
}

fn read(block: &Block) -> Result<Vec<Step>> {
    let mut tags = block.info.split(',').map(str::trim);
    let language = tags.next().unwrap_or_default();
    let tags: Vec<&str> = tags.collect();
    if language == "console" {
        return match tags[..] {
            [] => commands(block),
            ["norun"] => Ok(Vec::new()),
            ["serve"] => server_steps(block),
            ["postgres"] => Ok(vec![Step::Postgres]),
            _ => bail!(
                "`{}`: a console block is run, or tagged norun, serve or postgres",
                block.info
            ),
        };
    }
    let is_known = |tag: &str| tag.starts_with("file=") || tag.starts_with("gateway=");
    // The tags of a Rust block are rustdoc's.
    let unknown = tags.iter().find(|tag| language != "rust" && !is_known(tag));
    if let Some(tag) = unknown {
        bail!("`{tag}`: a block that is not console is tagged file=NAME or gateway=NAME");
    }
    let Some(name) = tags.iter().find_map(|tag| tag.strip_prefix("file=")) else {
        return Ok(Vec::new());
    };
    ensure!(is_plain(name), "`{name}` is not a plain relative file name");
    Ok(vec![Step::File { name: name.to_owned(), body: body(block) }])
}

fn body(block: &Block) -> String {
    block.lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Names that need no quoting and cannot leave the directory.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let parts = name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    parts && !name.starts_with('-') && name.chars().all(plain)
}

/// `$ ` starts a command; a trailing backslash or a following `> ` continues it.
fn commands(block: &Block) -> Result<Vec<Step>> {
    let mut commands: Vec<Command> = Vec::new();
    let mut in_command = false;
    for (index, line) in block.lines.iter().enumerate() {
        if let Some(text) = line.strip_prefix("$ ") {
            let line = block.line + index;
            commands.push(Command { line, text: text.to_owned(), expected: Vec::new() });
            in_command = true;
            continue;
        }
        let Some(command) = commands.last_mut() else {
            bail!("output before any command; commands start with `$ `");
        };
        let quoted = line.strip_prefix("> ").or((*line == ">").then_some(""));
        in_command &= quoted.is_some() || command.text.ends_with('\\');
        if in_command {
            command.text = format!("{}\n{}", command.text, quoted.unwrap_or(line));
        } else {
            command.expected.push((*line).to_owned());
        }
    }
    ensure!(!commands.is_empty(), "a console block without a command");
    Ok(commands.into_iter().map(Step::Command).collect())
}

/// The steps of a server that runs until the end of the document.
fn server_steps(block: &Block) -> Result<Vec<Step>> {
    let mut steps = commands(block)?;
    ensure!(steps.len() == 1, "a block tagged serve has one command, and this has {}", steps.len());
    let Some(Step::Command(command)) = steps.pop() else { return Ok(steps) };
    let start = format!("{SERVE} ");
    let plain = command.text == SERVE || command.text.starts_with(&start);
    ensure!(plain, "a block tagged serve starts with `{SERVE}`");
    Ok(vec![Step::Serve(command)])
}

/// How a server is started in a document.
pub(crate) const SERVE: &str = "catraca serve";

#[cfg(test)]
mod tests {
    use super::*;

    fn console(body: &str) -> Vec<Command> {
        let steps = parse(&format!("# T\n\n```console\n{body}\n```\n")).unwrap();
        steps
            .into_iter()
            .filter_map(|step| match step {
                Step::Command(command) => Some(command),
                Step::File { .. } | Step::Serve(_) | Step::Postgres => None,
            })
            .collect()
    }

    #[test]
    fn a_server_is_one_command_of_a_known_shape() {
        let serve = |body: &str| parse(&format!("```console,serve\n{body}\n```\n"));
        let steps = serve("$ catraca serve --config a.toml\nCatraca\n...").unwrap();
        assert!(matches!(&steps[..], [Step::Serve(command)] if command.expected.len() == 2));
        assert!(serve("$ catraca serve\n$ true").is_err());
        assert!(serve("$ sleep 1000").is_err());
    }

    #[test]
    fn commands_keep_their_line_and_their_output() {
        let commands = console("$ echo a\na\n\n$ true\n$ echo b");
        let lines: Vec<usize> = commands.iter().map(|command| command.line).collect();
        assert_eq!(lines, [4, 7, 8]);
        assert_eq!(commands[0].expected, ["a", ""]);
        assert!(commands[1].expected.is_empty());
    }

    #[test]
    fn a_command_continues_after_a_backslash_or_with_a_prompt() {
        let commands = console("$ echo a \\\n  b\na b\n$ cat <<E\n> x\n>\n> E\nx\n> y");
        assert_eq!(commands[0].text, "echo a \\\n  b");
        assert_eq!(commands[0].expected, ["a b"]);
        assert_eq!(commands[1].text, "cat <<E\nx\n\nE");
        assert_eq!(commands[1].expected, ["x", "> y"]);
    }

    #[test]
    fn files_are_written_in_their_place_and_other_blocks_ignored() {
        let text = "```toml,file=a/b.toml\nx = 1\n```\n```rust\nfn a() {}\n```\n\
                    ```console,norun\n$ rm -rf .\n```\n```console\n$ cat a/b.toml\nx = 1\n```\n";
        let steps = parse(text).unwrap();
        assert_eq!(steps.len(), 2);
        let file = Step::File { name: "a/b.toml".to_owned(), body: "x = 1\n".to_owned() };
        assert_eq!(steps[0], file);
    }

    #[test]
    fn a_tagged_block_is_found_if_there_is_one_of_it() {
        let text = "```nginx,gateway=a\nlisten 1;\n```\n\
                    ```nginx,gateway=b\n```\n```nginx,gateway=b\n```\n";
        assert!(parse(text).unwrap().is_empty());
        assert_eq!(block_with_tag(text, "gateway=a").unwrap(), "listen 1;\n");
        assert!(
            block_with_tag(text, "gateway=b").is_err()
                && block_with_tag(text, "gateway=c").is_err()
        );
    }

    #[test]
    fn a_longer_fence_quotes_a_shorter_one() {
        assert!(parse("````\n```console\n$ false\n```\n````\n").unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_meant_is_an_error() {
        let bad = [
            "```console,no-run\n$ a\n```\n",
            "```console\na\n```\n",
            "```console\n```\n",
            "```console\n$ a\n",
            "```nginx,gatewy=a\n```\n",
            "```toml,file=../a\n```\n",
            "```toml,file=/a\n```\n",
            "```toml,file=a b\n```\n",
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
