//! Regression tests from failing schedules (ConCrash, section 3.3: generated test cases that carry
//! the logical thread schedule).
//!
//! A test is a program in plain C that runs the user's program under the schedule and judges how it
//! ends. It comes with what CMake and make need to run it. Everything in here is a function of the
//! solution, the manifest and the schedule's text; only [`write`] touches the disk.

mod error;
mod quote;

pub use error::TestCaseError;

use render::Solution;
use render::lanes::{describe, place};
use render::solution::Failure;
use std::path::{Path, PathBuf};
use trace_format::layout::REPORT_MAGIC;
use trace_format::{FailureKind, Manifest, Outcome};

/// The status with which a test says that the program under test is not instrumented: automake's,
/// and CTest's `SKIP_RETURN_CODE` in the generated `CMakeLists.txt`.
pub const SKIPPED: i32 = 77;
/// The longest text that is looked for in the program's output, in bytes.
const OUTPUT_LIMIT: usize = 1000;

const TEST: &str = include_str!("templates/test.c");
const CMAKE: &str = include_str!("templates/CMakeLists.txt");
const MAKE: &str = include_str!("templates/Makefile");
const README: &str = include_str!("templates/README.md");

/// What a test is made of.
#[derive(Clone, Copy, Debug)]
pub struct TestCase<'a> {
    /// The test's name, see [`check_name`].
    pub name: &'a str,
    /// The answer of `solve`.
    pub solution: &'a Solution,
    /// The sentence about the cause, where it is known; else what the solution says of the root cause.
    pub cause: Option<&'a str>,
    /// Of the failing run.
    pub manifest: &'a Manifest,
    /// The schedule, in the form of `docs/schedule-format.md`.
    pub schedule: &'a str,
    /// The program to test when the test's user names none.
    pub program: Option<&'a Path>,
}

/// A file of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name in the test's directory.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Checks that a name can stand in file names, and in names of CMake and make.
///
/// # Errors
/// When it is empty or has characters other than letters, digits, `_` and `-`, or begins with `-`.
pub fn check_name(name: &str) -> Result<(), TestCaseError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        return Err(TestCaseError::Name { name: name.to_owned() });
    }
    Ok(())
}

/// Checks that a program which fails as the recorded one did can be told from one that does not.
///
/// # Errors
/// When it does not fail by itself.
pub fn check_failure(manifest: &Manifest) -> Result<(), TestCaseError> {
    match manifest.failure.as_ref().map(|failure| failure.kind) {
        Some(FailureKind::Reached) => Err(TestCaseError::Reached),
        _ => Ok(()),
    }
}

/// The name of a test that nobody named: that of the program, as far as [`check_name`] lets it.
#[must_use]
pub fn default_name(manifest: &Manifest) -> String {
    let path = Path::new(&manifest.executable.path);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_default();
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = stem.chars().map(fit).collect();
    let name = name.trim_start_matches('-');
    if name.is_empty() { "program".to_owned() } else { name.to_owned() }
}

/// The files of a test, in a fixed order.
///
/// # Errors
/// When the name does not fit, the solution has no failing schedule, or the program does not fail by itself.
pub fn files(case: &TestCase<'_>) -> Result<Vec<File>, TestCaseError> {
    check_name(case.name)?;
    check_failure(case.manifest)?;
    let failure = case.solution.failure.as_ref().ok_or(TestCaseError::NoFailure)?;
    let words = Words::new(case, failure);
    let file = |name: String, text| File { name, text };
    Ok(vec![
        file(format!("{}_test.c", case.name), fill(TEST, |key| words.in_c(key))),
        file("CMakeLists.txt".to_owned(), fill(CMAKE, |key| words.in_cmake(key))),
        file("Makefile".to_owned(), fill(MAKE, |key| words.in_make(key))),
        file("README.md".to_owned(), fill(README, |key| words.in_markdown(key))),
        file("schedule.txt".to_owned(), with_newline(case.schedule)),
    ])
}

/// Writes the files into a directory, which is made when it is not there.
///
/// # Errors
/// When one of the files is there already, or cannot be written.
pub fn write(directory: &Path, files: &[File]) -> Result<(), TestCaseError> {
    let paths: Vec<PathBuf> = files.iter().map(|file| directory.join(&file.name)).collect();
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(TestCaseError::Exists { path: path.clone() });
    }
    fs_err::create_dir_all(directory).map_err(TestCaseError::Write)?;
    for (path, file) in paths.iter().zip(files) {
        fs_err::write(path, &file.text).map_err(TestCaseError::Write)?;
    }
    Ok(())
}

fn with_newline(text: &str) -> String {
    let mut text = text.trim_end().to_owned();
    text.push('\n');
    text
}

/// Puts texts in the place of `@KEY@` in a template. What is no key stays.
fn fill(template: &str, text: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let filled = after.split_once('@').and_then(|(key, behind)| Some((text(key)?, behind)));
        rest = match filled {
            Some((text, behind)) => {
                out.push_str(&text);
                behind
            }
            None => {
                out.push('@');
                after
            }
        };
    }
    out.push_str(rest);
    out
}

/// So many accesses behind the schedule show that a program which never ends goes on without the failure.
const TAIL: u64 = 1_000_000;

/// The texts that the templates ask for, before they are quoted for the file's language.
struct Words<'a> {
    case: &'a TestCase<'a>,
    /// How it failed, in one line.
    failure: String,
    /// Why, line by line.
    cause: Vec<String>,
    /// The program to test, or nothing.
    program: String,
}

impl<'a> Words<'a> {
    fn new(case: &'a TestCase<'a>, failure: &Failure) -> Self {
        Self {
            case,
            failure: failure_in_words(failure),
            cause: cause_in_words(case),
            program: case.program.map(|path| path.display().to_string()).unwrap_or_default(),
        }
    }

    fn common(&self, key: &str) -> Option<String> {
        Some(match key {
            "NAME" => self.case.name.to_owned(),
            "VARIABLE" => self.case.name.replace('-', "_"),
            "VERSION" => env!("CARGO_PKG_VERSION").to_owned(),
            _ => return None,
        })
    }

    fn arguments(&self) -> impl Iterator<Item = &String> {
        self.case.manifest.command.iter().skip(1)
    }

    fn in_c(&self, key: &str) -> Option<String> {
        let outcome = self.case.manifest.outcome;
        let list = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| format!("    {},\n", quote::c_string(text))).collect::<String>()
        };
        Some(match key {
            "FAILURE" => quote::c_comment(&self.failure),
            "FAILURE_TEXT" => quote::c_string(&self.failure),
            "CAUSE" => {
                let line = |line: &String| format!(" *   {}", quote::c_comment(line));
                self.cause.iter().map(line).collect::<Vec<_>>().join("\n")
            }
            "PROGRAM" => quote::c_string(&self.program),
            "SCHEDULE" => list(&mut self.case.schedule.trim_end().lines()).trim_end().to_owned(),
            "ARGUMENTS" => list(&mut self.arguments().map(String::as_str)),
            "SIGNAL" => match outcome {
                Some(Outcome::Signalled(signal)) => signal.to_string(),
                _ => "0".to_owned(),
            },
            "STATUS" => match outcome {
                Some(Outcome::Exited(status)) => status.to_string(),
                _ => "0".to_owned(),
            },
            "DETECTION" => {
                quote::c_string(self.case.manifest.detect.as_deref().unwrap_or_default())
            }
            "TAIL" => {
                let tail = self.case.manifest.endless.then(|| TAIL.to_string());
                quote::c_string(&tail.unwrap_or_default())
            }
            "CHECK" => {
                let check = self.case.manifest.fail_if.as_ref().filter(|check| check.failed);
                quote::c_string(check.map(|check| &*check.command).unwrap_or_default())
            }
            "OUTPUT" => quote::c_string(&expected_output(self.case.manifest)),
            "MAGIC" => format!("0x{REPORT_MAGIC:016x}"),
            _ => return self.common(key),
        })
    }

    fn in_cmake(&self, key: &str) -> Option<String> {
        Some(match key {
            "FAILURE" => quote::one_line(&self.failure),
            "PROGRAM" => quote::cmake_string(&self.program),
            _ => return self.common(key),
        })
    }

    fn in_make(&self, key: &str) -> Option<String> {
        Some(match key {
            // A backslash at the end would go on with the comment.
            "FAILURE" => quote::one_line(&self.failure).trim_end_matches('\\').to_owned(),
            "PROGRAM" => quote::make_value(&self.program),
            _ => return self.common(key),
        })
    }

    fn in_markdown(&self, key: &str) -> Option<String> {
        Some(match key {
            "FAILURE" => quote::one_line(&self.failure),
            "CAUSE" => {
                let line = |line: &String| format!("    {}", quote::one_line(line));
                self.cause.iter().map(line).collect::<Vec<_>>().join("\n")
            }
            "ARGUMENTS" => self.arguments_in_words(),
            _ => return self.common(key),
        })
    }

    fn arguments_in_words(&self) -> String {
        let arguments: Vec<&str> = self.arguments().map(String::as_str).collect();
        if arguments.is_empty() {
            return String::new();
        }
        let arguments = quote::one_line(&arguments.join(" "));
        let directory = quote::one_line(&self.case.manifest.directory);
        format!("\nThe recorded run had the arguments `{arguments}` in `{directory}`.")
    }
}

fn failure_in_words(failure: &Failure) -> String {
    let mut text = failure.kind.clone();
    // The message of an assertion begins with the place, as the compiler was given it: a path that
    // means nothing elsewhere.
    let message = match failure.kind.as_str() {
        "assertion" => expression(&failure.message).unwrap_or(&failure.message),
        _ => &failure.message,
    };
    if !message.is_empty() {
        text.push_str(": ");
        text.push_str(message);
    }
    text.push_str(" at ");
    text.push_str(&place(&failure.location));
    if !failure.location.function.is_empty() {
        text.push_str(" in ");
        text.push_str(&failure.location.function);
    }
    text + ", thread " + &failure.thread
}

fn cause_in_words(case: &TestCase<'_>) -> Vec<String> {
    if let Some(cause) = case.cause {
        return vec![format!("{cause}.")];
    }
    let solution = case.solution;
    let event = |id: &String| match solution.event(id) {
        Some(event) => {
            let what = describe(event, event.value.as_deref());
            format!("{}: {what} at {}", event.thread, place(&event.location))
        }
        None => id.clone(),
    };
    match &solution.root_cause {
        Some(cause) if cause.fails_always => {
            vec!["It fails under every schedule along the recorded paths.".to_owned()]
        }
        Some(cause) if !cause.orders.is_empty() => {
            let pair = |[before, after]: &[String; 2]| {
                [event(before), format!("    before {}", event(after))]
            };
            cause.orders.iter().flat_map(pair).collect()
        }
        _ => vec!["The root cause was not found.".to_owned()],
    }
}

/// What the output of a program that fails in the same way holds. Line numbers are left out, since
/// edits move them.
fn expected_output(manifest: &Manifest) -> String {
    let Some(failure) = manifest.failure.as_ref() else { return String::new() };
    if failure.kind != FailureKind::Assertion || failure.message.len() > OUTPUT_LIMIT {
        return String::new();
    }
    // Printed by the library as `program: file:line: function: Assertion `expression' failed.`
    match expression(&failure.message) {
        Some(expression) => format!("Assertion `{expression}' failed"),
        None => String::new(),
    }
}

/// The expression in an assertion's message, `file:line: function: expression`.
fn expression(message: &str) -> Option<&str> {
    message.splitn(3, ": ").nth(2)
}

#[cfg(test)]
mod tests;
