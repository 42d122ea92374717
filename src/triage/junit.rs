//! The outcome as JUnit XML, which CI systems show: a suite for each program, a test case for each trace.

use super::text::{failure, sentence};
use super::{Member, Triage, TriageError};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::time::Duration;

impl Triage {
    /// As JUnit XML. A failure whose cause was found has it as its message and the cause's family as its
    /// type; a trace without an answer is an error; one of a run that passed is a success.
    ///
    /// # Errors
    /// When it cannot be put in words, which does not happen.
    pub fn to_junit(&self) -> Result<String, TriageError> {
        let mut cases: Vec<(&str, TestCase)> = Vec::new();
        for group in &self.groups {
            for member in &group.traces {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(sentence(group));
                status.set_type(if group.pattern.is_empty() { "failure" } else { &group.pattern });
                status.set_description(failure(group));
                let mut case = case(member, status);
                if let Some(fingerprint) = group.fingerprint.as_deref() {
                    case.add_property(Property::new("fingerprint", fingerprint));
                }
                cases.push((&*member.program, case));
            }
        }
        for unsolved in &self.unsolved {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(&*unsolved.reason);
            let member = &unsolved.member;
            cases.push((&*member.program, case(member, status)));
        }
        for member in &self.passed {
            cases.push((&*member.program, case(member, TestCaseStatus::success())));
        }
        let mut suites: BTreeMap<&str, TestSuite> = BTreeMap::new();
        for (program, case) in cases {
            let name = if program.is_empty() { "unknown program" } else { program };
            suites.entry(name).or_insert_with(|| TestSuite::new(name)).add_test_case(case);
        }
        let mut report = Report::new("symbiosis triage");
        report.add_test_suites(suites.into_values());
        report.to_string().map_err(|error| TriageError::Report("JUnit XML", Box::new(error)))
    }
}

fn case(member: &Member, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(&*member.trace, status);
    if let Some(milliseconds) = member.duration_ms {
        case.set_time(Duration::from_millis(milliseconds));
    }
    if !member.command.is_empty() {
        case.set_classname(&*member.program);
        case.add_property(Property::new("command", &*member.command));
    }
    case.add_property(Property::new("replay", member.replay.words()));
    case
}

#[cfg(test)]
mod tests {
    use super::super::{Group, Unsolved};
    use super::*;

    #[test]
    fn every_trace_is_a_case_of_its_program() {
        let member = |trace: &str, command: &str| Member {
            trace: trace.to_owned(),
            command: format!("./bin of it/{command}"),
            program: command.to_owned(),
            duration_ms: Some(1500),
            ..Member::default()
        };
        let triage = Triage {
            groups: vec![Group {
                fingerprint: Some("0123456789abcdef".to_owned()),
                pattern: "order".to_owned(),
                cause: "`a` came before `b` & c".to_owned(),
                failure: "exit at q.c:1".to_owned(),
                traces: vec![member("1.trace", "queue"), member("2.trace", "pool")],
                ..Group::default()
            }],
            unsolved: vec![Unsolved {
                member: Member { trace: "3.trace".to_owned(), ..Member::default() },
                code: Some(20),
                reason: "it is cut".to_owned(),
            }],
            passed: vec![member("4.trace", "pool")],
            ..Triage::default()
        };
        let text = triage.to_junit().expect("XML");
        let report = Report::deserialize_from_str(&text).expect("it can be read back");
        let counts: Vec<(&str, usize, usize, usize)> = report
            .test_suites
            .iter()
            .map(|suite| (suite.name.as_str(), suite.tests, suite.failures, suite.errors))
            .collect();
        assert_eq!(counts, [("pool", 2, 1, 0), ("queue", 1, 1, 0), ("unknown program", 1, 0, 1)]);
        let case = &report.test_suites[1].test_cases[0];
        assert_eq!(case.time, Some(Duration::from_millis(1500)));
        assert!(text.contains("message=\"`a` came before `b` &amp; c\" type=\"order\""), "{text}");
    }
}
