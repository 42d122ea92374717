//! `symbiosis triage`: many failing traces, by their causes.

use super::record::seconds;
use super::show::{page, sarif_options, sarif_root};
use super::{Failure, exit_codes, output};
use crate::said::say;
use crate::scratch::Scratch;
use crate::triage::{self, Groups, Known, Options, State, Triage, TriageError};
use indicatif::{ProgressBar, ProgressStyle};
use render::Solution;
use render::sarif::Finding;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Group failing traces by their causes: which of them are the same bug, which are new.
///
/// Each trace is solved by a process of its own, unless it was before, and keeps its answer; so a
/// triage that is ended goes on where it was. Failures with the same fingerprint of their cause (see
/// `symbiosis diff`) are one group.
///
/// Exit codes: 0 all traces have an answer, and with --known no cause is new; 10 some cause is new; 12
/// some trace was not solved; 20 some trace is bad, or a place to look for traces. The reports are written all the same.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Trace directories, and directories that hold some at any depth
    #[arg(required = true, value_name = "DIR")]
    places: Vec<PathBuf>,
    /// Causes that are known: the JSON of an earlier triage, or a text with a fingerprint at the
    /// beginning of each line
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Write all reports into this directory: summary.md, triage.json, triage.sarif, junit.xml, and a
    /// page for each group
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Look for a repair of each cause too, as `symbiosis fix` does
    #[arg(long)]
    fix: bool,
    /// Solve so many traces at a time [default: half of the processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Stop solving a trace after so many seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    timeout: Duration,
    /// Do not run the programs: leave every schedule at the solver's claim
    #[arg(long)]
    no_replay: bool,
    /// Solve those traces too that keep an answer
    #[arg(long)]
    again: bool,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For a terminal or a log
    Text,
    /// Everything, for programs (docs/triage.md)
    Json,
    /// For the summary of a CI job
    Markdown,
    /// For code scanning: a result for each group (SARIF 2.1.0)
    Sarif,
    /// For the list of tests of a CI job: a case for each trace
    Junit,
}

impl From<TriageError> for Failure {
    fn from(error: TriageError) -> Self {
        let code = match error {
            TriageError::NoDirectory(_) => exit_codes::BAD_TRACE,
            TriageError::NotKnown { .. } => exit_codes::USAGE,
            _ => exit_codes::UNEXPECTED,
        };
        Self::new(code, error)
    }
}

/// Solves the traces and writes what was asked for.
///
/// # Errors
/// When a place is no directory, no process can be started, or a report cannot be written.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let known = args.known.as_deref().map(Known::read).transpose()?;
    let traces = triage::traces(&args.places)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options {
        jobs: args.jobs.map_or((processors / 2).max(1), usize::from),
        time: args.timeout.max(Duration::from_secs(1)),
        replay: !args.no_replay,
        again: args.again,
    };
    let scratch = Scratch::new("symbiosis-triage").map_err(TriageError::Start)?;
    let progress = Progress::new(traces.len());
    let outcomes =
        triage::solve_all(&traces, &options, scratch.path(), &|trace| progress.done(trace))?;
    let mut groups = Groups::default();
    for outcome in outcomes {
        groups.add(outcome);
    }
    let mut triage = groups.finish(known.as_ref());
    if args.fix {
        progress.more(triage.groups.len());
        triage::add_repairs(&mut triage, &options, scratch.path(), &|_| progress.step())?;
    }
    progress.finish();
    if let Some(directory) = &args.report {
        report(&triage, directory)?;
    }
    let text = rendered(&triage, args.format)?;
    output::write(args.output.as_deref(), text.as_bytes())?;
    Ok(code(&triage))
}

fn code(triage: &Triage) -> u8 {
    let bad = |code: Option<u8>| code == Some(exit_codes::BAD_TRACE);
    if triage.unsolved.iter().any(|unsolved| bad(unsolved.code)) {
        exit_codes::BAD_TRACE
    } else if !triage.unsolved.is_empty() {
        exit_codes::LIMIT
    } else if triage.has_new() {
        exit_codes::REPLAY_DIFFERS
    } else {
        exit_codes::SUCCESS
    }
}

fn rendered(triage: &Triage, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => triage.to_text(),
        Format::Json => json(triage)?,
        Format::Markdown => triage.to_markdown(&|_| None),
        Format::Sarif => sarif(triage, &answers(triage))?,
        Format::Junit => triage.to_junit()?,
    })
}

fn json(triage: &Triage) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(triage)
        .map_err(|error| TriageError::Report("JSON", Box::new(error)))?;
    Ok(format!("{text}\n"))
}

/// The answers about the first traces of the groups; none where one is not there any more.
fn answers(triage: &Triage) -> Vec<Option<Solution>> {
    let read = |path: &Path| {
        let text = fs_err::read_to_string(path).ok()?;
        serde_json::from_str(&text).ok()
    };
    triage.groups.iter().map(|group| read(&group.answer)).collect()
}

fn sarif(triage: &Triage, answers: &[Option<Solution>]) -> Result<String, Failure> {
    let findings = triage.groups.iter().zip(answers);
    let findings = findings.filter_map(|(group, solution)| {
        Some(Finding {
            solution: solution.as_ref()?,
            count: group.traces.len(),
            known: group.state.map(|state| state == State::Known),
        })
    });
    let (findings, root): (Vec<Finding<'_>>, _) = (findings.collect(), sarif_root());
    let text = render::sarif::all_to_sarif(&findings, sarif_options(root.as_deref()))
        .map_err(|error| TriageError::Report("SARIF", Box::new(error)))?;
    Ok(text)
}

/// Writes everything that there is.
fn report(triage: &Triage, directory: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(exit_codes::UNEXPECTED, error);
    fs_err::create_dir_all(directory).map_err(failed)?;
    let write =
        |name: &str, text: &str| output::write(Some(&directory.join(name)), text.as_bytes());
    let answers = answers(triage);
    for (number, solution) in (1..).zip(&answers) {
        if let Some(solution) = solution {
            write(&page_name(number), &page(solution)?)?;
        }
    }
    let has_page = |number: usize| answers.get(number - 1).is_some_and(Option::is_some);
    let link = |number| has_page(number).then(|| page_name(number));
    write("summary.md", &triage.to_markdown(&link))?;
    write("triage.json", &json(triage)?)?;
    write("triage.sarif", &sarif(triage, &answers)?)?;
    write("junit.xml", &triage.to_junit()?)
}

fn page_name(number: usize) -> String {
    format!("{number}.html")
}

/// How far it is: a bar on a terminal, a line for each trace elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(traces: usize) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let bar = ProgressBar::new(traces as u64);
        let template = "{elapsed_precise} [{bar:30}] {pos} of {len}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar: Some(bar) }
    }

    fn done(&self, trace: &Path) {
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => say(format_args!("{} is done", trace.display())),
        }
    }

    /// So many steps come on top.
    fn more(&self, steps: usize) {
        if let Some(bar) = &self.bar {
            bar.inc_length(steps as u64);
        }
    }

    fn step(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
