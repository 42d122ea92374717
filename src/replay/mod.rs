//! Running the real program under a schedule, and judging what it did.
//!
//! The instrumented binary itself is scheduled: its gates are opened and its runtime follows the
//! schedule's text (`docs/schedule-format.md`). Nothing is rebuilt; `docs/design-notes.md` says why.
//!
//! | file | what |
//! | --- | --- |
//! | `target` | which binary, with which arguments, where |
//! | `attempt` | one run, and the scheduler's report on it |
//! | `script` | a schedule of events as text |
//! | `across` | looking for a run that avoids the failure along other paths |
//! | `judge` | did it do what the schedule claims? |
//! | `departure` | where and why it did not |
//! | `gdb` | the same in the hands of a debugger |
//! | `original` | the recorded run, loaded when something is compared with it |

pub mod across;
mod attempt;
mod departure;
mod error;
pub mod gdb;
pub mod judge;
mod original;
mod script;
mod target;

pub(crate) use attempt::most_bytes;
pub use attempt::{Attempt, Left, Report, record_again, run};
pub use departure::{Departure, Difference};
pub use error::ReplayError;
pub use judge::{AGAIN_BEHIND, Claim, FAILED_BEHIND, Verdict};
pub use original::{Original, Walked};
pub use script::{observed, script, script_and_then, with_inputs};
pub use target::{Origin, Target};

use std::path::PathBuf;
use std::time::Duration;
use trace_format::Manifest;
use trace_format::layout::DEFAULT_PATIENCE_MS;

/// What every run gets beside its share of the recorded time.
const LEAST_TIME: Duration = Duration::from_secs(10);
/// How much slower than the recorded run a scheduled one may be: one thread at a time, and a
/// decision at every access that others may see.
const SLOWER: u32 = 20;
/// The same of a run that hung: most of its time nothing happened.
const SLOWER_HANG: u32 = 2;
/// What a run gets beside its share of the time after which the recorded one did nothing but go round
/// loops that it never came out of. Another run that gets there goes round as well.
const LEAST_ENDLESS: Duration = Duration::from_secs(2);

/// How to run the program again.
#[derive(Clone, Debug)]
pub struct Settings {
    /// After this time without progress the scheduler gives up following the schedule.
    pub patience: Duration,
    /// After so many gates in one line of the schedule it gives up that line; none for any number.
    pub gates: Option<u64>,
    /// After so many gates behind the schedule the run is ended; none for what [`Original::tail`] says.
    pub tail: Option<u64>,
    /// After this time the run is ended.
    pub timeout: Duration,
    /// The run may be ended sooner where the recorded one went round endless loops.
    pub hurries: bool,
    /// The run is ended when all its threads wait for ever, also where the recorded one did not hang.
    pub ends_when_stuck: bool,
    /// Watch the heap for accesses to freed objects, also where the recorded run did not?
    pub watches_heap: bool,
    /// Pass the program's output on?
    pub show_output: bool,
    /// The value of `SYMBIOSIS_NOISE`; none for no noise.
    pub noise: Option<String>,
    /// Avoidance rules to follow, as text; none for none.
    pub avoid: Option<String>,
    /// What the program reads as standard input; none for an empty one.
    pub input: Option<PathBuf>,
}

impl Settings {
    /// What suits the run of this manifest: 10 seconds and 20 times the recorded time, or twice that
    /// time where it ended by the time-out.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let recorded = Duration::from_millis(manifest.duration_ms.unwrap_or(0));
        let slower = if manifest.timed_out { SLOWER_HANG } else { SLOWER };
        Self {
            patience: Duration::from_millis(DEFAULT_PATIENCE_MS),
            gates: None,
            tail: None,
            timeout: LEAST_TIME.saturating_add(recorded.saturating_mul(slower)),
            hurries: true,
            ends_when_stuck: false,
            watches_heap: false,
            show_output: false,
            noise: None,
            avoid: None,
            input: redirected_input(),
        }
    }
}

impl Settings {
    /// Does a scheduler run the threads by random priorities where there is no schedule?
    fn by_priorities(&self) -> bool {
        self.noise.as_ref().is_some_and(|noise| noise.starts_with("pct"))
    }

    /// After which time a run of the program is ended: never behind the moment that is the last one for all of them.
    fn time(&self, original: &Original) -> Duration {
        let enough = match self.hurries {
            true => original.until_endless(),
            false => None,
        };
        let enough = enough.map(|time| LEAST_ENDLESS.saturating_add(time.saturating_mul(SLOWER)));
        let left = original.left();
        enough.into_iter().chain(left).fold(self.timeout, Duration::min)
    }

    /// After how many gates behind its schedule a run of the program is ended; none for never.
    fn tail(&self, original: &Original) -> Option<u64> {
        self.tail.or_else(|| original.tail())
    }

    /// How much a run of the program may log before it is ended: who goes round writes that soon.
    fn most_bytes(&self, original: &Original) -> u64 {
        let most = attempt::most_bytes(original.manifest());
        // To know how much was walked, the recorded run is executed symbolically, which may take long.
        if !self.hurries || original.until_endless().is_none() {
            return most;
        }
        original.long_log().map_or(most, |long| most.min(long.saturating_mul(2)))
    }
}

/// A regular file that this process's standard input was redirected from, so that every run can
/// read it from its beginning. A terminal or pipe could be read only once.
fn redirected_input() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/fd/0").ok()?;
    path.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(path)
}
