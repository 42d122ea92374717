//! The table of failure rates: how often the fixtures fail by themselves, and under noise.

use crate::programs;
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs per cell when `--runs` does not say otherwise.
const RUNS: u32 = 1000;
/// The mark of the fixtures that plain runs hardly ever see fail.
const RARE: &str = "//~ RARE: noise";

/// What is asked for.
struct Settings {
    runs: u32,
    level: String,
    /// What `record` takes as `--noise` for the fourth column.
    random: String,
    /// And for the fifth.
    pct: String,
    names: Vec<String>,
}

impl Settings {
    fn parse(args: &[String]) -> Result<Self> {
        let mut settings = Self {
            runs: RUNS,
            level: "-O1".into(),
            random: "--noise".into(),
            pct: "--noise=pct".into(),
            names: Vec::new(),
        };
        for arg in args {
            match arg.split_once('=') {
                Some(("--runs", runs)) => settings.runs = runs.parse()?,
                Some(("--random", text)) => settings.random = format!("--noise={text}"),
                Some(("--pct", text)) => settings.pct = format!("--noise={text}"),
                _ if arg.starts_with("-O") => settings.level.clone_from(arg),
                _ if arg.starts_with('-') => return Err(format!("unknown option {arg}").into()),
                _ => settings.names.push(arg.clone()),
            }
        }
        Ok(settings)
    }
}

/// Prints a row per fixture: of those named, else of all that are marked as rare.
pub fn run(args: &[String]) -> Result<()> {
    let settings = Settings::parse(args)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let symbiosis = programs::build(&root)?;
    let runs = settings.runs;
    println!(
        "{runs} runs per cell at {}; seeds 1 to {runs}; random is `{}`, pct is `{}`.\n",
        settings.level, settings.random, settings.pct
    );
    println!("| fixture | not instrumented | recorded | random | pct | random / recorded |");
    println!("|{}", " --- |".repeat(6));
    for fixture in programs::fixtures(&root)? {
        let name = fixture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let source = programs::source(&fixture)?;
        let wanted = if settings.names.is_empty() {
            std::fs::read_to_string(&source)?.contains(RARE)
        } else {
            settings.names.contains(&name)
        };
        if wanted {
            println!("{}", row(&symbiosis, &source, &name, &settings)?);
        }
    }
    Ok(())
}

fn row(symbiosis: &Path, source: &Path, name: &str, settings: &Settings) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let (native, program) = (directory.path().join("native"), directory.path().join("program"));
    let clang = if programs::is_c(source) { "clang" } else { "clang++" };
    programs::compile(Command::new(clang), source, &settings.level, &native)?;
    let compiler = if programs::is_c(source) { "cc" } else { "c++" };
    let mut command = Command::new(symbiosis);
    command.arg(compiler);
    programs::compile(command, source, &settings.level, &program)?;

    let runs = settings.runs;
    let mut alone = 0;
    for _ in 0..runs {
        let status = Command::new(&native).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        alone += u32::from(!status.success());
    }
    let recorded = |noise: Option<&str>| -> Result<u32> {
        let trace = directory.path().join("t.trace");
        let mut failed = 0;
        let mut seed = 1;
        // One search after the other, each from the seed behind the last one's find.
        while seed <= runs {
            let mut command = Command::new(symbiosis);
            command.args(["record", "--timeout", "20", "--until-failure"]);
            command.arg((runs - seed + 1).to_string()).arg("-o").arg(&trace);
            if let Some(noise) = noise {
                command.args([noise, "--seed", &seed.to_string()]);
            }
            let out = command.arg("--").arg(&program).stdin(Stdio::null()).output()?;
            let text = String::from_utf8_lossy(&out.stderr);
            match out.status.code() {
                Some(0) => {}
                Some(12) => break,
                _ => return Err(format!("{name}: {}: {text}", out.status).into()),
            }
            failed += 1;
            seed += failing_run(&text).ok_or_else(|| format!("no run is named in {text}"))?;
            std::fs::remove_dir_all(&trace)?;
        }
        Ok(failed)
    };
    let plain = recorded(None)?;
    let random = recorded(Some(&settings.random))?;
    let pct = recorded(Some(&settings.pct))?;
    let ratio = match plain {
        0 if random > 0 => format!("over {random}"),
        0 => "-".to_owned(),
        _ => format!("{:.0}", f64::from(random) / f64::from(plain)),
    };
    Ok(format!("| `{name}` | {alone} | {plain} | {random} | {pct} | {ratio} |"))
}

/// The number in `run 3 of 1000 failed`.
fn failing_run(text: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let (number, rest) = line.strip_prefix("symbiosis: run ")?.split_once(' ')?;
        if rest.ends_with("failed") { number.parse().ok() } else { None }
    })
}

#[test]
fn the_failing_run_is_read_from_what_record_says() {
    let text = "received 7\nsymbiosis: run 31 of 1000 failed\nsymbiosis: t.trace: aborted\n";
    assert_eq!(failing_run(text), Some(31));
    assert_eq!(failing_run("symbiosis: no failure in 5 runs\n"), None);
}
