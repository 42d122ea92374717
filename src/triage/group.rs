//! Outcomes, by causes.

use super::solve::{End, Found, Outcome};
use super::{FORMAT, Group, Known, Member, State, Triage, Unsolved, VERSION};
use crate::compare::Traits;
use render::solution::Replay;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The fingerprint of a cause; where there is none, how and where it failed.
type Key = (Option<String>, String);

/// Puts failures with one cause together.
#[derive(Debug, Default)]
pub struct Groups {
    by_key: BTreeMap<Key, Vec<(Found, Member)>>,
    unsolved: Vec<Unsolved>,
    passed: Vec<Member>,
}

impl Groups {
    /// Adds what came of a trace.
    pub fn add(&mut self, outcome: Outcome) {
        let mut member = Member {
            trace: outcome.trace.display().to_string(),
            command: outcome.command,
            program: outcome.program,
            duration_ms: outcome.duration_ms,
            replay: Replay::NotRun,
        };
        match outcome.end {
            End::Passed => self.passed.push(member),
            End::Unsolved { code, reason } => {
                self.unsolved.push(Unsolved { member, code, reason });
            }
            End::Answered(found) => {
                member.replay = found.replay;
                let place = match &found.fingerprint {
                    Some(_) => String::new(),
                    None => found.failure.clone(),
                };
                let key = (found.fingerprint.clone(), place);
                self.by_key.entry(key).or_default().push((*found, member));
            }
        }
    }

    /// All of them, with what is known of their causes.
    #[must_use]
    pub fn finish(self, known: Option<&Known>) -> Triage {
        let mut groups: Vec<Group> =
            self.by_key.into_values().map(|members| group(members, known)).collect();
        // What most of them have is what to look at first; without a cause there is less to look at.
        groups.sort_by_key(|group| {
            (group.fingerprint.is_none(), Reverse(group.traces.len()), first_trace(group))
        });
        let mut groups = by_bug(groups);
        relate(&mut groups);
        let absent = known.map_or_else(Vec::new, |known| {
            let came =
                |print: &str| groups.iter().any(|of| of.fingerprint.as_deref() == Some(print));
            known.causes.iter().filter(|cause| !came(&cause.fingerprint)).cloned().collect()
        });
        let (unsolved, passed) = (self.unsolved, self.passed);
        let (format, version) = (FORMAT.to_owned(), VERSION.to_owned());
        Triage { format, version, groups, unsolved, passed, absent }
    }
}

fn first_trace(group: &Group) -> String {
    group.traces.first().map(|member| member.trace.clone()).unwrap_or_default()
}

fn group(mut members: Vec<(Found, Member)>, known: Option<&Known>) -> Group {
    // The one to look at: what was seen to happen comes before what is only claimed, and little
    // before much.
    members.sort_by_key(|(found, _)| {
        let confirmed = found.replay == Replay::Confirmed;
        (Reverse(confirmed), Reverse(found.alternate), found.events)
    });
    let first = members.first().map(|(found, _)| found.clone()).unwrap_or_default();
    let state = known.map(|known| match &first.fingerprint {
        Some(fingerprint) if known.has(fingerprint) => State::Known,
        _ => State::New,
    });
    Group {
        state,
        fingerprint: first.fingerprint,
        pattern: first.pattern,
        cause: first.cause,
        variables: first.variables,
        functions: first.functions,
        bug: None,
        failure: first.failure,
        message: first.message,
        reason: first.reason,
        repair: Vec::new(),
        traces: members.into_iter().map(|(_, member)| member).collect(),
        related: Vec::new(),
        answer: first.answer,
    }
}

/// Puts those together that may be one bug, with its number, in the order of how many traces each bug has. Of a failure without
/// a cause it is not known which bug it is.
fn by_bug(groups: Vec<Group>) -> Vec<Group> {
    let mut bugs: Vec<Vec<Group>> = Vec::new();
    let (told, untold): (Vec<Group>, Vec<Group>) =
        groups.into_iter().partition(|group| group.fingerprint.is_some());
    for group in told {
        let is_of = |bug: &Vec<Group>| bug.iter().any(|other| may_be_one(&group, other));
        let (of, others): (Vec<_>, Vec<_>) = bugs.into_iter().partition(is_of);
        bugs = others;
        let mut joined: Vec<Group> = of.into_iter().flatten().collect();
        joined.push(group);
        bugs.push(joined);
    }
    for bug in &mut bugs {
        bug.sort_by_key(|group| (Reverse(group.traces.len()), first_trace(group)));
    }
    bugs.sort_by_key(|bug| {
        let traces: usize = bug.iter().map(|group| group.traces.len()).sum();
        (Reverse(traces), bug.first().map(first_trace))
    });
    let numbered = (1..).zip(bugs).flat_map(|(number, bug)| {
        bug.into_iter().map(move |group| Group { bug: Some(number), ..group })
    });
    numbered.chain(untold).collect()
}

/// Says which groups may be the same bug all the same.
fn relate(groups: &mut [Group]) {
    let related: Vec<Vec<usize>> = groups
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let others = groups.iter().enumerate().filter(|(other, _)| *other != index);
            others.filter(|(_, other)| may_be_one(one, other)).map(|(other, _)| other + 1).collect()
        })
        .collect();
    for (group, related) in groups.iter_mut().zip(related) {
        group.related = related;
    }
}

/// May the two groups be one bug, told in two ways?
fn may_be_one(one: &Group, other: &Group) -> bool {
    traits(one).may_be_one_with(&traits(other))
}

fn traits(group: &Group) -> Traits {
    Traits {
        fingerprint: group.fingerprint.clone(),
        pattern: group.pattern.clone(),
        variables: group.variables.clone(),
        functions: group.functions.clone(),
        failure: group.failure.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn outcome(trace: &str, end: End) -> Outcome {
        let (command, program) = Default::default();
        Outcome { trace: PathBuf::from(trace), command, program, duration_ms: None, end }
    }

    fn found(fingerprint: Option<&str>, failure: &str, replay: Replay) -> End {
        End::Answered(Box::new(Found {
            fingerprint: fingerprint.map(str::to_owned),
            failure: failure.to_owned(),
            replay,
            ..Found::default()
        }))
    }

    #[test]
    fn one_cause_is_one_group_and_what_was_seen_comes_first() {
        let mut groups = Groups::default();
        groups.add(outcome("one", found(Some("b"), "exit at a.c:1", Replay::Confirmed)));
        groups.add(outcome("two", found(Some("a"), "exit at a.c:7", Replay::NotRun)));
        groups.add(outcome("three", found(Some("a"), "exit at a.c:9", Replay::Confirmed)));
        groups.add(outcome("four", found(None, "exit at a.c:7", Replay::NotRun)));
        groups.add(outcome("five", found(None, "exit at a.c:9", Replay::NotRun)));
        groups.add(outcome("six", End::Passed));
        let unsolved = End::Unsolved { code: Some(20), reason: "it is cut".to_owned() };
        groups.add(outcome("seven", unsolved));
        let triage = groups.finish(None);
        let traces: Vec<Vec<&str>> = triage
            .groups
            .iter()
            .map(|group| group.traces.iter().map(|member| member.trace.as_str()).collect())
            .collect();
        assert_eq!(traces, [vec!["three", "two"], vec!["one"], vec!["five"], vec!["four"]]);
        assert_eq!(triage.groups[0].related, [3], "they fail at one place");
        assert_eq!(triage.groups[2].related, [1]);
        assert_eq!(triage.failures(), 6);
        assert_eq!(triage.passed[0].trace, "six");
        assert!(triage.groups.iter().all(|group| group.state.is_none()) && !triage.has_new());
    }

    #[test]
    fn known_causes_are_told_from_new_ones_and_those_that_did_not_come_up_are_named() {
        let known = |names: &[&str]| Known {
            causes: names
                .iter()
                .map(|name| super::super::KnownCause {
                    fingerprint: (*name).to_owned(),
                    note: String::new(),
                })
                .collect(),
        };
        let triage = |known: &Known| {
            let mut groups = Groups::default();
            groups.add(outcome("one", found(Some("a"), "exit at a.c:1", Replay::Confirmed)));
            groups.finish(Some(known))
        };
        let same = triage(&known(&["a", "b"]));
        assert_eq!(same.groups[0].state, Some(State::Known));
        assert!(!same.has_new());
        assert_eq!(same.absent[0].fingerprint, "b");
        assert!(triage(&known(&["b"])).has_new());
    }

    #[test]
    fn those_that_may_be_one_bug_stand_together_and_two_bugs_may_fail_one_check() {
        let words = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let cause = |print: &str, variables: &[&str], functions: &[&str]| {
            End::Answered(Box::new(Found {
                fingerprint: Some(print.to_owned()),
                failure: "assertion at a.c:1".to_owned(),
                variables: words(variables),
                functions: words(functions),
                ..Found::default()
            }))
        };
        let mut groups = Groups::default();
        for trace in ["one", "two"] {
            groups.add(outcome(trace, cause("a", &["pages"], &["eject"])));
        }
        groups.add(outcome("three", cause("b", &["bytes"], &["filter"])));
        groups.add(outcome("four", cause("c", &["bytes", "lines"], &["filter"])));
        groups.add(outcome("five", cause("d", &["lines"], &["filter"])));
        groups.add(outcome("six", found(None, "assertion at a.c:1", Replay::NotRun)));
        let triage = groups.finish(None);
        let prints: Vec<Option<&str>> =
            triage.groups.iter().map(|group| group.fingerprint.as_deref()).collect();
        assert_eq!(prints, [Some("d"), Some("c"), Some("b"), Some("a"), None]);
        let bugs: Vec<Option<usize>> = triage.groups.iter().map(|group| group.bug).collect();
        assert_eq!(bugs, [Some(1), Some(1), Some(1), Some(2), None]);
        assert_eq!(triage.groups[0].related, [2, 3, 5]);
        assert_eq!(triage.groups[3].related, [5]);
        assert!(
            triage.to_text().starts_with("6 failing traces, 4 causes of perhaps 2 bugs, 1 without")
        );
    }

    #[test]
    fn a_deadlock_is_none_of_the_variable_that_its_lock_guards() {
        let cause = |pattern: &str| {
            End::Answered(Box::new(Found {
                fingerprint: Some(pattern.to_owned()),
                pattern: pattern.to_owned(),
                failure: pattern.to_owned(),
                variables: vec!["cents".to_owned()],
                ..Found::default()
            }))
        };
        let mut groups = Groups::default();
        groups.add(outcome("one", cause("deadlock")));
        groups.add(outcome("two", cause("atomicity")));
        let triage = groups.finish(None);
        assert!(triage.groups.iter().all(|group| group.related.is_empty()));
    }

    #[test]
    fn a_failure_without_a_cause_is_new() {
        let mut groups = Groups::default();
        groups.add(outcome("one", found(None, "exit at a.c:1", Replay::NotRun)));
        assert!(groups.finish(Some(&Known::default())).has_new());
    }
}
