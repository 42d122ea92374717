//! The session for a gdb without Python. An error ends a script of gdb, so what may fail (a variable
//! that was optimised away, a source that is not here) stands at the end of a command of its own.

use super::{Session, Stop, fails_by_exit, failure_in_words};
use std::fmt::Write as _;

/// The definitions: `symbiosis-stop` shows where the program stopped.
pub fn script(session: &Session<'_>) -> String {
    let mut text = String::from("break *symbiosis_mark\nset $symbiosis_mark = $bpnum\n");
    text.push_str("commands\nsilent\nsymbiosis-header\nsymbiosis-source\nend\n");
    let mut definitions = String::from("define symbiosis-header\n");
    for stop in &session.marked.stops {
        let _ = writeln!(definitions, "if (unsigned long)$rdi == {}", stop.mark);
        let _ = writeln!(definitions, "echo \\n{}\\n", quoted(&stop.header()));
        if !stop.values().is_empty() {
            let _ = writeln!(definitions, "echo \\040\\040\\040\\040{}\\n", quoted(&stop.values()));
        }
        definitions.push_str("end\n");
    }
    definitions.push_str("end\ndefine symbiosis-source\n");
    for stop in &session.marked.stops {
        let _ = writeln!(definitions, "if (unsigned long)$rdi == {}", stop.mark);
        definitions.push_str(&source(stop));
        definitions.push_str("end\n");
    }
    definitions.push_str("end\n");
    if fails_by_exit(session) {
        definitions.push_str("break _exit\n");
    }
    definitions + &text
}

/// Selecting a frame changes the registers, so all that depends on them is decided before.
fn source(stop: &Stop) -> String {
    let function = &stop.location.function;
    if function.is_empty() || function.contains(char::is_whitespace) {
        return String::new();
    }
    let mut text = format!("frame function {function}\n");
    if let Some(object) = &stop.object {
        let _ = writeln!(text, "echo \\040\\040\\040\\040now: {} =\\040", quoted(object));
        let _ = writeln!(text, "output {object}\necho \\n");
    }
    text
}

/// What gdb does with the definitions. Each is a command of its own, so that one that fails does not
/// keep the next ones from being tried.
pub fn commands(session: &Session<'_>) -> Vec<String> {
    let mut lines = vec!["run".to_owned()];
    if session.batch {
        let marks = session.marked.stops.iter().map(|stop| stop.mark).max().unwrap_or(0);
        lines.extend((0..marks).map(|_| "continue".to_owned()));
        if let Some(failure) = session.failure {
            let words = quoted(&failure_in_words(failure));
            lines.push(format!("echo \\nthe failure, as recorded: {words}\\n"));
        }
        lines.extend(["backtrace".to_owned(), "kill".to_owned()]);
    }
    lines.into_iter().flat_map(|line| ["-ex".to_owned(), line]).collect()
}

/// For `echo`.
fn quoted(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
