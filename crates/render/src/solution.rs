//! The answer to `symbiosis solve`: the stable JSON format, and what every other format is made
//! from. Documented for outsiders in `docs/solution-format.md`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The kind of a failure that may be none, because the run was ended while it went on; and the pattern of the cause
/// where no more is known than that.
pub const STILL_RUNNING: &str = "still-running";
/// The case of a cause which is that there was one thread.
const ONE_THREAD: &str = "one-thread";

/// The value of [`Solution::format`].
pub const FORMAT: &str = "symbiosis-solution";

/// The version of the format. Fields are added under the same major number; a field that goes or
/// changes its meaning takes a new one.
///
/// * 1.0: the first.
/// * 1.1: what replay found (`replay_notes`, `Alternate::replay_note`), and alternates that leave
///   the recorded paths (`same_path` false): `Alternate::events` and the `a` identifiers.
/// * 1.2: which cells and objects an event touches (`Event::targets`), and every value that an
///   alternate changes (`Alternate::values`); why it failed in one
///   sentence (`Solution::cause`); what should be atomic (`Dsp::atomic_blocks`).
/// * 1.3: how many rounds of waiting are not among the events (`Stats::rounds_left_out`).
/// * 1.4: the threads that only the run of an alternate has (`Alternate::threads`).
/// * 1.5: writes that are seen late (`Solution::late_writes`).
/// * 1.6: orderings that were not shown to make the failure inevitable (`RootCause::proposed`).
/// * 1.7: the check that a failure at the end only tells of (`Solution::check`).
pub const VERSION: &str = "1.7";

/// Everything `symbiosis solve` found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: String,
    /// Was a failing schedule found?
    pub verdict: Verdict,
    /// Why there is no schedule, or what cut the work short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The recorded failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it failed, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<Cause>,
    /// The threads, parents before children.
    pub threads: Vec<Thread>,
    /// All events of the trace, grouped by thread.
    pub events: Vec<Event>,
    /// The failing schedule: event identifiers, first to last.
    pub schedule: Vec<String>,
    /// The orderings that together make the failure inevitable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<RootCause>,
    /// Schedules along the same paths that do not fail; the first is the one of `dsp`.
    pub alternates: Vec<Alternate>,
    /// The difference between the failing schedule and the first alternate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dsp: Option<Dsp>,
    /// Has the failing schedule been forced on the real program?
    pub replay: Replay,
    /// What replay has to say about the failing schedule: where the program left it, how many
    /// schedules were found and rejected before this one. Empty when there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub replay_notes: Vec<String>,
    /// Writes that other threads see late in the failing schedule, as x86 allows; none where every write is seen
    /// at once. In `schedule` such a write stands where it is seen, behind reads of its thread that come later in
    /// the program.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub late_writes: Vec<LateWrite>,
    /// The check of a thread's own that a failure at the end only tells of: a run that followed the failing schedule up to
    /// there failed, and one in which it went the other way passed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub check: Option<Check>,
    /// The source files that locations name, sorted.
    #[serde(default)]
    pub sources: Vec<SourceFile>,
    /// Figures.
    pub stats: Stats,
}

/// A check whose outcome decides whether a run fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Which of the trace's path conditions it is.
    pub condition: u32,
    /// The thread that makes it.
    pub thread: String,
    /// Where.
    pub location: Location,
}

/// A write that is seen late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateWrite {
    /// The write's event.
    pub write: String,
    /// The reads of its thread that come behind it in the program and before it in the schedule.
    pub overtaken_by: Vec<String>,
}

/// Was a failing schedule found?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Yes.
    FailingSchedule,
    /// There is none along the recorded paths.
    NoSchedule,
    /// The work ended before an answer.
    #[default]
    Unknown,
}

/// What is known from replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// The program did as the schedule says.
    Confirmed,
    /// The program left the schedule.
    Diverged,
    /// Nobody tried: the schedule is the solver's claim, checked by evaluation only.
    #[default]
    NotRun,
}

impl Replay {
    /// How texts and pictures label a schedule.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "replay: confirmed",
            Self::Diverged => "replay: diverged",
            Self::NotRun => "replay: not run",
        }
    }
}

/// A source place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// As the debug information names it; empty when unknown.
    pub file: String,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// 1-based; 0 when unknown.
    pub column: u32,
    /// Empty when unknown.
    pub function: String,
}

/// The recorded failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// `assertion`, `abort`, `segfault`, ...
    pub kind: String,
    /// The name of the thread that failed.
    pub thread: String,
    /// The failure's event.
    pub event: String,
    /// Where.
    pub location: Location,
    /// What the program said.
    pub message: String,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// `t0`, `t0.1`, ...
    pub id: String,
    /// The creator; null for the initial thread.
    pub parent: Option<String>,
    /// The function it starts in.
    pub entry: String,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// `e12`.
    pub id: String,
    /// The thread's name.
    pub thread: String,
    /// `read`, `write`, `lock`, ...
    pub kind: String,
    /// What it touches, in the source's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What it touches, by identifier: cells of memory (`m40`) or a lock, condition, ... (`o3`).
    /// The same place has the same identifier in all events, whatever the source calls it there;
    /// one that only the run of an alternate on other paths touches begins with `a` (`am40`).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub targets: Vec<String>,
    /// Where, in the innermost frame outside of installed libraries' headers.
    pub location: Location,
    /// What the location calls in such headers, inner to outer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub library: Vec<Location>,
    /// The callers, inner to outer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub callers: Vec<Location>,
    /// The value read or written in the failing schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Event {
    /// Is it what a thread of a run that did not come to an end asked for and did not get?
    #[must_use]
    pub fn awaits(&self) -> bool {
        ["wait", "wait-to-read-from"].contains(&self.kind.as_str())
            || self.kind.starts_with("wait-for-")
    }
}

/// A source file that the program was compiled from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// As in [`Location::file`].
    pub file: String,
    /// The MD5 sum of the text that was compiled, in lower-case hexadecimal digits; absent where the
    /// debug information does not have it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub md5: Option<String>,
}

/// The cause in one sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The family: `atomicity`, `multi-variable-atomicity`, `order`, `missed-wakeup`, `deadlock`,
    /// `use-after-free`, `double-free`; `orders` where no pattern fits, `every-schedule` where all
    /// along the recorded paths fail, and no run along others is known that passes.
    pub pattern: String,
    /// The member of the family, such as `read-write-read`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub case: Option<String>,
    /// The sentence, without a full stop.
    pub sentence: String,
    /// What it is about: variables, locks and so on as the source calls them.
    pub variables: Vec<String>,
    /// The events that the sentence names, in its order; `e` and `a` identifiers.
    pub events: Vec<String>,
    /// What each of the events is about, as the sentence calls it; empty where it is about nothing.
    /// Other than `events[].object`, this leaves out what is inside of a library's types.
    #[serde(default)]
    pub names: Vec<String>,
    /// 16 hexadecimal digits, the same for the same cause in another run: made from the pattern,
    /// the functions and kinds of the events, how many lines they are apart within a function, and
    /// the variables.
    pub fingerprint: String,
    /// The program failed all the same when it was run with other orders, those of the sentence the other way
    /// round among them, and no run is known that passes: the failure may not hang on what the sentence says.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub in_vain: bool,
}

/// The root cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootCause {
    /// Pairs `[before, after]`. Empty when the program fails whatever the order. Where the failing
    /// run ended before `after` could happen, `after` is an event of the passing run only, with an
    /// `a` identifier, see [`Alternate::events`].
    pub orders: Vec<[String; 2]>,
    /// They were shown to make the failure inevitable, and no ordering can be dropped.
    pub minimal: bool,
    /// They were not shown to make the failure inevitable: a schedule that does not fail gives them up.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub proposed: bool,
    /// Every schedule along the recorded paths fails.
    pub fails_always: bool,
}

/// A schedule that does not fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternate {
    /// The pair that was reordered, in its new order: `[now before, now after]`. Where
    /// `same_path` is false, either may be an event that only the other run has.
    pub flipped: [String; 2],
    /// Every thread takes the recorded path. False: this schedule is of another run of the
    /// program, which took other branches once the pair was reordered.
    pub same_path: bool,
    /// Event identifiers, first to last. Where `same_path` is false, an event that the failing run
    /// has too (same thread, same place in its path) has the failing run's identifier, and one
    /// that only the other run has an identifier that begins with `a`, see `events`.
    pub schedule: Vec<String>,
    /// The events that only the other run has, `a0`, `a1`, ...; empty where `same_path` is true.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub events: Vec<Event>,
    /// The threads that only the other run has, parents before children; empty where `same_path`
    /// is true.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub threads: Vec<Thread>,
    /// The values of the failing run's events that are others here than [`Event::value`]; without
    /// a value where it is not known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub values: Vec<EventValue>,
    /// Has it been forced on the real program?
    pub replay: Replay,
    /// What replay has to say about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replay_note: Option<String>,
}

impl Alternate {
    /// What is known of how it ends: only a replay shows that the program does not fail under it. A run that passed did so
    /// once.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match (self.replay, self.same_path) {
            (Replay::Confirmed, _) => "does not fail",
            (_, true) => "does not fail in the model",
            (_, false) => "did not fail once",
        }
    }
}

/// The value of one event in one schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventValue {
    /// The event.
    pub event: String,
    /// What it reads or writes there.
    pub value: Option<String>,
}

/// The differential schedule projection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dsp {
    /// The projected events in the failing schedule's order.
    pub failing: Vec<String>,
    /// The projected events in the alternate's order.
    pub alternate: Vec<String>,
    /// The data-flows that differ.
    pub data_flows: DataFlows,
    /// Values in both schedules, for the projected reads and writes.
    pub values: Vec<ValuePair>,
    /// Blocks that the alternate keeps whole and the failing schedule does not: what should be
    /// atomic. Only of alternates along the same paths.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub atomic_blocks: Vec<AtomicBlock>,
}

/// Events of one thread that nothing else of the projection comes between in the alternate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicBlock {
    /// The thread.
    pub thread: String,
    /// The block's first event.
    pub first: String,
    /// The block's last event.
    pub last: String,
    /// The events of other threads that come between in the failing schedule, in its order.
    pub interrupted_by: Vec<String>,
}

/// The data-flows of one schedule only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFlows {
    /// In the failing schedule only.
    pub failing_only: Vec<DataFlow>,
    /// In the alternate only.
    pub alternate_only: Vec<DataFlow>,
}

/// A read and where its value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFlow {
    /// The writing event, or `init`.
    pub write: String,
    /// The reading event.
    pub read: String,
    /// The value that flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The reads of other data-flows that vary, from which it follows that this one does: it could
    /// not have stayed away once those were there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub follows_from: Vec<String>,
}

/// The value of one event in both schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuePair {
    /// The event.
    pub event: String,
    /// In the failing schedule.
    pub failing: Option<String>,
    /// In the alternate.
    pub alternate: Option<String>,
}

/// Figures. Times are in milliseconds of wall clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Events of the trace.
    pub events: u64,
    /// Reads and writes of shared cells among them.
    pub shared_accesses: u64,
    /// Constraints of the system.
    pub constraints: u64,
    /// Order and value variables.
    pub variables: u64,
    /// Places where the executor could not model what happened.
    pub model_gaps: u64,
    /// Rounds in which threads only waited, which are not among the events.
    #[serde(default)]
    pub rounds_left_out: u64,
    /// Context switches of the failing schedule.
    pub context_switches: u64,
    /// Data-flows of the failing schedule.
    pub data_flows: u64,
    /// Events of the DSP.
    pub dsp_events: u64,
    /// Data-flows of the failing schedule that the DSP shows as changed.
    pub dsp_data_flows: u64,
    /// Pairs that were tried for alternates.
    pub alternates_tried: u64,
    /// Runs among them that passed, but that could not be compared with the failing schedule.
    #[serde(default)]
    pub not_compared: u64,
    /// Symbolic execution.
    pub symex_ms: u64,
    /// Encoding and the failing schedule.
    pub solve_ms: u64,
    /// The root cause.
    pub root_cause_ms: u64,
    /// Alternates and DSP.
    pub alternates_ms: u64,
}

impl Solution {
    /// Is the cause no more than a possible one? What is taken from a schedule that the program did not follow may be
    /// wrong, a run which was ended while it went on might have come to its end, and where the program fails with
    /// other orders, too, the sentence may be beside the point. So it may be where its orders were only proposed, and neither a
    /// schedule that passes nor a run vouches for them.
    #[must_use]
    pub fn doubts_cause(&self) -> bool {
        // Neither of these says of an order that it is to blame.
        let is_doubtful = |cause: &&Cause| cause.pattern != STILL_RUNNING;
        let Some(cause) = self.cause.as_ref().filter(is_doubtful) else { return false };
        if self.had_one_thread() {
            return false;
        }
        let still_running = self.failure.as_ref().is_some_and(|it| it.kind == STILL_RUNNING);
        let proposed = self.root_cause.as_ref().is_some_and(|it| it.proposed);
        let unvouched = proposed && self.alternates.is_empty() && self.replay == Replay::NotRun;
        still_running || cause.in_vain || self.replay == Replay::Diverged || unvouched
    }

    /// Does the cause say that there was no other thread yet when the run failed?
    #[must_use]
    pub fn had_one_thread(&self) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.case.as_deref() == Some(ONE_THREAD))
    }

    /// The event with this identifier.
    #[must_use]
    pub fn event(&self, id: &str) -> Option<&Event> {
        if let Some(index) = id.strip_prefix('a').and_then(|index| index.parse::<usize>().ok()) {
            let mut alternates = self.alternates.iter();
            return alternates.find(|other| !other.same_path)?.events.get(index);
        }
        let index: usize = id.strip_prefix('e')?.parse().ok()?;
        self.events.get(index).filter(|event| event.id == id)
    }

    /// The recorded run's threads, and behind them those that only the runs of alternates have.
    pub fn all_threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().chain(self.alternates.iter().flat_map(|other| &other.threads))
    }

    /// The value of a projected event in both schedules.
    #[must_use]
    pub fn values_of(&self, id: &str) -> Option<&ValuePair> {
        self.dsp.as_ref()?.values.iter().find(|pair| pair.event == id)
    }

    /// How many operations a person has to understand: those that take part in the data-flow
    /// variations, that is, the reads and writes of all data-flows that only one of the two
    /// schedules has ([S] table 2, "Ops to Grok"), but for those that follow from others
    /// ([`DataFlow::follows_from`]). An initial value is no operation. Where no
    /// data-flow varies, as in deadlocks, which the paper does not have: the operations that the
    /// sentence about the cause names.
    #[must_use]
    pub fn operations_to_grok(&self) -> usize {
        self.operations(|flow| flow.follows_from.is_empty())
    }

    /// The same with data-flows that follow from others, as the paper counts.
    #[must_use]
    pub fn operations_of_all_variations(&self) -> usize {
        self.operations(|_| true)
    }

    fn operations(&self, counted: impl Fn(&DataFlow) -> bool) -> usize {
        let flows = self.dsp.iter().flat_map(|dsp| {
            dsp.data_flows.failing_only.iter().chain(&dsp.data_flows.alternate_only)
        });
        let flows = flows.filter(|flow| counted(flow));
        let ends = flows.flat_map(|flow| [flow.write.as_str(), flow.read.as_str()]);
        let operations: BTreeSet<&str> = ends.filter(|id| self.event(id).is_some()).collect();
        if !operations.is_empty() {
            return operations.len();
        }
        let named = self.cause.iter().flat_map(|cause| &cause.events);
        named.collect::<BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::lost_update;

    #[test]
    fn operations_to_grok_are_those_of_varying_data_flows_or_of_the_cause() {
        let mut solution = lost_update();
        let dsp = solution.dsp.as_mut().expect("a projection");
        dsp.data_flows.failing_only[0].write = "init".to_owned();
        dsp.data_flows.failing_only[0].read = "e2".to_owned();
        dsp.data_flows.alternate_only[0].write = "e1".to_owned();
        dsp.data_flows.alternate_only[0].read = "e2".to_owned();
        assert_eq!(solution.operations_to_grok(), 2);
        let dsp = solution.dsp.as_mut().expect("a projection");
        dsp.data_flows.failing_only[0].write = "e3".to_owned();
        assert_eq!(solution.operations_to_grok(), 3);
        let dsp = solution.dsp.as_mut().expect("a projection");
        let mut later = dsp.data_flows.failing_only[0].clone();
        later.read = "e0".to_owned();
        later.follows_from = vec!["e2".to_owned()];
        dsp.data_flows.failing_only.push(later);
        assert_eq!(solution.operations_to_grok(), 3);
        assert_eq!(solution.operations_of_all_variations(), 4);
        solution.dsp = None;
        let named = solution.cause.as_ref().expect("a cause").events.len();
        assert_eq!(solution.operations_to_grok(), named);
    }
}
