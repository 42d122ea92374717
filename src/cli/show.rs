//! `symbiosis show`: the answer that `solve` found, again, in any format. Nothing is solved or run.

pub(super) mod sources;

use super::{Failure, exit_codes, output};
use crate::answer::{KeptError, kept};
use render::Solution;
use render::sarif::SarifOptions;
use render::text::TextOptions;
use sources::{Files, Lines};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

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

impl From<KeptError> for Failure {
    fn from(error: KeptError) -> Self {
        let code = match error {
            KeptError::NotSolved(_) | KeptError::Read(_) => exit_codes::UNEXPECTED,
            KeptError::NoTrace(_) | KeptError::NoAnswer { .. } | KeptError::Version { .. } => {
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

fn unexpected(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::new(exit_codes::UNEXPECTED, error)
}

/// The page to step through an answer.
pub(super) fn page(solution: &Solution) -> Result<String, Failure> {
    let files = Files::of(solution);
    let sources = render::html::Sources::gather(solution, |name| files.read(name));
    render::html::to_html(solution, &sources).map_err(unexpected)
}

/// Where the paths of a SARIF log begin.
pub(super) fn sarif_root() -> Option<String> {
    std::env::current_dir().ok()?.to_str().map(str::to_owned)
}

/// What a SARIF log says of this tool and of its paths.
pub(super) fn sarif_options(root: Option<&str>) -> SarifOptions<'_> {
    SarifOptions { root, tool_version: env!("CARGO_PKG_VERSION") }
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
            Format::Html => page(solution),
            Format::Mermaid => Ok(render::mermaid::to_mermaid(solution)),
            Format::Sarif => {
                let root = sarif_root();
                render::sarif::to_sarif(solution, sarif_options(root.as_deref()))
                    .map_err(unexpected)
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
