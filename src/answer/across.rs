//! The answer's part about an alternate that leaves the recorded paths.

use super::{Follows, Names, flow_count, reads_behind};
use crate::replay::across::{CrossAlternate, Told};
use explain::{Across, Flipped, Interrupted, Matching};
use model::evaluate::Evaluation;
use model::{Event, EventId, EventTrace, ReadRef, Site, WriteSource};
use render::Solution;
use render::solution::{
    Alternate, Check, DataFlow, DataFlows, Dsp, EventValue, Location, ValuePair,
};
use std::collections::BTreeMap;

/// Adds an alternate that was found by running the program along other paths: itself, the
/// difference between the two, and the reordered pair as what is known of the root cause. `failing`
/// is the trace and the evaluation of the failing schedule.
pub fn add_across(
    solution: &mut Solution,
    failing: (&EventTrace, &Evaluation),
    found: &CrossAlternate,
) {
    let across = &found.across;
    let here = Names { trace: failing.0 };
    let there = Names { trace: &found.trace };
    let identifiers = Identifiers::new(&across.matching, &found.trace);
    // What came too late, and perhaps what waited for it, is an event of the other run alone.
    let (cause, flipped) = match across.flipped {
        Flipped::Reversed(order) => {
            let [before, after] = [order.before, order.after].map(|id| id.to_string());
            ([before.clone(), after.clone()], [after, before])
        }
        Flipped::Late { before, after, needs } => {
            let after = identifiers.of(after);
            ([before.to_string(), after.clone()], [after, identifiers.of(needs)])
        }
    };
    let mut threads = there.threads();
    threads.retain(|thread| solution.threads.iter().all(|known| known.id != thread.id));
    let alternate = Alternate {
        threads,
        flipped,
        same_path: false,
        schedule: found.schedule.order.iter().map(|id| identifiers.of(*id)).collect(),
        events: identifiers.events(&here, &there, &found.evaluation),
        values: changed_values(&here, &there, failing.1, found),
        replay: found.replay,
        replay_note: found.note.clone(),
    };
    let dsp = dsp(&here, &there, failing.1, found, &identifiers);
    solution.stats.dsp_events = dsp.failing.len() as u64;
    solution.stats.dsp_data_flows = dsp.data_flows.failing_only.len() as u64;
    solution.stats.data_flows = flow_count(failing.1) as u64;
    solution.dsp = Some(dsp);
    solution.alternates = vec![alternate];
    let check = match &found.told {
        Told::Check(check) => failing.0.conditions.get(check.index()),
        Told::Failure => None,
        Told::Interrupted(steps) => {
            solution.replay_notes.push(undone(&here, steps));
            None
        }
    };
    solution.check = check.map(|condition| Check {
        condition: condition.id.0,
        thread: here.trace.threads[condition.thread.index()].name.clone(),
        location: super::location(&condition.site),
    });
    solution.replay_notes.extend(solution.check.as_ref().map(decided));
    let unexplained = solution.root_cause.as_mut().filter(|cause| cause.orders.is_empty());
    if let Some(root_cause) = unexplained {
        root_cause.orders = vec![cause];
        root_cause.minimal = false;
    }
}

/// The check that a failure tells of, in words.
fn decided(check: &Check) -> String {
    let Location { file, line, .. } = &check.location;
    format!(
        "how the run ends is decided at {}:{line} in {}: a run that followed the failing schedule up to there failed, and \
         one in which that went the other way passed",
        file.rsplit('/').next().unwrap_or_default(),
        check.thread
    )
}

/// The steps that must not be interrupted, in words.
fn undone(here: &Names<'_>, steps: &Interrupted) -> String {
    let [first, second] =
        apart(here.trace.event(steps.first), here.trace.event(steps.second)).map(super::location);
    let file =
        |location: &Location| location.file.rsplit('/').next().unwrap_or_default().to_owned();
    format!(
        "how the run ends is decided by what comes between {}:{} and {}:{} of {}: runs that followed the failing schedule up to \
         there failed, and one in which nothing came between passed",
        file(&first),
        first.line,
        file(&second),
        second.line,
        here.trace.thread_of(steps.second).name
    )
}

/// The places of two events of a thread, as deep in its calls as it takes to tell them apart.
fn apart<'t>(one: &'t Event, other: &'t Event) -> [&'t Site; 2] {
    let calls = one.stack.iter().rev().zip(other.stack.iter().rev());
    let mut calls = calls.filter(|(a, b)| !a.is_in_library() && !b.is_in_library());
    let differ = calls.find(|(a, b)| a.line != b.line || a.file != b.file);
    differ.map_or([one.site(), other.site()], |(a, b)| [a, b])
}

/// What the events that both runs have read or write in the other run, where that differs.
fn changed_values(
    here: &Names<'_>,
    there: &Names<'_>,
    evaluation: &Evaluation,
    found: &CrossAlternate,
) -> Vec<EventValue> {
    let both = here.trace.events.iter().filter_map(|event| {
        let other = found.across.matching.in_passing(event.id)?;
        Some((event, there.trace.event(other)))
    });
    both.filter_map(|(event, other)| {
        let value = there.value(other, &found.evaluation);
        (value != here.value(event, evaluation))
            .then(|| EventValue { event: event.id.to_string(), value })
    })
    .collect()
}

fn dsp(
    here: &Names<'_>,
    there: &Names<'_>,
    evaluation: &Evaluation,
    found: &CrossAlternate,
    identifiers: &Identifiers<'_>,
) -> Dsp {
    let Across { failing, passing, failing_only, passing_only, follows, .. } = &found.across;
    // What follows from what, by the other run's reads.
    let partner = |read: &ReadRef| {
        let event = found.across.matching.in_passing(read.event)?;
        Some(ReadRef { event, part: read.part })
    };
    let there_follows = follows.iter().filter_map(|(read, causes)| {
        Some((partner(read)?, causes.iter().filter_map(partner).collect()))
    });
    let there_follows: Follows = there_follows.collect();
    let accesses =
        |event: &&Event| !event.kind.reads().is_empty() || !event.kind.writes().is_empty();
    let events = failing.iter().map(|id| here.trace.event(*id)).filter(accesses);
    let mut values: Vec<ValuePair> = events
        .map(|event| ValuePair {
            event: event.id.to_string(),
            failing: here.value(event, evaluation),
            alternate: identifiers
                .matching
                .in_passing(event.id)
                .and_then(|id| there.value(there.trace.event(id), &found.evaluation)),
        })
        .collect();
    let events = passing.iter().map(|id| there.trace.event(*id)).filter(accesses);
    let alone = events.filter(|event| identifiers.matching.in_failing(event.id).is_none());
    values.extend(alone.map(|event| ValuePair {
        event: identifiers.of(event.id),
        failing: None,
        alternate: there.value(event, &found.evaluation),
    }));
    Dsp {
        failing: failing.iter().map(ToString::to_string).collect(),
        alternate: passing.iter().map(|id| identifiers.of(*id)).collect(),
        data_flows: DataFlows {
            failing_only: here.data_flows(failing_only, evaluation, follows),
            alternate_only: there
                .flows(passing_only, &found.evaluation)
                .map(|(write, read, value)| DataFlow {
                    write: match write {
                        WriteSource::Init => "init".to_owned(),
                        WriteSource::Write(event) => identifiers.of(event),
                    },
                    read: identifiers.of(read),
                    value,
                    follows_from: reads_behind(passing_only, (write, read), &there_follows)
                        .into_iter()
                        .map(|event| identifiers.of(event))
                        .collect(),
                })
                .collect(),
        },
        values,
        atomic_blocks: Vec::new(),
    }
}

/// What the events of the other run are called.
pub(super) struct Identifiers<'m> {
    matching: &'m Matching,
    /// The events that only that run has, in its trace's order.
    alone: Vec<EventId>,
}

impl<'m> Identifiers<'m> {
    pub(super) fn new(matching: &'m Matching, trace: &EventTrace) -> Self {
        let all = trace.events.iter().map(|event| event.id);
        let alone = all.filter(|id| matching.in_failing(*id).is_none()).collect();
        Self { matching, alone }
    }

    /// The failing run's identifier, or an `a` and a number.
    pub(super) fn of(&self, id: EventId) -> String {
        match (self.matching.in_failing(id), self.alone.binary_search(&id)) {
            (Some(failing), _) => failing.to_string(),
            (None, Ok(number)) | (None, Err(number)) => format!("a{number}"),
        }
    }

    fn events(
        &self,
        here: &Names<'_>,
        there: &Names<'_>,
        evaluation: &Evaluation,
    ) -> Vec<render::solution::Event> {
        let places = self.places(here, there);
        let events = self.alone.iter().map(|id| there.trace.event(*id));
        let named = events.map(|event| {
            let mut named = there.event(event, Some(evaluation));
            named.id = self.of(event.id);
            for target in &mut named.targets {
                *target = places.get(target).cloned().unwrap_or_else(|| format!("a{target}"));
            }
            named
        });
        named.collect()
    }

    /// From the other run's identifiers of cells and objects to the failing run's. What the same
    /// event touches in both is the same place.
    fn places(&self, here: &Names<'_>, there: &Names<'_>) -> BTreeMap<String, String> {
        let mut places = BTreeMap::new();
        for event in &here.trace.events {
            let Some(other) = self.matching.in_passing(event.id) else { continue };
            let (mine, others) = (here.targets(event), there.targets(there.trace.event(other)));
            if mine.len() == others.len() {
                places.extend(others.into_iter().zip(mine));
            }
        }
        places
    }
}
