//! `symbiosis show`: the answer that `solve` found, again, in any format. Nothing is solved or run.

pub(super) mod sources;

use super::{Failure, exit_codes, output};
use crate::pipeline::explained_trace;
use render::Solution;
use render::sarif::SarifOptions;
use render::solution::{FORMAT, VERSION};
use render::text::TextOptions;
use serde::Deserialize;
use sources::{Files, Lines};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file of a trace directory in which `solve` keeps its answer.
const FILE: &str = "solution.json";

/// Show the answer that `symbiosis solve` found, without solving again.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trace directory
    trace: PathBuf,
    #[command(flatten)]
    output: Output,
}

/// How an answer is printed.
#[derive(Debug, clap::Args)]
pub struct Output {
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// In text, print every event of the failing schedule too
    #[arg(long)]
    full_schedule: bool,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal or a log
    Text,
    /// Everything, for programs (docs/solution-format.md)
    Json,
    /// The projection for Graphviz
    Dot,
    /// The same as a picture; needs Graphviz
    Svg,
    /// A page to step through, for a browser
    Html,
    /// The projection as a sequence diagram, for Markdown
    Mermaid,
    /// For code scanning and editors (SARIF 2.1.0)
    Sarif,
    /// Both schedules whole, for ui.perfetto.dev or chrome://tracing
    Perfetto,
}

/// Why a kept answer cannot be shown.
#[derive(Debug, Error)]
pub(super) enum ShowError {
    #[error("{0} is no trace directory")]
    NoTrace(PathBuf),
    #[error("{0} was not solved yet: run `symbiosis solve {0}` first")]
    NotSolved(PathBuf),
    #[error("cannot read the answer")]
    Read(#[source] io::Error),
    #[error("{path} is no answer of `symbiosis solve`: solve the trace again")]
    NoAnswer {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error(
        "{path} was written by another version of symbiosis (format {found}, and this one reads \
         {FORMAT} {VERSION}): run `symbiosis solve` again"
    )]
    Version { path: PathBuf, found: String },
}

impl From<ShowError> for Failure {
    fn from(error: ShowError) -> Self {
        let code = match error {
            ShowError::NotSolved(_) | ShowError::Read(_) => exit_codes::UNEXPECTED,
            ShowError::NoTrace(_) | ShowError::NoAnswer { .. } | ShowError::Version { .. } => {
                exit_codes::BAD_TRACE
            }
        };
        Self::new(code, error)
    }
}

/// Reads the answer and prints it.
///
/// # Errors
/// When the trace was not solved by this version, or the output cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let solution = kept(&args.trace)?;
    args.output.write(&solution)?;
    Ok(exit_codes::SUCCESS)
}

/// Keeps an answer in its trace. The file is there whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub(super) fn keep(trace: &Path, solution: &Solution) -> io::Result<()> {
    // As readable as the rest of the trace.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(trace)?;
    let mut out = io::BufWriter::new(&mut file);
    render::json::write(&mut out, solution)?;
    io::Write::flush(&mut out)?;
    drop(out);
    file.persist(trace.join(FILE))?;
    Ok(())
}

/// What says whose answer it is; the rest may look different in another version.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: String,
}

/// The answer that a trace keeps.
///
/// # Errors
/// When there is none, or none of this version.
pub(super) fn kept(trace: &Path) -> Result<Solution, ShowError> {
    let path = explained_trace(trace).join(FILE);
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && trace.is_dir() => {
            return Err(ShowError::NotSolved(trace.to_owned()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ShowError::NoTrace(trace.to_owned()));
        }
        Err(error) => return Err(ShowError::Read(error)),
    };
    let no_answer = |source| ShowError::NoAnswer { path: path.clone(), source };
    // A list would do for a structure whose members all have defaults.
    if text.trim_start().starts_with('[') {
        return Err(no_answer(serde::de::Error::custom("it is a list and not an object")));
    }
    let head: Head = serde_json::from_str(&text).map_err(no_answer)?;
    if (head.format.as_str(), head.version.as_str()) != (FORMAT, VERSION) {
        let found = format!("{} {}", head.format, head.version);
        return Err(ShowError::Version { path, found: found.trim().to_owned() });
    }
    serde_json::from_str(&text).map_err(no_answer)
}

impl Output {
    /// Prints an answer as the arguments say.
    ///
    /// # Errors
    /// When a picture cannot be laid out, or the output cannot be written.
    pub(super) fn write(&self, solution: &Solution) -> Result<(), Failure> {
        let text = self.rendered(solution)?;
        output::write(self.output.as_deref(), text.as_bytes())
    }

    fn rendered(&self, solution: &Solution) -> Result<String, Failure> {
        fn unexpected(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
            Failure::new(exit_codes::UNEXPECTED, error)
        }
        match self.format {
            Format::Text => {
                let lines = Lines::of(solution);
                let source = |file: &str, line: u32| lines.line(file, line);
                let options = self.text_options();
                let text = render::text::to_text_with_source(solution, options, &source);
                Ok(text + &lines.notes())
            }
            Format::Json => render::json::to_json(solution).map_err(unexpected),
            Format::Dot => Ok(render::dot::to_dot(solution)),
            Format::Svg => render::svg::to_svg(solution).map_err(unexpected),
            Format::Html => {
                let files = Files::of(solution);
                let sources = render::html::Sources::gather(solution, |name| files.read(name));
                render::html::to_html(solution, &sources).map_err(unexpected)
            }
            Format::Mermaid => Ok(render::mermaid::to_mermaid(solution)),
            Format::Sarif => {
                let root = std::env::current_dir().ok();
                let root = root.as_deref().and_then(Path::to_str);
                let tool_version = env!("CARGO_PKG_VERSION");
                let options = SarifOptions { root, tool_version };
                render::sarif::to_sarif(solution, options).map_err(unexpected)
            }
            Format::Perfetto => render::perfetto::to_perfetto(solution).map_err(unexpected),
        }
    }

    /// Colour and width are for terminals.
    fn text_options(&self) -> TextOptions {
        let terminal = self.output.is_none() && io::stdout().is_terminal();
        // https://no-color.org: set and not empty.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        TextOptions {
            full_schedule: self.full_schedule,
            width: terminal.then(columns).flatten(),
            colour: terminal && !refused,
        }
    }
}

/// The width of the terminal that standard output is.
fn columns() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the request fills in the structure that the pointer leads to, which lives until then.
    let done = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (done == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: ShowError) -> (u8, String) {
        let failure = Failure::from(error);
        (failure.code, failure.error.to_string())
    }

    #[test]
    fn a_kept_answer_comes_back() {
        let trace = tempfile::tempdir().expect("a directory");
        let solution = Solution {
            format: FORMAT.to_owned(),
            version: VERSION.to_owned(),
            ..Solution::default()
        };
        keep(trace.path(), &solution).expect("it can be written");
        assert_eq!(kept(trace.path()).expect("it can be read"), solution);
    }

    #[test]
    fn what_is_no_answer_of_this_version_is_refused_by_name() {
        let trace = tempfile::tempdir().expect("a directory");
        let (code, text) = message(kept(trace.path()).expect_err("there is none"));
        assert!(code == exit_codes::UNEXPECTED && text.contains("symbiosis solve"), "{text}");
        let (code, text) = message(kept(&trace.path().join("none")).expect_err("there is none"));
        assert!(code == exit_codes::BAD_TRACE && text.contains("no trace"), "{text}");
        let file = trace.path().join(FILE);
        for (written, said) in [
            (r#"{"format": "symbiosis-solution", "version": "0.9"}"#, "symbiosis-solution 0.9"),
            ("[]", "is no answer"),
            ("{", "is no answer"),
        ] {
            fs_err::write(&file, written).expect("the file can be written");
            let (code, text) = message(kept(trace.path()).expect_err("it is another one"));
            assert!(code == exit_codes::BAD_TRACE && text.contains(said), "{text}");
        }
    }
}
