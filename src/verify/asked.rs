//! Asking a run of the new program that passed.

use super::runs::Taken;
use crate::fix::{FixError, Recorded};
use crate::pipeline::PipelineError;
use ir::gates::gates;
use ir::intrinsics;
use ir::types::{InstId, InstKind};
use repair::{APART, Limits, Possible, Run, possible, possible_at_all, possible_elsewhere};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use symex::{Execution, Gap, GapKind, SymexError};

/// What a run said, with its events; or why it says nothing.
pub(super) type Answered = Result<(Possible, Execution), Unasked>;

/// Why a run says nothing.
#[derive(Debug)]
pub(super) enum Unasked {
    /// It was not walked in its time. Who looks for something again and again fills a log in a run that is held up.
    TooLong,
    /// What holds for other runs as well.
    Unfit(String),
}

/// What is asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Where the order can come up, of some places first.
    Where,
    /// Of all of them.
    Elsewhere,
    /// Whether it can at all.
    Whether,
}

/// Asks a run that passed whether the order can still come up; where it has no such accesses, because creating and joining
/// threads keeps them in order now, with events of these. Gives its events, too. The error says why there is no answer.
/// A walk of it takes no longer than `time`.
pub(super) fn asked_of(
    bug: &repair::Bug<'_>,
    (taken, question): (&Taken, Question),
    time: Duration,
    budget: &dyn Fn() -> bool,
) -> Result<Answered, FixError> {
    let open = |ordered: bool| {
        let began = Instant::now();
        let is_left = || began.elapsed() < time && budget();
        Recorded::open_while(&taken.directory, ordered, &is_left)
    };
    let ask = |recorded: Result<Recorded, PipelineError>| -> Result<Answered, FixError> {
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(PipelineError::Symex(SymexError::BudgetSpent)) => return Ok(Err(Unasked::TooLong)),
            Err(error) => {
                let why = format!("a run that passed cannot be executed: {error}");
                return Ok(Err(Unasked::Unfit(why)));
            }
        };
        let functions = functions(&recorded);
        let execution = recorded.execution;
        let gaps = execution.report.gap_count();
        if gaps > 0 && are_in_the_way(bug, &execution) {
            let why = format!("a run that passed has {gaps} gaps in the model");
            return Ok(Err(Unasked::Unfit(why)));
        }
        let left = || match budget() {
            true => Duration::MAX,
            false => Duration::ZERO,
        };
        let limits = Limits { time: Duration::from_secs(60), memory_mb: None, left: &left };
        let (trace, points) = (&execution.trace, &execution.points);
        let run = Run { trace, points, functions: &functions, incomplete: gaps > 0 };
        let answer = match question {
            Question::Where => possible(bug, run, limits)?,
            Question::Elsewhere => possible_elsewhere(bug, run, limits)?,
            Question::Whether => possible_at_all(bug, run, limits)?,
        };
        Ok(Ok((answer, execution)))
    };
    let first = ask(open(false))?;
    let nothing = |answer: &Possible| match answer {
        Possible::Untouched(_) => true,
        Possible::Unknown(why) => why == APART,
        _ => false,
    };
    match &first {
        Ok((answer, _)) if nothing(answer) && budget() => {
            let again = ask(open(true))?;
            Ok(match again {
                Ok((answer, execution)) if !nothing(&answer) => Ok((answer, execution)),
                _ => first,
            })
        }
        _ => Ok(first),
    }
}

/// Could what is not modelled be about the cause: locks and signals, places that are not known, or anything in the cause's
/// own functions? Elsewhere values alone are missing.
fn are_in_the_way(bug: &repair::Bug<'_>, execution: &Execution) -> bool {
    let of_cause: BTreeSet<&str> =
        bug.events.iter().map(|id| bug.trace.event(*id).site().function.as_str()).collect();
    let told: u64 = execution.gaps.iter().map(|gap| gap.times).sum();
    let is_in_the_way = |gap: &Gap| match gap.what {
        GapKind::Synchronisation
        | GapKind::NotHeld
        | GapKind::Failure
        | GapKind::Stopped
        | GapKind::UnknownAddress => true,
        GapKind::Instruction(_)
        | GapKind::Intrinsic(_)
        | GapKind::External(_)
        | GapKind::UnknownMemory
        | GapKind::WrongValue(_)
        | GapKind::WrongBranch
        | GapKind::FloatFormat
        | GapKind::Width => of_cause.contains(gap.function.as_str()),
    };
    told < execution.report.gap_count() || execution.gaps.iter().any(is_in_the_way)
}

/// The functions of the program, also those that are inlined wherever they are called; without those of which the run has done
/// all that another thread could see, and called all that they call. What such a function does not do there it does nowhere.
fn functions(recorded: &Recorded) -> BTreeSet<String> {
    let events = recorded.execution.trace.events.iter();
    let done: BTreeSet<(&str, u32, u32)> = events
        .flat_map(|event| event.stack.iter())
        .map(|site| (site.function.as_str(), site.line, site.column))
        .collect();
    let mut functions = BTreeSet::new();
    for recorded in &recorded.recording.modules {
        let module = &recorded.ir;
        let debug = &module.debug;
        for function in &module.functions {
            let seen: BTreeSet<_> =
                gates(module, function).into_iter().map(|gate| gate.instruction).collect();
            for (instruction, id) in function.instructions.iter().zip((0..).map(InstId)) {
                let calls = match &instruction.kind {
                    InstKind::Call(call) | InstKind::Invoke { call, .. } => {
                        intrinsics::called(module, call).is_none()
                    }
                    _ => false,
                };
                if !calls && !seen.contains(&id) {
                    continue;
                }
                if instruction.loc.is_none() {
                    functions.insert(ir::name::function_name(module, function));
                }
                let mut next = instruction.loc;
                let mut is_done = None;
                while let Some(place) = next.and_then(|loc| debug.locations.get(loc.index())) {
                    let Some(scope) = debug.scopes.get(place.scope.index()) else { break };
                    let key = (scope.function.as_str(), place.line, place.column);
                    if !*is_done.get_or_insert_with(|| done.contains(&key)) {
                        functions.insert(scope.function.clone());
                    }
                    next = place.inlined_at;
                }
            }
        }
    }
    functions
}
