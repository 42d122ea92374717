//! Perturbed runs: what is asked of the program's scheduler, and which seed a run gets.
//!
//! Two ways are there (see docs/noise.md). *Random noise* lets the threads run freely and pauses
//! one of them now and then at a gate. *PCT* (probabilistic concurrency testing) runs one thread at
//! a time, by random priorities that change at a few random places; the same seed and settings give
//! the same schedule again.

use std::ffi::OsString;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::str::FromStr;
use trace_format::layout::{REPORT_MAGIC, Report};

/// The name of the scheduler's report in the directory of a run that is going on.
pub const REPORT_FILE: &str = "report.bin";

/// Chance of a pause at a gate when none is given, per million gates.
const DEFAULT_PER_MILLION: u32 = 20_000;
/// Longest pause when none is given.
const DEFAULT_MICROSECONDS: u32 = 200;
/// How many gates of a thread are disturbed at the full rate when it is not said.
const DEFAULT_GATES: u32 = 100_000;
/// Chance of a pause per million gates, and number of gates, in every second run when nothing is given: a
/// thread of few gates hardly ever has a pause in the one place where it matters with the others.
const OFTEN_PER_MILLION: u32 = 300_000;
const OFTEN_GATES: u32 = 100;
/// Longest pause that makes sense: ten seconds.
const MOST_MICROSECONDS: u32 = 10_000_000;
/// Places at which PCT needs the right order when none is given: enough for an atomicity violation.
const DEFAULT_DEPTH: u32 = 3;
/// More places than any bug needs.
const MOST_DEPTH: u32 = 1_000;
/// How many steps PCT takes a run for when nothing is known about it.
const DEFAULT_STEPS: u64 = 10_000;
/// Drawn seeds have at most nine digits, so that people can copy them.
const SEEDS: u64 = 1_000_000_000;

/// What `--noise` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Pauses at random gates: few over the whole run where the seed is even, and many at the beginning of each
    /// thread where it is odd.
    Varied,
    /// Pauses at random gates.
    Random {
        /// The chance of a pause, in gates per million; 1 to 1,000,000.
        per_million: u32,
        /// The longest pause in microseconds.
        microseconds: u32,
        /// So many gates of a thread are disturbed at that rate, later ones the less often; at least 1.
        gates: u32,
    },
    /// Random priorities that change at a few random places.
    Pct {
        /// How many orderings the bug needs; at least 1. The priorities change so often, less one.
        depth: u32,
        /// Among how many steps (gates and sync points, over all threads) the places of the changes
        /// are drawn; none when it is to be learned from the runs before.
        steps: Option<u64>,
    },
}

/// What one run is perturbed by. All numbers are fixed, so that it can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perturbation {
    /// How; `steps` is there, and nothing is left to vary.
    pub noise: Noise,
    /// The seed.
    pub seed: u64,
}

/// Why a `--noise` cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// The rate is no probability that can be kept.
    #[error("{0:?} is not a probability between 0.000001 and 1")]
    Rate(String),
    /// A number is missing or out of range.
    #[error("{found:?} is not {what}")]
    Number {
        /// What stands there.
        found: String,
        /// What belongs there.
        what: &'static str,
    },
    /// There is more text than settings.
    #[error("{0:?} is one setting too many; use RATE,MICROSECONDS,GATES or pct,DEPTH,STEPS")]
    TooMany(String),
}

impl FromStr for Noise {
    type Err = NoiseError;

    /// `[random,]RATE[,MICROSECONDS[,GATES]]`, `random`, or `pct[,DEPTH[,STEPS]]`.
    fn from_str(text: &str) -> Result<Self, NoiseError> {
        let mut words = text.split(',').map(str::trim).peekable();
        let noise = match words.next_if(|word| matches!(*word, "random" | "pct")) {
            Some("pct") => {
                let depth = words.next().map_or(Ok(DEFAULT_DEPTH), |word| {
                    number(word, MOST_DEPTH, "a depth between 1 and 1000")
                })?;
                let steps = words
                    .next()
                    .map(|word| number(word, u64::MAX, "a number of steps above 0"))
                    .transpose()?;
                Self::Pct { depth, steps }
            }
            _ => match words.next() {
                Some(word) => {
                    let per_million = rate(word)?;
                    let microseconds = words.next().map_or(Ok(DEFAULT_MICROSECONDS), |word| {
                        number(word, MOST_MICROSECONDS, "between 1 and 10000000 microseconds")
                    })?;
                    let gates = words.next().map_or(Ok(DEFAULT_GATES), |word| {
                        number(word, u32::MAX, "a number of gates above 0")
                    })?;
                    Self::Random { per_million, microseconds, gates }
                }
                None => Self::Varied,
            },
        };
        match words.next() {
            None => Ok(noise),
            Some(word) => Err(NoiseError::TooMany(word.to_owned())),
        }
    }
}

/// A probability, in parts per million.
fn rate(word: &str) -> Result<u32, NoiseError> {
    let probability: f64 = word.parse().map_err(|_| NoiseError::Rate(word.to_owned()))?;
    let per_million = (probability * 1e6).round();
    if (1.0..=1e6).contains(&per_million) {
        Ok(per_million as u32)
    } else {
        Err(NoiseError::Rate(word.to_owned()))
    }
}

/// A number from 1 to the limit.
fn number<T: FromStr + PartialOrd + From<u8>>(
    word: &str,
    limit: T,
    what: &'static str,
) -> Result<T, NoiseError> {
    let parsed = word.parse().ok().filter(|number| *number >= T::from(1) && *number <= limit);
    parsed.ok_or_else(|| NoiseError::Number { found: word.to_owned(), what })
}

impl fmt::Display for Noise {
    /// The text that `--noise=` takes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Varied => f.write_str("random"),
            Self::Random { per_million, microseconds, gates } => {
                write!(f, "random,{},{microseconds}", f64::from(*per_million) / 1e6)?;
                if *gates != DEFAULT_GATES { write!(f, ",{gates}") } else { Ok(()) }
            }
            Self::Pct { depth, steps: Some(steps) } => write!(f, "pct,{depth},{steps}"),
            Self::Pct { depth, steps: None } => write!(f, "pct,{depth}"),
        }
    }
}

impl Noise {
    /// What the next run of a series gets. `steps` is how many steps the run before took, where
    /// that is known.
    #[must_use]
    pub fn of_run(self, seed: u64, steps: Option<u64>) -> Perturbation {
        let noise = match self {
            Self::Pct { depth, steps: given } => {
                Self::Pct { depth, steps: given.or(steps).or(Some(DEFAULT_STEPS)) }
            }
            Self::Varied => {
                let (per_million, gates) = match seed % 2 {
                    0 => (DEFAULT_PER_MILLION, DEFAULT_GATES),
                    _ => (OFTEN_PER_MILLION, OFTEN_GATES),
                };
                Self::Random { per_million, microseconds: DEFAULT_MICROSECONDS, gates }
            }
            random @ Self::Random { .. } => random,
        };
        Perturbation { noise, seed }
    }

    /// Does it end when it has lasted for long enough?
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Self::Varied | Self::Random { .. })
    }

    /// Must a run be asked how many steps it took?
    #[must_use]
    pub fn learns(self) -> bool {
        matches!(self, Self::Pct { steps: None, .. })
    }
}

impl Perturbation {
    /// The value of [`trace_format::layout::NOISE_VARIABLE`].
    #[must_use]
    pub fn variable(self) -> OsString {
        let seed = self.seed;
        match self.noise {
            Noise::Varied => self.noise.of_run(seed, None).variable(),
            Noise::Random { per_million, microseconds, gates } => {
                format!("random,{seed},{per_million},{microseconds},{gates}").into()
            }
            Noise::Pct { depth, steps } => {
                format!("pct,{seed},{depth},{}", steps.unwrap_or(DEFAULT_STEPS)).into()
            }
        }
    }
}

impl fmt::Display for Perturbation {
    /// The options that repeat the run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--noise={} --seed {}", self.noise, self.seed)
    }
}

/// A seed for who gave none.
#[must_use]
pub fn draw_seed() -> u64 {
    // The standard library's hash keys are drawn from the system's random numbers.
    std::collections::hash_map::RandomState::new().build_hasher().finish() % SEEDS
}

/// How many steps a run took, from the scheduler's report in its directory; none when there is no
/// whole report. The report is removed: it says nothing that a trace is read for.
#[must_use]
pub fn take_steps(directory: &Path) -> Option<u64> {
    let path = directory.join(REPORT_FILE);
    let bytes = fs_err::read(&path).ok()?;
    let _ = fs_err::remove_file(&path);
    let word = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let whole = bytes.len() >= size_of::<Report>() && word(0) == Some(REPORT_MAGIC);
    word(offset_of!(Report, steps)).filter(|steps| whole && *steps > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(per_million: u32, microseconds: u32, gates: u32) -> Noise {
        Noise::Random { per_million, microseconds, gates }
    }

    #[test]
    fn settings_are_read_and_written_alike() {
        for (text, noise, written) in [
            ("random", Noise::Varied, "random"),
            ("0.001", random(1_000, 200, 100_000), "random,0.001,200"),
            ("0.25, 7", random(250_000, 7, 100_000), "random,0.25,7"),
            ("random,1,90", random(1_000_000, 90, 100_000), "random,1,90"),
            ("0.3,200,100", random(300_000, 200, 100), "random,0.3,200,100"),
            ("pct", Noise::Pct { depth: 3, steps: None }, "pct,3"),
            ("pct,2", Noise::Pct { depth: 2, steps: None }, "pct,2"),
            ("pct,4,77", Noise::Pct { depth: 4, steps: Some(77) }, "pct,4,77"),
        ] {
            assert_eq!(text.parse(), Ok(noise), "{text}");
            assert_eq!(noise.to_string(), written);
            assert_eq!(written.parse(), Ok(noise));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let rates = ["", "0", "1.5", "-0.1", "NaN", "0.0000001", "often"];
        for text in rates {
            assert_eq!(text.parse::<Noise>(), Err(NoiseError::Rate(text.to_owned())), "{text}");
        }
        for text in
            ["0.1,", "0.1,0", "0.1,x", "0.1,10000001", "0.1,2,0", "pct,0", "pct,x", "pct,3,0"]
        {
            assert!(matches!(text.parse::<Noise>(), Err(NoiseError::Number { .. })), "{text}");
        }
        for text in ["0.1,2,3,3", "pct,1,2,3", "random,0.1,2,3,3"] {
            let error = text.parse::<Noise>();
            assert_eq!(error, Err(NoiseError::TooMany("3".to_owned())), "{text}");
        }
    }

    #[test]
    fn a_run_of_pct_has_the_steps_given_or_learned() {
        let (given, open) =
            (Noise::Pct { depth: 2, steps: Some(5) }, Noise::Pct { depth: 2, steps: None });
        assert!(open.learns() && !given.learns());
        assert_eq!(given.of_run(1, Some(9)).variable(), "pct,1,2,5");
        assert_eq!(open.of_run(1, Some(9)).variable(), "pct,1,2,9");
        assert_eq!(open.of_run(8, None).variable(), "pct,8,2,10000");
        assert_eq!(open.of_run(8, Some(9)).to_string(), "--noise=pct,2,9 --seed 8");
        let random = random(2_000, 30, 4);
        assert_eq!(random.of_run(7, Some(9)).variable(), "random,7,2000,30,4");
    }

    #[test]
    fn noise_without_settings_goes_by_the_seed_and_can_be_repeated() {
        let (few, many) = (Noise::Varied.of_run(8, None), Noise::Varied.of_run(9, None));
        assert_eq!(few.to_string(), "--noise=random,0.02,200 --seed 8");
        assert_eq!(many.to_string(), "--noise=random,0.3,200,100 --seed 9");
        assert_eq!(many.noise.of_run(8, None).noise, many.noise, "what is given stays");
        assert!(Noise::Varied.ends() && !Noise::Varied.learns());
    }

    #[test]
    fn a_report_that_is_not_whole_says_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(take_steps(directory.path()), None);
        let path = directory.path().join(REPORT_FILE);
        let mut bytes = vec![0; size_of::<Report>()];
        bytes[offset_of!(Report, steps)] = 42;
        fs_err::write(&path, &bytes).expect("written");
        assert_eq!(take_steps(directory.path()), None);
        bytes[..8].copy_from_slice(&REPORT_MAGIC.to_le_bytes());
        fs_err::write(&path, &bytes[..100]).expect("written");
        assert_eq!(take_steps(directory.path()), None);
        fs_err::write(&path, &bytes).expect("written");
        assert_eq!(take_steps(directory.path()), Some(42));
        assert!(!path.exists());
    }
}
