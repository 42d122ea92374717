//! Explaining with the real program as the judge: a failing schedule that it does not follow is
//! rejected and another one looked for, and of the alternates those that it follows are shown.

use super::confirm::{Confirmer, Finding};
use super::work::{Explained, Work};
use super::{PipelineError, ReplayOptions};
use crate::replay::{Claim, across};
use model::{Event, EventKind, EventTrace, Schedule};
use render::solution::Replay;
use solver::UnknownReason;
use std::path::Path;
use std::time::{Duration, Instant};
use symex::Execution;

/// After runs that took so long, ...
const LONG: Duration = Duration::from_secs(20);
/// ... and so many times as long as the recorded one, no other schedule is tried: what the program waits for outside
/// of what the scheduler controls is mostly the same.
const LONGER: u32 = 8;
/// Where the first runs took longer than this, other schedules are looked for before freed memory is.
const SOON: Duration = Duration::from_secs(5);

/// Of so many alternates that fail all the same, variants are tried.
const VARIED: usize = 2;

/// An explanation, and what replay says of it.
pub(super) struct Replayed<'t> {
    pub(super) explained: Explained<'t>,
    pub(super) failing: Finding,
    /// About the failing schedule.
    pub(super) notes: Vec<String>,
    /// In the order of the explanation's alternates.
    pub(super) alternates: Vec<Finding>,
    /// Where there are none, or the program follows none of them: an alternate along other paths.
    pub(super) across: across::Found,
}

/// Explains the failure and replays what is found, if the options say so. Of a long run whose end does not explain it, a
/// run along other paths is looked for before all schedules are: that takes seconds, and these take minutes.
pub(super) fn explain<'t>(
    directory: &Path,
    execution: &'t Execution,
    work: &mut Work<'_>,
) -> Result<Replayed<'t>, PipelineError> {
    work.across_first = work.options.replay.is_some()
        && work.options.alternates > 0
        && execution.report.still_running.is_empty()
        && !execution.trace.has_one_thread();
    let found = explain_once(directory, execution, work, None)?;
    work.across_first = false;
    let passes = |found: &across::CrossAlternate| found.replay == Replay::Confirmed;
    if !work.only_end || found.across.alternate.as_ref().is_some_and(passes) || work.is_over() {
        return Ok(found);
    }
    tracing::info!("nothing passes along other paths: all schedules are looked at");
    let end = work.end;
    // One that was not confirmed is about this failing schedule.
    let known = across::Found { alternate: None, ..found.across };
    let all = explain_once(directory, execution, work, Some(known))?;
    if all.explained.explanation.failing.is_some() {
        return Ok(all);
    }
    (work.end, work.only_end) = (end, true);
    Ok(Replayed { across: across::Found::default(), ..found })
}

/// `known`: what the search along other paths came to, where it was made.
fn explain_once<'t>(
    directory: &Path,
    execution: &'t Execution,
    work: &mut Work<'_>,
    known: Option<across::Found>,
) -> Result<Replayed<'t>, PipelineError> {
    let Some(options) = work.options.replay.clone() else {
        let mut explained = work.explain(&execution.trace)?;
        let alternates = keep(&mut explained, Vec::new(), work.options.alternates);
        let (failing, across) = (Finding::default(), across::Found::default());
        return Ok(Replayed { explained, failing, notes: vec![], alternates, across });
    };
    if execution.report.awaited_child.is_some() {
        let mut explained = work.explain(&execution.trace)?;
        let alternates = keep(&mut explained, Vec::new(), work.options.alternates);
        let (failing, across) = (Finding::default(), across::Found::default());
        let why = "not run: what the awaited process does is no part of the schedule".to_owned();
        return Ok(Replayed { explained, failing, notes: vec![why], alternates, across });
    }
    let confirmer = Confirmer::new(directory, execution, &options, work.deadline)?;
    let (explained, failing, mut notes) = search(&confirmer, &options, execution, work)?;
    let none = matches!(explained.explanation.verdict, explain::Verdict::NoSchedule);
    if (failing.replay == Replay::Diverged || none) && confirmer.ordinary_heap() {
        // It says more than what each of the schedules came to.
        notes.splice(0..0, heap_hint(&execution.trace));
    }
    let across = across::Found::default();
    let is_put_off = work.may_be_freed && failing.replay == Replay::Diverged;
    let mut replayed = Replayed { explained, failing, notes, alternates: Vec::new(), across };
    if is_put_off {
        return Ok(replayed);
    }
    replay_alternates(&confirmer, execution, work, &mut replayed)?;
    let none = replayed.explained.explanation.alternates.found.is_empty();
    // An alternate may lead a thread that the failure stopped into a failure of its own, of which
    // the log says nothing, as it says nothing of a further part of the condition that failed.
    let failed = |found: &Finding| found.replay != Replay::NotRun && !found.avoids();
    let in_vain = replayed.alternates.iter().all(failed);
    // Where the run may only have been slow, another one that ends shows something beside one that does not.
    let shows = match execution.report.still_running.is_empty() {
        true => replayed.failing.replay != Replay::NotRun,
        false => replayed.failing.replay == Replay::Confirmed,
    };
    // What another run got from outside made it pass, then: whatever its threads did came only behind that.
    let shows = shows && !execution.trace.has_one_thread();
    let explained = &replayed.explained;
    if (in_vain || has_value_that_came_back(explained)) && work.options.alternates > 0 && shows {
        let started = Instant::now();
        let how = (work.deadline, !in_vain);
        replayed.across = match known {
            Some(known) => known,
            None => confirmer.across(explained, execution, how)?,
        };
        work.timing.alternates += started.elapsed();
        let confirmed = |found: &across::CrossAlternate| found.replay == Replay::Confirmed;
        if !none && !replayed.across.alternate.as_ref().is_some_and(confirmed) {
            replayed.across.alternate = None;
        }
        if in_vain && replayed.across.alternate.is_some() {
            replayed.notes.extend(refused(&replayed.alternates));
        }
    }
    Ok(replayed)
}

/// Did a compare-exchange of the failing schedule take a value that had come back for one that had stayed? Along the recorded
/// paths it succeeds in any order.
fn has_value_that_came_back(explained: &Explained<'_>) -> bool {
    let failing = explained.explanation.failing.as_ref();
    failing.is_some_and(|failing| {
        let found = explain::came_back(&explained.trace, &failing.schedule, &failing.evaluation);
        !found.is_empty()
    })
}

/// Why the alternates along the recorded paths give way to one along others.
fn refused(alternates: &[Finding]) -> Option<String> {
    let why = alternates.iter().find_map(|refused| refused.note.as_deref())?;
    let they = match alternates.len() {
        1 => "the alternate along the recorded paths was rejected".to_owned(),
        count => format!("{count} alternates along the recorded paths were rejected"),
    };
    Some(format!("{they}: {why}"))
}

/// Where to look next, when no order explains the failure, or the program followed none that does, and
/// threads allocate or free what they share: the contents of memory that is used after it was freed are the allocator's.
fn heap_hint(trace: &EventTrace) -> Option<String> {
    let heap =
        |event: &Event| matches!(event.kind, EventKind::Allocate { .. } | EventKind::Free { .. });
    trace.events.iter().any(heap).then(|| {
        "if memory is used here after it was freed, no order of events decides alone what is read \
         there: record with --detect=use-after-free, and the run fails at such an access"
            .to_owned()
    })
}

type Found<'t> = (Explained<'t>, Finding, Vec<String>);

/// Looks for a failing schedule that the program follows.
fn search<'t>(
    confirmer: &Confirmer,
    options: &ReplayOptions,
    execution: &'t Execution,
    work: &mut Work<'_>,
) -> Result<Found<'t>, PipelineError> {
    let mut first: Option<(Explained<'t>, Finding)> = None;
    let mut rejected: Vec<String> = Vec::new();
    // What each rejected schedule is about in full, for when rejecting its cause rejects too much.
    let mut in_full = Vec::new();
    let mut only_causes = true;
    let mut running = Duration::ZERO;
    loop {
        let explained = work.explain(&execution.trace)?;
        let Some(failing) = &explained.explanation.failing else {
            let Some((explained, finding)) = first else {
                return Ok((explained, Finding::default(), Vec::new()));
            };
            if only_causes && !work.is_over() {
                only_causes = false;
                work.rejected = std::mem::take(&mut in_full);
                first = Some((explained, finding));
                continue;
            }
            // That the solver gave no answer is not that there is none.
            let undecided = matches!(explained.explanation.verdict, explain::Verdict::Unknown(_));
            rejected.push(match undecided {
                true => {
                    "the search for another failing schedule ended without an answer".to_owned()
                }
                false => "there is no other failing schedule along the recorded paths".to_owned(),
            });
            return Ok((explained, finding, rejected));
        };
        let started = Instant::now();
        let finding = confirmer.confirm(Claim::Fails, &explained, execution, &failing.schedule)?;
        running += started.elapsed();
        if finding.replay != Replay::Diverged {
            let mut notes: Vec<String> = finding.note.iter().cloned().collect();
            notes.extend(rejected);
            return Ok((explained, finding, notes));
        }
        // What orders threads in a library is not known to the model: the schedule that is as the recorded
        // run was, as far as its clock tells, keeps to it, and one with fewer context switches may not.
        if rejected.is_empty() && !work.is_over() {
            work.as_found = true;
            let other = &failing.schedule;
            let found = confirm_as_found(confirmer, execution, work, other, &mut running);
            work.as_found = false;
            if let Some((explained, finding)) = found? {
                return Ok((explained, finding, Vec::new()));
            }
        }
        // A run that ended here shows that the recorded one may only have been slow.
        if !execution.report.still_running.is_empty() {
            return Ok((explained, finding.clone(), finding.note.into_iter().collect()));
        }
        work.may_be_freed &= running < SOON;
        if work.may_be_freed {
            return Ok((explained, finding, Vec::new()));
        }
        let number = rejected.len() + 1;
        let why = finding.note.as_deref().unwrap_or("the program did not follow it");
        tracing::info!(number, why, "the failing schedule was rejected");
        // Where exactly the program left it is told of the first one.
        let why = if number == 1 { why } else { why.split(';').next().unwrap_or(why) };
        rejected.push(format!("failing schedule {number} was rejected: {why}"));
        work.rejected.push(explained.cause_of(failing, !only_causes));
        in_full.push(explained.cause_of(failing, true));
        first.get_or_insert((explained, finding));
        let enough = is_enough(running, confirmer.recorded());
        if enough && number <= options.attempts {
            rejected
                .push("no other failing schedule was tried, since these runs took long".to_owned());
        }
        if number > options.attempts || work.is_over() || enough {
            // The loop ends here with the first one, because it was inserted right before.
            if let Some((explained, finding)) = first {
                return Ok((explained, finding, rejected));
            }
            return Err(PipelineError::Explain(explain::ExplainError::NoFailure));
        }
    }
}

/// Did runs that left their schedules take so long that another one is not worth it?
fn is_enough(running: Duration, recorded: Duration) -> bool {
    running > LONG.max(recorded.saturating_mul(LONGER))
}

/// The failing schedule as it is found, when it is another one than that and the program follows it.
fn confirm_as_found<'t>(
    confirmer: &Confirmer,
    execution: &'t Execution,
    work: &mut Work<'_>,
    other: &Schedule,
    running: &mut Duration,
) -> Result<Option<(Explained<'t>, Finding)>, PipelineError> {
    let explained = work.explain(&execution.trace)?;
    let Some(failing) = &explained.explanation.failing else { return Ok(None) };
    if failing.schedule.order == other.order {
        return Ok(None);
    }
    let started = Instant::now();
    let finding = confirmer.confirm(Claim::Fails, &explained, execution, &failing.schedule)?;
    *running += started.elapsed();
    Ok((finding.replay == Replay::Confirmed).then_some((explained, finding)))
}

/// Replays alternates until as many as asked for are confirmed, and keeps those; others follow
/// where there are too few.
fn replay_alternates(
    confirmer: &Confirmer,
    execution: &Execution,
    work: &Work<'_>,
    replayed: &mut Replayed<'_>,
) -> Result<(), PipelineError> {
    let wanted = work.options.alternates;
    let mut confirmed = 0;
    let mut findings = Vec::new();
    for alternate in &replayed.explained.explanation.alternates.found {
        let finding = if confirmed >= wanted {
            Finding::default()
        } else if work.is_over() && !findings.is_empty() {
            Finding::not_run("there was no time left to run it")
        } else {
            let explained = &replayed.explained;
            confirmer.confirm(Claim::Passes, explained, execution, &alternate.schedule)?
        };
        confirmed += usize::from(finding.avoids());
        findings.push(finding);
    }
    let fails = |finding: &Finding| finding.fails || finding.fails_otherwise;
    if confirmed == 0 && wanted > 0 && findings.iter().any(fails) {
        findings.extend(replay_apart(confirmer, execution, work, replayed)?);
    }
    replayed.alternates = keep(&mut replayed.explained, findings, wanted);
    Ok(())
}

/// The program fails all the same under the alternates, maybe since threads that had only begun something fell into the
/// failing one's step: looks for a variant in which they keep apart, and adds it to the alternates.
fn replay_apart(
    confirmer: &Confirmer,
    execution: &Execution,
    work: &Work<'_>,
    replayed: &mut Replayed<'_>,
) -> Result<Option<Finding>, PipelineError> {
    let explained = &replayed.explained;
    let Some(failing) = &explained.explanation.failing else { return Ok(None) };
    let trace: &EventTrace = &explained.trace;
    let alternates = explained.explanation.alternates.found.iter().take(VARIED);
    let variants = alternates
        .flat_map(|alternate| explain::apart(trace, &alternate.schedule.order, alternate.flipped));
    for order in variants {
        if work.is_over() {
            break;
        }
        let variant = Schedule { order };
        // Of the explanation the alternate is wanted alone. Where it does not pass along the recorded paths, that is an
        // error, and it is no alternate.
        let shown = explain::explain_by_update(
            trace,
            &failing.schedule,
            Some(&variant),
            UnknownReason::TimeOut,
            &|| !work.is_over(),
        );
        let Ok(shown) = shown else { continue };
        let Some((alternate, dsp)) = shown.alternates.found.into_iter().zip(shown.dsps).next()
        else {
            continue;
        };
        let finding =
            confirmer.confirm(Claim::Passes, explained, execution, &alternate.schedule)?;
        if finding.avoids() {
            let explanation = &mut replayed.explained.explanation;
            explanation.alternates.found.push(alternate);
            explanation.dsps.push(dsp);
            return Ok(Some(finding));
        }
    }
    Ok(None)
}

/// Brings confirmed alternates before others, of these the ones that end well first, otherwise in their order,
/// and keeps as many as were asked for.
/// Leaves the alternates that are wanted, those that the program was seen to follow first; gives what is known of each.
pub(super) fn keep(
    explained: &mut Explained<'_>,
    mut findings: Vec<Finding>,
    wanted: usize,
) -> Vec<Finding> {
    let explanation = &mut explained.explanation;
    let found = std::mem::take(&mut explanation.alternates.found);
    let dsps = std::mem::take(&mut explanation.dsps);
    findings.resize(found.len(), Finding::default());
    let mut all: Vec<_> = found.into_iter().zip(dsps).zip(findings).collect();
    all.sort_by_key(|(_, finding)| (finding.replay != Replay::Confirmed, finding.fails));
    all.truncate(wanted);
    let mut kept = Vec::new();
    for ((alternate, dsp), finding) in all {
        explanation.alternates.found.push(alternate);
        explanation.dsps.push(dsp);
        kept.push(finding);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_enough_when_they_took_long_beside_the_recorded_one() {
        let [short, long] = [100, 5_000].map(Duration::from_millis);
        assert!(!is_enough(Duration::from_secs(19), short));
        assert!(is_enough(Duration::from_secs(21), short));
        assert!(!is_enough(Duration::from_secs(39), long));
        assert!(is_enough(Duration::from_secs(41), long));
    }
}
