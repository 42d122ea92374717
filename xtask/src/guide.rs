//! The outputs in the user's guide (`docs/guide`) and in docs/fix.md, made by running what they say.
//!
//! A page has marks, each on a line of its own, and behind each mark the block that was made from it:
//!
//! * `<!-- fixture: families/mutex as a.c, b.c -->` copies the buggy and the fixed program of a fixture,
//!   without the annotations for tests; it has no block;
//! * `<!-- show: a.c -->` shows a file;
//! * `<!-- run: COMMAND -->` runs a command with `sh` and shows it with what it prints. A command that
//!   fails fails the task; of `symbiosis` a status that says what a run did is none.

use crate::programs;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Fills in all pages. With `--check`, writes nothing and fails when a line that does not depend on the
/// run (the cause, what a replay came to) is another one.
pub fn run(args: &[String]) -> Result<()> {
    let check = args.iter().any(|arg| arg == "--check");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let symbiosis = std::fs::canonicalize(programs::build(&root)?)?;
    let mut pages: Vec<PathBuf> = std::fs::read_dir(root.join("docs/guide/src"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.push(root.join("docs/fix.md"));
    for path in pages {
        let old = std::fs::read_to_string(&path)?;
        let new = filled(&old, &root, &symbiosis)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        if check {
            let (before, now) = (lasting(&old), lasting(&new));
            if before != now {
                let name = path.display();
                return Err(format!("{name} says {before:#?}, and it is {now:#?}").into());
            }
        } else if old != new {
            std::fs::write(&path, new)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}

/// The page with new blocks.
fn filled(page: &str, root: &Path, symbiosis: &Path) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let tools = directory.path().join("tools");
    let work = directory.path().join("work");
    std::fs::create_dir(&tools)?;
    std::fs::create_dir(&work)?;
    std::os::unix::fs::symlink(symbiosis, tools.join("symbiosis"))?;
    let mut text = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let Some((kind, body)) = mark(line) else { continue };
        let block = match kind {
            "fixture" => {
                copy(root, body, &work)?;
                continue;
            }
            "show" => show(&work, body)?,
            "run" => perform(&work, &tools, body)?,
            other => return Err(format!("unknown mark `{other}`").into()),
        };
        // The old block goes.
        let mut rest = lines.clone();
        if rest.by_ref().find(|line| !line.is_empty()).is_some_and(|line| line.starts_with("```")) {
            let _ = rest.by_ref().find(|line| *line == "```");
            lines = rest;
        }
        write!(text, "\n{block}")?;
    }
    Ok(text)
}

/// `<!-- KIND: BODY -->`.
fn mark(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")
}

fn copy(root: &Path, body: &str, work: &Path) -> Result<()> {
    let (fixture, names) = body.split_once(" as ").ok_or("a fixture without names")?;
    let buggy = programs::source(&root.join("fixtures").join(fixture))?;
    let fixed = buggy.with_file_name(
        buggy.file_name().unwrap_or_default().to_string_lossy().replace("buggy", "fixed"),
    );
    for (source, name) in [buggy, fixed].iter().zip(names.split(", ")) {
        let text = std::fs::read_to_string(source)?;
        let plain = text.lines().filter(|line| !line.starts_with("//~"));
        let plain = plain.map(|line| line.split(" //~").next().unwrap_or_default());
        // What the bug is is for the reader to find out.
        let body = plain.skip_while(|line| !line.starts_with('#'));
        std::fs::write(work.join(name), body.map(|line| format!("{line}\n")).collect::<String>())?;
    }
    Ok(())
}

fn show(work: &Path, name: &str) -> Result<String> {
    let text = std::fs::read_to_string(work.join(name))?;
    let language = if name.ends_with(".c") { "c" } else { "cpp" };
    Ok(format!("```{language}\n{text}```\n"))
}

fn perform(work: &Path, tools: &Path, command: &str) -> Result<String> {
    /// All runs passed.
    const NO_FAILURE: i32 = 12;
    let path = std::env::var("PATH").unwrap_or_default();
    let out = Command::new("sh")
        .args(["-c", &format!("{{ {command}; }} 2>&1")])
        .current_dir(work)
        .env("PATH", format!("{}:{path}", tools.display()))
        .output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    // What comes through a pipe has the last command's status.
    if !out.status.success() && out.status.code() != Some(NO_FAILURE) {
        return Err(format!("`{command}` ended with {}:\n{text}", out.status).into());
    }
    let shown = command.split(" | ").next().unwrap_or(command);
    let text = text.replace(&format!("{}/", work.display()), "");
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    Ok(format!("```text\n$ {shown}\n{text}```\n"))
}

/// The lines that do not depend on the run, with numbers of threads left out.
fn lasting(page: &str) -> Vec<String> {
    let kept = ["cause: ", "repair 1: ", "reproduced ", "failure: ", "no longer possible: ", "$ "];
    let lines = page.lines().filter(|line| kept.iter().any(|start| line.starts_with(start)));
    let any = |line: &str| {
        let mut parts = line.split("t0.");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            text.push_str("t0.N");
            text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        text
    };
    lines.map(any).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_blocks_go_and_new_ones_come() {
        let page = "text\n\n<!-- run: echo new -->\n\n```text\n$ echo new\nold\n```\n\nmore\n";
        let root = Path::new("/");
        let new = filled(page, root, Path::new("/bin/true")).expect("it can be filled in");
        assert_eq!(new, page.replace("old", "new"));
        let again = filled(&new, root, Path::new("/bin/true")).expect("it can be filled in");
        assert_eq!(again, new);
    }

    #[test]
    fn a_mark_without_a_block_gets_one() {
        let page = "<!-- run: echo a; echo b -->\n<!-- run: echo c | cat -->\nend\n";
        let new =
            filled(page, Path::new("/"), Path::new("/bin/true")).expect("it can be filled in");
        assert!(new.contains("```text\n$ echo a; echo b\na\nb\n```\n"), "{new}");
        assert!(new.contains("```text\n$ echo c\nc\n```\nend\n"), "{new}");
    }

    #[test]
    fn a_command_that_fails_is_told() {
        let page = "<!-- run: echo why; exit 3 -->\n";
        let error = filled(page, Path::new("/"), Path::new("/bin/true")).expect_err("it fails");
        assert!(error.to_string().contains("why"), "{error}");
    }

    #[test]
    fn only_what_lasts_is_compared() {
        let page = "cause: t0.12 wrote `x`\n  1. t0.1 0x7f00\nreproduced 5 of 5: x\n";
        assert_eq!(lasting(page), ["cause: t0.N wrote `x`", "reproduced 5 of 5: x"]);
    }
}
