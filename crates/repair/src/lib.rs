//! Repairs: what a person could change so that a run cannot fail this way again, each checked
//! against the recorded run before anybody sees it.
//!
//! A repair is an edit of the event trace (`edit`): sections of a lock that are added or made
//! longer, statements that change places, signals that become broadcasts. The edited trace goes
//! through the same verifier, encoders, solver and evaluator as the recorded one (`check`):
//!
//! * no schedule of it fails. The solver has to prove it; without an answer nothing is claimed;
//! * some schedule of it passes, so that the repair does not just keep the program from running;
//! * nobody waits for anybody in a circle that was not there before (`waits`).
//!
//! Where the candidates come from is the cause that `explain` found (`candidates`). What is shown
//! holds along the recorded paths; replaying the program with the repair's order enforced is the
//! caller's, who can run programs. This crate does no IO and reads no clock.

mod awaited;
mod beside;
mod candidates;
mod check;
mod closed;
mod contended;
mod decisions;
mod edit;
mod end;
mod enforce;
mod ordered;
mod possible;
mod runs;
mod rust;
mod sections;
mod source;
mod statements;
mod uses;
mod waits;
mod words;

pub use candidates::{Guard, Kind, Repair};
pub use check::{Checked, Limits, Refusal, Verdict};
pub use enforce::{Rule, Stretch};
pub use ordered::{Ordered, ordered};
pub use possible::{
    APART, HAS_NO, Possible, Run, Way, Ways, possible, possible_at_all, possible_elsewhere,
};
pub use sections::begins_wait;
pub use source::{Span, span as lines};
pub use uses::{How, LineCall, LineUse, Lines, Uses};

use closed::Closed;
use end::End;
use explain::Pattern;
use model::{ConditionId, EventId, EventTrace};
use solver::SolverError;
use std::time::Duration;

/// What is to be repaired: the cause of a failing run, as `explain` found it.
#[derive(Clone, Copy, Debug)]
pub struct Bug<'a> {
    /// The recorded run.
    pub trace: &'a EventTrace,
    /// The pattern of the cause.
    pub pattern: Pattern,
    /// The events that the sentence about the cause names, in its order.
    pub events: &'a [EventId],
    /// The failing schedule.
    pub schedule: &'a [EventId],
    /// Functions that the program runs as handlers of signals: nothing may block in them.
    pub handlers: &'a [String],
    /// What lines compute for each other that no other thread sees.
    pub uses: Uses<'a>,
}

#[cfg(test)]
impl<'a> Bug<'a> {
    /// A bug of a trace made by hand, of whose failing schedule nobody asks more than these events.
    fn by_hand(trace: &'a EventTrace, pattern: Pattern, events: &'a [EventId]) -> Self {
        Self { trace, pattern, events, schedule: events, handlers: &[], uses: Uses::NONE }
    }
}

/// Repairs that passed the checks, the one to try first in front, and how many did not.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    /// Those that passed.
    pub found: Vec<Repair>,
    /// Those that did not, with the reason; never shown as repairs.
    pub refused: Vec<(Repair, Refusal)>,
}

/// Looks for repairs and checks them, until `wanted` have passed or there are no more candidates. Those with which the
/// program was seen to `fail` are none; what goes further than one of them may be.
///
/// Of a long run the end is looked at first, and the whole of it where no repair holds there. Where the failure only tells
/// what a check of the run has found (`told_of`), what came before that is the end.
///
/// # Errors
/// When the solver breaks. That it gives no answer in time refuses the candidate
/// ([`Refusal::Undecided`]).
pub fn repairs(
    bug: &Bug<'_>,
    told_of: Option<ConditionId>,
    fail: &[Repair],
    wanted: usize,
    limits: Limits<'_>,
) -> Result<Repairs, SolverError> {
    for end in End::of(bug, told_of) {
        let search = Search { bug: &end.bug(bug), whole: Some(bug.trace), fail, wanted };
        let mut repairs = of_run(search, End::limits(limits))?;
        tracing::info!(
            events = end.len(),
            found = repairs.found.len(),
            refused = repairs.refused.len(),
            "looked for repairs at the end"
        );
        if !repairs.found.is_empty() {
            repairs.all_mut().for_each(|repair| end.recorded(repair));
            return Ok(repairs);
        }
        if !limits.is_left() {
            break;
        }
    }
    of_run(Search { bug, whole: None, fail, wanted }, limits)
}

/// What to look for.
#[derive(Clone, Copy)]
struct Search<'a> {
    bug: &'a Bug<'a>,
    /// The run whose end the bug's is.
    whole: Option<&'a EventTrace>,
    fail: &'a [Repair],
    wanted: usize,
}

impl Repairs {
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Repair> {
        let refused = self.refused.iter_mut().map(|(repair, _)| repair);
        self.found.iter_mut().chain(refused)
    }
}

fn of_run(search: Search<'_>, limits: Limits<'_>) -> Result<Repairs, SolverError> {
    let bug = search.bug;
    let closed = Some(bug).filter(|bug| bug.pattern == Pattern::Deadlock).and_then(Closed::of);
    let Some(closed) = closed else { return of_trace(search, limits) };
    let mut repairs = of_trace(Search { bug: &closed.bug(bug), ..search }, limits)?;
    repairs.all_mut().for_each(|repair| closed.recorded(repair));
    Ok(repairs)
}

/// Template arguments longer than this are left out.
const ARGUMENTS: usize = 30;

/// A step without long template arguments: `get<..>`.
fn without_arguments(step: &str) -> String {
    let mut plain = String::new();
    let mut rest = step;
    while let Some(open) = rest.find('<') {
        let (before, behind) = rest.split_at(open);
        plain.push_str(before);
        let mut depth = 0;
        let mut last = ' ';
        let close = behind.char_indices().find_map(|(at, c)| {
            match c {
                '<' => depth += 1,
                '>' if last != '-' => depth -= 1,
                _ => {}
            }
            last = c;
            (depth == 0).then_some(at + 1)
        });
        let (arguments, next) = behind.split_at(close.unwrap_or(1));
        let long = arguments.len() > ARGUMENTS && before.ends_with(|c: char| c.is_alphanumeric());
        plain.push_str(if long { "<..>" } else { arguments });
        rest = next;
    }
    plain.push_str(rest);
    plain
}

/// Is the cause an order of which each of two threads has two steps, one behind the other's: a decision and what was done
/// because of it, and what that overtook?
fn parts_two_steps(bug: &Bug<'_>) -> bool {
    let [a, b, c, d] = bug.events else { return false };
    let thread = |id: &EventId| bug.trace.event(*id).thread;
    bug.pattern == Pattern::Order
        && thread(a) == thread(c)
        && thread(b) == thread(d)
        && thread(a) != thread(b)
}

/// Once there is a repair, further candidates get only this part of the time for a question.
const FURTHER: u32 = 8;
/// Where a candidate was left undecided, the next one is likely to be as hard. It gets half the time, down to this part.
const HALVINGS: u32 = 3;
/// But it has so much, where a question has that at all.
const LEAST: Duration = Duration::from_secs(5);

/// The time for the next candidate of a search in which a question has `time`, when there is a repair already or not,
/// and so many candidates were left undecided.
fn time_of_next(time: Duration, is_further: bool, undecided: u32) -> Duration {
    match is_further {
        true => time / FURTHER,
        false => (time / (1 << undecided.min(HALVINGS))).max(time.min(LEAST)),
    }
}

fn of_trace(search: Search<'_>, limits: Limits<'_>) -> Result<Repairs, SolverError> {
    let Search { bug, whole, fail, wanted } = search;
    let mut repairs = Repairs::default();
    let mut undecided = 0;
    for mut candidate in candidates::all(bug) {
        let steps = candidate.repair.steps.iter_mut();
        steps.for_each(|step| *step = without_arguments(step));
        if repairs.found.len() >= wanted || !limits.is_left() {
            break;
        }
        let known = |other: &Repair| other.says_the_same(&candidate.repair);
        let better = |other: &Repair| known(other) || candidate.repair.is_variant_of(other);
        if fail.iter().any(known)
            || repairs.found.iter().any(better)
            || repairs.refused.iter().any(|(other, _)| known(other))
        {
            continue;
        }
        // Where nothing may come between two steps, which of two threads goes first is all the same.
        let keeps = |other: &Repair| {
            matches!(other.kind, Kind::HoldAcross | Kind::CriticalSection | Kind::OneStep)
        };
        if (bug.pattern == Pattern::Atomicity || parts_two_steps(bug))
            && matches!(candidate.repair.kind, Kind::WaitFor | Kind::StartLater)
            && repairs.found.iter().any(keeps)
        {
            continue;
        }
        let mut repair = candidate.repair;
        let time = time_of_next(limits.time, !repairs.found.is_empty(), undecided);
        match check::check((bug.trace, whole), &candidate.edited, Limits { time, ..limits })? {
            Verdict::Holds(checked) => {
                tracing::info!(kind = repair.kind.name(), "a repair holds");
                repair.checked = Some(checked);
                repairs.found.push(repair);
            }
            Verdict::Refused(why) => {
                tracing::info!(kind = repair.kind.name(), %why, steps = ?repair.steps, "a repair is refused");
                undecided += u32::from(matches!(why, Refusal::Undecided(_)));
                repairs.refused.push((repair, why));
            }
        }
    }
    Ok(repairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::Site;

    /// A thread reserves a place under a lock, says that something is there, and puts it there behind that.
    #[test]
    fn where_the_program_failed_with_a_repair_what_goes_further_is_tried() {
        let text = "
            sem full 0
            a: [take] lock m
            a: [reserve] W at 1
            a: [give] unlock m
            a: [say] post full
            a: [put] W place 1
            b: [wait] sem-wait full
            b: [get] R place -> p
            b: fail p == 0
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places =
            [("take", 25), ("reserve", 26), ("give", 27), ("say", 28), ("put", 29), ("wait", 34)];
        for (label, line) in places.into_iter().chain([("get", 36)]) {
            let function = if line < 30 { "put_down" } else { "take_up" };
            let (file, function) = ("quay.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let events = ["get", "put"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Order, &events);
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        let moves = |fail: &[Repair]| -> Vec<Repair> {
            let found = repairs(&bug, None, fail, 10, limits).expect("the solver answers").found;
            found.into_iter().filter(|repair| repair.kind == Kind::Move).collect()
        };
        let lines = |found: &[Repair]| -> Vec<Vec<u32>> {
            found.iter().map(|repair| repair.places.iter().map(|p| p.first).collect()).collect()
        };
        let first = moves(&[]);
        assert_eq!(lines(&first), [[29, 28]], "what goes further is not told besides");
        assert_eq!(lines(&moves(&first)), [[29, 26]]);
    }

    /// Who is not told to wait for a user need not wait for one where the look and what follows from it are one step.
    #[test]
    fn a_decision_waits_for_nobody_where_its_step_is_kept_whole() {
        let text = "
            cell loaded 32 = 1
            a: [find] lock m
            a: [seen] R loaded -> t
            a: assume t == 1
            a: [give] unlock m
            a: [again] lock m
            a: [pin] W users 1
            a: [done] unlock m
            a: [use] R loaded -> l
            a: fail l == 0
            b: [take] lock m
            b: [look] R users -> u
            b: assume u == 0
            b: [drop] W loaded 0
            b: [back] unlock m
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [("find", 3), ("seen", 4), ("give", 5), ("again", 7), ("pin", 8), ("done", 9)];
        let others = [("use", 10), ("take", 20), ("look", 21), ("drop", 22), ("back", 23)];
        for (label, line) in places.into_iter().chain(others) {
            let function = if line < 20 { "dispatch" } else { "unload" };
            let (file, function) = ("host.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let events = ["look", "pin", "drop", "use"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Order, &events);
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        assert!(parts_two_steps(&bug));
        let found = repairs(&bug, None, &[], 10, limits).expect("the solver answers").found;
        let has = |kind: Kind| found.iter().any(|repair| repair.kind == kind);
        assert!(has(Kind::HoldAcross) || has(Kind::CriticalSection), "{found:?}");
        assert!(!has(Kind::WaitFor), "{found:?}");
    }

    /// Who comes between two steps of its creator was not created too early.
    #[test]
    fn nobody_is_created_later_where_two_steps_are_kept_together() {
        let text = "
            cell top 32 = 0
            t0: [create] fork a
            t0: [look] R top -> t
            t0: assume t == 0
            t0: [put] W top t + 1
            a: [take] W top 5
            t0: [end] join a
            t0: [check] R top -> e
            t0: fail e == 1
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [("create", 51), ("look", 52), ("put", 53), ("take", 30), ("end", 55)];
        for (label, line) in places.into_iter().chain([("check", 56)]) {
            let function = if line < 50 { "steal" } else { "main" };
            let (file, function) = ("deque.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let events = ["look", "take", "put"].map(|label| parsed.event(label));
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        let kinds = |pattern: Pattern| -> Vec<Kind> {
            let bug = Bug::by_hand(&parsed.trace, pattern, &events);
            let found = repairs(&bug, None, &[], 10, limits).expect("the solver answers").found;
            found.iter().map(|repair| repair.kind).collect()
        };
        let found = kinds(Pattern::Atomicity);
        assert!(found.contains(&Kind::CriticalSection), "{found:?}");
        assert!(!found.contains(&Kind::StartLater), "{found:?}");
    }

    /// A lock of its own over what the program's lock is held for may be had by who waits for that one.
    #[test]
    fn no_new_lock_is_told_of_where_the_programs_own_is_enough() {
        let text = "
            cell idle 32 = 1
            a: [take] lock m
            a: [look] R idle -> i
            a: assume i == 1
            a: [give] unlock m
            a: [again] lock m
            a: [use] R idle -> l
            a: [done] unlock m
            a: fail l == 0
            b: [in] lock m
            b: [drop] W idle 0
            b: [out] unlock m
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let places = [("take", 3), ("look", 4), ("give", 5), ("again", 7), ("use", 8), ("done", 9)];
        for (label, line) in places.into_iter().chain([("in", 20), ("drop", 21), ("out", 22)]) {
            let function = if line < 20 { "reap" } else { "borrow" };
            let (file, function) = ("pool.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        let events = ["look", "drop", "use"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        let locks = |fail: &[Repair]| -> Vec<bool> {
            let found = repairs(&bug, None, fail, 10, limits).expect("the solver answers").found;
            found.iter().filter_map(|repair| repair.lock.as_ref()).map(|lock| lock.new).collect()
        };
        assert_eq!(locks(&[]), [false]);
        // Where the program fails with it all the same, there is another one.
        let own = repairs(&bug, None, &[], 10, limits).expect("the solver answers").found;
        assert!(locks(&own).contains(&true));
    }

    /// Seven candidates that are all as hard would take seven eighths of the time of all.
    #[test]
    fn what_is_left_undecided_takes_less_time_again() {
        let question = Duration::from_secs(80);
        let times = [0, 1, 2, 3, 4].map(|undecided| time_of_next(question, false, undecided));
        assert_eq!(times.map(|time| time.as_secs()), [80, 40, 20, 10, 10]);
        assert_eq!(time_of_next(question, true, 2).as_secs(), 10);
        // Where there is little time, it is not made so short that nothing can be decided.
        let short =
            [0, 1, 9].map(|undecided| time_of_next(Duration::from_secs(8), false, undecided));
        assert_eq!(short.map(|time| time.as_secs()), [8, 5, 5]);
        let shorter = Duration::from_secs(3);
        assert_eq!(time_of_next(shorter, false, 2), shorter);
    }

    #[test]
    fn long_template_arguments_are_left_out() {
        let name = "get<std::__cxx11::basic_string<char, std::char_traits<char>> (&)(int)>";
        let step = format!("hold `this->m_` at a.hpp:3 in {name}");
        assert_eq!(without_arguments(&step), "hold `this->m_` at a.hpp:3 in get<..>");
        for step in ["hold `a->m` in get<int>", "call operator<< (a.cc:3)", "in a < b"] {
            assert_eq!(without_arguments(step), step);
        }
    }
}
