//! The answer's sentence about the cause.

use super::across::Identifiers;
use crate::replay::across::{CrossAlternate, Told};
use encoders::models::tso::Late;
use explain::{CauseEvent, Explanation, Passing, Pattern, Side};
use model::EventTrace;
use render::Solution;
use render::solution::{Cause, LateWrite, Replay};
use symex::{Gap, GapKind};

/// Adds the cause in one sentence. `across` is the alternate along other paths, where the answer
/// shows one, and whether an alternate along the recorded paths failed all the same, or in another way; `trace` is the one that
/// the explanation is about.
pub fn add_cause(
    solution: &mut Solution,
    trace: &EventTrace,
    explanation: &Explanation,
    across: Option<(&CrossAlternate, bool)>,
) {
    let Some(failing) = &explanation.failing else { return };
    // What its thread does behind a check has nothing to do with how that goes.
    let check = across.and_then(|(found, _)| match found.told {
        Told::Check(check) => Some(check),
        Told::Failure | Told::Interrupted(_) => None,
    });
    let at_check = check.and_then(|check| encoders::failing_at_check(trace, check));
    let trace = at_check.as_ref().unwrap_or(trace);
    let side =
        Side { trace, schedule: &failing.schedule, evaluation: &failing.evaluation, points: None };
    let along = explanation.alternates.found.first().zip(explanation.dsps.first());
    let passing = match (across, along) {
        (Some((found, in_vain)), _) => Passing::OtherPaths {
            run: Side {
                trace: &found.trace,
                schedule: &found.schedule,
                evaluation: &found.evaluation,
                points: None,
            },
            across: &found.across,
            in_vain,
        },
        (None, Some((alternate, dsp))) => Passing::SamePaths { alternate, dsp },
        (None, None) => Passing::None,
    };
    let identifiers =
        across.map(|(found, _)| Identifiers::new(&found.across.matching, &found.trace));
    let identifier = |event: &CauseEvent| match (event, &identifiers) {
        (CauseEvent::Passing(id), Some(identifiers)) => identifiers.of(*id),
        (CauseEvent::Failing(id) | CauseEvent::Passing(id), _) => id.to_string(),
    };
    let cause = explain::cause(side, explanation.root_cause.as_ref(), passing);
    let replay = solution.replay;
    solution.cause = cause.map(|mut cause| {
        let doubt = doubted(cause.pattern, replay);
        // That the program did otherwise is no wonder where no order of threads led to the failure.
        if let Some(doubt) = doubt.filter(|_| !trace.has_one_thread()) {
            cause.sentence = doubt.to_owned();
        }
        told(cause, &identifier)
    });
}

/// A cause in the answer's form.
fn told(cause: explain::Cause, identifier: &dyn Fn(&CauseEvent) -> String) -> Cause {
    Cause {
        pattern: cause.pattern.name().to_owned(),
        case: cause.case.map(str::to_owned),
        sentence: cause.sentence,
        variables: cause.variables,
        events: cause.events.iter().map(identifier).collect(),
        names: cause.names,
        fingerprint: cause.fingerprint,
        in_vain: false,
    }
}

/// Adds the late writes that the failing schedule needs, and the cause that they are. The trace is the one in which
/// they come late.
pub fn add_late_writes(
    solution: &mut Solution,
    trace: &EventTrace,
    explanation: &Explanation,
    late: &[Late],
) {
    solution.late_writes = late
        .iter()
        .map(|late| LateWrite {
            write: late.write.to_string(),
            overtaken_by: late.overtaken_by.iter().map(ToString::to_string).collect(),
        })
        .collect();
    let Some(failing) = &explanation.failing else { return };
    let side =
        Side { trace, schedule: &failing.schedule, evaluation: &failing.evaluation, points: None };
    let late: Vec<_> = late.iter().map(|late| (late.write, late.overtaken_by.as_slice())).collect();
    let identifier = |event: &CauseEvent| match event {
        CauseEvent::Failing(id) | CauseEvent::Passing(id) => id.to_string(),
    };
    solution.cause = explain::late_write(side, &late).map(|cause| told(cause, &identifier));
}

/// What is to be said instead where every schedule along the recorded paths is claimed to fail, and the
/// program passed under one of them: then something decides that no order of the events shows.
fn doubted(pattern: Pattern, replay: Replay) -> Option<&'static str> {
    (pattern == Pattern::EverySchedule && replay == Replay::Diverged).then_some(
        "the failure hangs on something that is not modelled: every schedule along the recorded \
         paths should fail, but the program did not under the one that it was given. What threads \
         tell each other through pipes, sockets and files is not seen, nor is their order there",
    )
}

/// No run is known that passes, and the program failed all the same when it was run with other orders, if that is so: then a
/// sentence about an order is no more than possible. That threads wait in a circle, or that memory was used behind
/// its end, is a failure by itself.
pub fn tried_in_vain(solution: &mut Solution, in_vain: bool) {
    let by_itself = [
        Pattern::Deadlock,
        Pattern::UseAfterFree,
        Pattern::DoubleFree,
        Pattern::LateWrite,
        Pattern::EverySchedule,
    ];
    let Some(cause) = &mut solution.cause else { return };
    cause.in_vain = in_vain && by_itself.iter().all(|pattern| pattern.name() != cause.pattern);
}

/// Where every schedule along the recorded paths fails, but so many runs on other paths passed that could
/// not be compared, the order of events is the cause after all; only which is not known.
pub fn passed_elsewhere(cause: &mut Cause, runs: usize) {
    if cause.pattern == Pattern::EverySchedule.name() {
        let runs = match runs {
            1 => "one run".to_owned(),
            _ => format!("{runs} runs"),
        };
        cause.sentence = format!(
            "every schedule along the recorded paths fails, and {runs} with other orderings passed on \
             paths that could not be compared: which order decides is not known"
        );
    }
}

/// Where every schedule along the recorded paths fails, but a thread read what no thread of the run had written
/// there, or did more than is known: then it is not known what the failure hangs on. So many threads of the process were
/// not recorded.
pub fn came_from_outside(cause: &mut Cause, gaps: &[Gap], unrecorded: u64) {
    if cause.pattern != Pattern::EverySchedule.name() {
        return;
    }
    let place = |gap: &Gap| {
        let file = gap.site.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", gap.site.line)
    };
    let is_read = |gap: &&Gap| matches!(&gap.what, GapKind::WrongValue(kind) if kind == "load");
    let read = gaps.iter().find(is_read).filter(|gap| gap.site.line != 0);
    let stopped = gaps.iter().find(|gap| gap.what == GapKind::Stopped);
    let sentence = if let Some(gap) = read {
        let (whose, why) = match unrecorded {
            0 => {
                ("this process alone", "its threads wrote there, as in memory that processes share")
            }
            _ => (
                "the recorded threads",
                "them wrote there, as one of those that were not recorded may have",
            ),
        };
        format!(
            "every schedule of {whose} fails, but {} read at {} what none of {why}: what others did in between, \
             and whether its order is the cause, is not known",
            gap.thread,
            place(gap)
        )
    } else if let Some(gap) = stopped {
        format!(
            "every schedule fails in which {} does nothing behind {}, where its walk stopped: what it did there, and \
             whether its order is the cause, is not known",
            gap.thread,
            place(gap)
        )
    } else if unrecorded > 0 {
        let (threads, they) = match unrecorded {
            1 => ("another thread was".to_owned(), "it"),
            number => (format!("{number} others were"), "they"),
        };
        format!(
            "every schedule of the recorded threads fails, but {threads} not recorded: what {they} did, and whether its \
             order is the cause, is not known"
        )
    } else {
        return;
    };
    cause.sentence = sentence;
    // It is not known that there was one thread.
    cause.case = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Site;

    #[test]
    fn an_order_is_in_doubt_where_others_were_tried_in_vain() {
        let mut solution = Solution::default();
        tried_in_vain(&mut solution, true);
        assert_eq!(solution.cause, None);
        for (pattern, doubted) in [("order", true), ("atomicity", true), ("deadlock", false)] {
            let pattern = pattern.to_owned();
            solution.cause = Some(Cause { pattern, ..Cause::default() });
            tried_in_vain(&mut solution, false);
            assert!(!solution.doubts_cause());
            tried_in_vain(&mut solution, true);
            assert_eq!(solution.doubts_cause(), doubted);
        }
    }

    #[test]
    fn what_a_replay_refutes_is_not_said() {
        let order = Pattern::EverySchedule;
        assert!(doubted(order, Replay::Diverged).is_some());
        assert_eq!(doubted(order, Replay::Confirmed), None);
        assert_eq!(doubted(order, Replay::NotRun), None, "nobody knows");
        assert_eq!(doubted(Pattern::Order, Replay::Diverged), None);
    }

    #[test]
    fn what_came_from_outside_is_said() {
        let gap = |kind: &str, line: u32| Gap {
            thread: "t0.1".to_owned(),
            site: Site { file: "dir/jobs.c".to_owned(), line, column: 1, function: "f".to_owned() },
            function: "f".to_owned(),
            what: GapKind::WrongValue(kind.to_owned()),
            detail: String::new(),
            times: 1,
        };
        let told_with = |pattern: Pattern, gaps: &[Gap], unrecorded: u64| {
            let (pattern, sentence) = (pattern.name().to_owned(), "before".to_owned());
            let case = Some("one-thread".to_owned());
            let mut cause = Cause { pattern, sentence, case, ..Cause::default() };
            came_from_outside(&mut cause, gaps, unrecorded);
            assert_eq!(cause.case.is_some(), cause.sentence == "before");
            cause.sentence
        };
        let sentence = |pattern: Pattern, gaps: &[Gap]| told_with(pattern, gaps, 0);
        let told = sentence(Pattern::EverySchedule, &[gap("load", 7)]);
        assert!(
            told.contains("t0.1 read at jobs.c:7 what none of its threads wrote there"),
            "{told}"
        );
        let told = told_with(Pattern::EverySchedule, &[gap("load", 7)], 2);
        assert!(told.contains("one of those that were not recorded"), "{told}");
        for gaps in [vec![], vec![gap("call", 7)], vec![gap("load", 0)]] {
            assert_eq!(sentence(Pattern::EverySchedule, &gaps), "before");
        }
        assert_eq!(sentence(Pattern::Order, &[gap("load", 7)]), "before");
        let stopped = Gap { what: GapKind::Stopped, ..gap("load", 7) };
        let told = sentence(Pattern::EverySchedule, std::slice::from_ref(&stopped));
        assert!(told.contains("t0.1 does nothing behind jobs.c:7"), "{told}");
        assert_eq!(sentence(Pattern::Order, &[stopped]), "before");
        let told = told_with(Pattern::EverySchedule, &[], 3);
        assert!(told.contains("3 others were not recorded"), "{told}");
        assert_eq!(told_with(Pattern::Order, &[], 3), "before");
    }

    #[test]
    fn runs_that_passed_elsewhere_keep_the_order_to_blame() {
        let sentence = |pattern: Pattern, runs: usize| {
            let pattern = pattern.name().to_owned();
            let mut cause = Cause { pattern, sentence: "before".to_owned(), ..Cause::default() };
            passed_elsewhere(&mut cause, runs);
            cause.sentence
        };
        assert!(sentence(Pattern::EverySchedule, 1).contains("and one run with"));
        assert!(sentence(Pattern::EverySchedule, 7).contains("and 7 runs with"));
        assert_eq!(sentence(Pattern::Order, 7), "before");
    }
}
