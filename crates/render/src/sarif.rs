//! SARIF 2.1.0: a result for each answer, with the cause as its message, and two code flows, the failing
//! and the alternate schedule, each with a thread flow per thread. `executionOrder` says how the steps
//! of the threads follow each other.
//!
//! The steps are the events of the projection, of the cause, and the failure, and not the whole
//! schedule: GitHub shows no more than a thousand of a result.

use crate::Solution;
use crate::lanes::describe;
use crate::solution::{Cause, Event, Location};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Steps in all code flows of the result; GitHub shows so many at most.
const STEPS: usize = 1_000;
/// Related locations of the result; GitHub shows so many at most.
const RELATED: usize = 100;
/// The name of the fingerprint, with its version.
const FINGERPRINT: &str = "symbiosisCause/v2";

/// What a log needs besides the answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SarifOptions<'a> {
    /// The directory that paths are told relative to, with no `/` at the end: where the sources
    /// lie under version control. Files elsewhere are told by their whole path.
    pub root: Option<&'a str>,
    /// The tool's version.
    pub tool_version: &'a str,
}

/// The log as indented JSON with a final newline.
///
/// # Errors
/// When serialisation fails, which for this type means out of memory.
pub fn to_sarif(
    solution: &Solution,
    options: SarifOptions<'_>,
) -> Result<String, serde_json::Error> {
    all_to_sarif(&[Finding { solution, count: 1, known: None }], options)
}

/// One of several answers.
#[derive(Clone, Copy, Debug)]
pub struct Finding<'a> {
    /// The answer.
    pub solution: &'a Solution,
    /// How many runs failed for its cause.
    pub count: usize,
    /// Was the cause known before? None where that is not asked.
    pub known: Option<bool>,
}

/// The same with a result for each of several answers that have a failure.
///
/// # Errors
/// As [`to_sarif`].
pub fn all_to_sarif(
    findings: &[Finding<'_>],
    options: SarifOptions<'_>,
) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&log(findings, options))?;
    text.push('\n');
    Ok(text)
}

fn log(findings: &[Finding<'_>], options: SarifOptions<'_>) -> Value {
    let mut patterns: Vec<&str> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for finding in findings {
        let writer = Writer { solution: finding.solution, options };
        let pattern = writer.pattern();
        let index = patterns.iter().position(|known| *known == pattern);
        let index = index.unwrap_or_else(|| {
            patterns.push(pattern);
            patterns.len() - 1
        });
        let Some(failure) = &finding.solution.failure else { continue };
        let mut result = writer.result(&failure.location);
        result["ruleIndex"] = json!(index);
        if finding.count > 1 {
            result["occurrenceCount"] = json!(finding.count);
        }
        if let Some(known) = finding.known {
            result["baselineState"] = json!(if known { "unchanged" } else { "new" });
        }
        results.push(result);
    }
    let mut run = json!({
        "tool": { "driver": {
            "name": "symbiosis",
            "version": options.tool_version,
            "rules": patterns.into_iter().map(rule).collect::<Vec<_>>(),
        } },
        "columnKind": "utf16CodeUnits",
        "results": results,
    });
    if let Some(root) = options.root {
        let uri = format!("file://{}/", encoded(root));
        run["originalUriBaseIds"] = json!({ "%SRCROOT%": { "uri": uri } });
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    })
}

/// The kind of bug.
fn rule(pattern: &str) -> Value {
    json!({
        "id": pattern,
        "name": name_of(pattern),
        "shortDescription": { "text": description(pattern) },
        "fullDescription": { "text": description(pattern) },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": ["concurrency", "correctness"] },
    })
}

struct Writer<'s> {
    solution: &'s Solution,
    options: SarifOptions<'s>,
}

impl<'s> Writer<'s> {
    fn pattern(&self) -> &'s str {
        self.solution.cause.as_ref().map_or("failure", |cause| cause.pattern.as_str())
    }

    fn result(&self, failed_at: &Location) -> Value {
        let solution = self.solution;
        let mut result = json!({
            "ruleId": self.pattern(),
            "level": "error",
            "message": { "text": self.message() },
        });
        // The first line of the cause is where a person looks first; the failure is where the
        // program noticed.
        let named: Vec<&Event> = solution
            .cause
            .iter()
            .flat_map(|cause| cause.events.iter().filter_map(|id| solution.event(id)))
            .collect();
        let main = named.first().map_or(failed_at, |event| &event.location);
        if let Some(place) = self.physical(main) {
            result["locations"] = json!([{ "physicalLocation": place }]);
        }
        let mut related: Vec<Value> = Vec::new();
        for event in named.iter().skip(1) {
            related.extend(self.related(&event.location, &self.step_text(event, Side::Failing)));
        }
        related.extend(self.related(failed_at, "where the program failed"));
        related.truncate(RELATED);
        for (number, place) in (1..).zip(&mut related) {
            place["id"] = json!(number);
        }
        result["relatedLocations"] = json!(related);
        if let Some(Cause { fingerprint, .. }) = &solution.cause {
            let mut prints = serde_json::Map::new();
            prints.insert(FINGERPRINT.to_owned(), json!(fingerprint));
            result["partialFingerprints"] = Value::Object(prints);
        }
        let flows = self.code_flows();
        if !flows.is_empty() {
            result["codeFlows"] = json!(flows);
        }
        result
    }

    /// The cause, and how the program failed.
    fn message(&self) -> String {
        let failure = self.solution.failure.as_ref();
        let failed = failure.map(|failure| {
            let said = if failure.message.is_empty() {
                String::new()
            } else {
                format!(": {}", failure.message)
            };
            format!("{} in {}{said}", failure.kind.replace('-', " "), failure.thread)
        });
        let parts = self.solution.cause.iter().map(|cause| cause.sentence.clone()).chain(failed);
        parts.map(|part| format!("{part}.")).collect::<Vec<_>>().join(" ")
    }

    fn related(&self, location: &Location, text: &str) -> Option<Value> {
        let place = self.physical(location)?;
        Some(json!({ "physicalLocation": place, "message": { "text": text } }))
    }

    fn code_flows(&self) -> Vec<Value> {
        let solution = self.solution;
        let alternate = solution.alternates.first();
        let sides = [
            (Side::Failing, "failing schedule", Some((&solution.schedule, solution.replay))),
            (
                Side::Alternate,
                if alternate.is_none_or(|other| other.same_path) {
                    "alternate schedule"
                } else {
                    "passing run"
                },
                alternate.map(|other| (&other.schedule, other.replay)),
            ),
        ];
        let flows = sides.into_iter().filter_map(|(side, title, schedule)| {
            let (schedule, replay) = schedule?;
            let steps = self.steps(side, schedule);
            if steps.is_empty() {
                return None;
            }
            let text = format!("{title} ({})", replay.words());
            let threads = self.thread_flows(side, &steps);
            Some(json!({ "message": { "text": text }, "threadFlows": threads }))
        });
        flows.collect()
    }

    /// The events to show, each with its place in the schedule from 1.
    fn steps(&self, side: Side, schedule: &[String]) -> Vec<(usize, &Event)> {
        let solution = self.solution;
        let shown: BTreeSet<&str> = solution
            .dsp
            .iter()
            .flat_map(|dsp| dsp.failing.iter().chain(&dsp.alternate))
            .chain(solution.cause.iter().flat_map(|cause| &cause.events))
            .chain(
                solution
                    .failure
                    .iter()
                    .map(|failure| &failure.event)
                    .filter(|_| side == Side::Failing),
            )
            .map(String::as_str)
            .collect();
        let numbered = (1..).zip(schedule).filter(|(_, id)| shown.contains(id.as_str()));
        let mut steps: Vec<(usize, &Event)> =
            numbered.filter_map(|(number, id)| Some((number, solution.event(id)?))).collect();
        // What is near the failure says most.
        steps.drain(..steps.len().saturating_sub(STEPS / 2));
        steps
    }

    fn thread_flows(&self, side: Side, steps: &[(usize, &Event)]) -> Vec<Value> {
        let mut threads: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (number, event) in steps {
            threads.entry(&event.thread).or_default().push(self.step(side, *number, event));
        }
        // In the order of the answer, where parents come before children.
        let flows = self.solution.all_threads().filter_map(|thread| {
            let locations = threads.remove(thread.id.as_str())?;
            let text = format!("thread {} ({})", thread.id, thread.entry);
            Some(json!({ "id": thread.id, "message": { "text": text }, "locations": locations }))
        });
        let mut flows: Vec<Value> = flows.collect();
        // A thread that nobody describes keeps its steps.
        for (thread, locations) in threads {
            let text = format!("thread {thread}");
            flows
                .push(json!({ "id": thread, "message": { "text": text }, "locations": locations }));
        }
        flows
    }

    fn step(&self, side: Side, number: usize, event: &Event) -> Value {
        let named = self.solution.cause.iter().any(|cause| cause.events.contains(&event.id));
        let flipped =
            self.solution.alternates.first().is_some_and(|other| other.flipped.contains(&event.id));
        let mut location = json!({ "message": { "text": self.step_text(event, side) } });
        if let Some(place) = self.physical(&event.location) {
            location["physicalLocation"] = place;
        }
        if !event.location.function.is_empty() {
            let function = json!({ "name": event.location.function, "kind": "function" });
            location["logicalLocations"] = json!([function]);
        }
        let mut step = json!({
            "location": location,
            "executionOrder": number,
            "importance": if named || flipped { "essential" } else { "important" },
            "kinds": kinds(&event.kind),
        });
        let stack: Vec<Value> = [&event.location]
            .into_iter()
            .chain(&event.callers)
            .filter_map(|place| {
                Some(json!({ "location": { "physicalLocation": self.physical(place)? } }))
            })
            .collect();
        if stack.len() > 1 {
            step["stack"] = json!({ "frames": stack });
        }
        step
    }

    fn step_text(&self, event: &Event, side: Side) -> String {
        let pair = self.solution.values_of(&event.id);
        let value = match (side, pair) {
            (Side::Alternate, Some(pair)) => pair.alternate.as_deref(),
            (Side::Failing, Some(pair)) => pair.failing.as_deref(),
            (_, None) => event.value.as_deref(),
        };
        format!("{}: {}", event.thread, describe(event, value))
    }

    /// File, line and column; `None` when the file is unknown.
    fn physical(&self, location: &Location) -> Option<Value> {
        if location.file.is_empty() {
            return None;
        }
        let mut place = json!({ "artifactLocation": self.artifact(&location.file) });
        if location.line > 0 {
            place["region"] = json!({ "startLine": location.line });
            if location.column > 0 {
                place["region"]["startColumn"] = json!(location.column);
            }
        }
        Some(place)
    }

    fn artifact(&self, file: &str) -> Value {
        let inside = self.options.root.and_then(|root| file.strip_prefix(root)?.strip_prefix('/'));
        match inside {
            Some(path) => json!({ "uri": encoded(path), "uriBaseId": "%SRCROOT%" }),
            None if file.starts_with('/') => json!({ "uri": format!("file://{}", encoded(file)) }),
            None => json!({ "uri": encoded(file) }),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Failing,
    Alternate,
}

/// SARIF's words for what a step does.
fn kinds(kind: &str) -> Vec<&'static str> {
    match kind {
        "lock" | "lock-shared" => vec!["acquire", "lock"],
        "unlock" | "unlock-shared" => vec!["release", "lock"],
        "allocate" => vec!["acquire", "memory"],
        "free" | "end" => vec!["release", "memory"],
        "fork" => vec!["enter", "call"],
        _ => vec!["value"],
    }
}

/// `missed-wakeup` as `MissedWakeup`.
fn name_of(pattern: &str) -> String {
    pattern
        .split('-')
        .map(|word| {
            let mut characters = word.chars();
            let first = characters.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(characters).collect::<String>()
        })
        .collect()
}

fn description(pattern: &str) -> &'static str {
    match pattern {
        "atomicity" => {
            "Another thread comes between two accesses of one thread to one variable that have to \
             follow each other."
        }
        "multi-variable-atomicity" => {
            "Accesses of two threads to variables that belong together get mixed."
        }
        "order" => {
            "A thread's step comes before, or after, one of another thread that it relies on."
        }
        "missed-wakeup" => {
            "A signal comes when the thread that it is for does not wait yet, or wakes another one."
        }
        "deadlock" => "Threads wait for each other.",
        "use-after-free" => "A thread uses an object that another one has freed.",
        "double-free" => "An object is freed twice.",
        "late-write" => {
            "A write is still in its processor's store buffer when its thread reads on, and another \
             thread reads the old value."
        }
        "every-schedule" => "The program fails under every schedule along the recorded paths.",
        _ => "The order in which threads run makes the program fail.",
    }
}

/// A path as part of a URI.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lost_update;

    fn log(solution: &Solution) -> Value {
        let options = SarifOptions { root: Some("/src"), tool_version: "1.2.3" };
        serde_json::from_str(&to_sarif(solution, options).unwrap()).unwrap()
    }

    /// What the schema asks for of the parts that are written here, checked by hand: the schema
    /// itself is not among the tests. `tests/show.rs` reads a log with types made from it.
    #[test]
    fn one_result_has_two_code_flows_with_a_thread_flow_per_thread() {
        let log = log(&lost_update());
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["name"], "symbiosis");
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        let result = &results[0];
        assert_eq!(result["ruleId"], run["tool"]["driver"]["rules"][0]["id"]);
        assert_eq!(result["partialFingerprints"][FINGERPRINT], "0123456789abcdef");
        let flows = result["codeFlows"].as_array().unwrap();
        assert_eq!(flows.len(), 2);
        let orders: Vec<Vec<(u64, String)>> = flows
            .iter()
            .map(|flow| {
                let threads = flow["threadFlows"].as_array().unwrap();
                let mut steps: Vec<(u64, String)> = threads
                    .iter()
                    .flat_map(|thread| thread["locations"].as_array().unwrap())
                    .map(|step| {
                        let text = step["location"]["message"]["text"].as_str().unwrap();
                        (step["executionOrder"].as_u64().unwrap(), text.to_owned())
                    })
                    .collect();
                steps.sort();
                steps
            })
            .collect();
        let step = |number: u64, text: &str| (number, text.to_owned());
        assert_eq!(
            orders[0],
            [
                step(2, "t0.2: read bank->total = 0"),
                step(3, "t0.1: write bank->total = 1"),
                step(4, "t0.2: write bank->total = 1"),
                step(6, "t0: failure bank->total = "),
            ]
        );
        assert_eq!(
            orders[1],
            [
                step(2, "t0.1: write bank->total = 1"),
                step(3, "t0.2: read bank->total = 1"),
                step(4, "t0.2: write bank->total = 1"),
            ]
        );
    }

    #[test]
    fn several_answers_share_rules_and_say_how_often_they_came_up() {
        let one = lost_update();
        let mut other = lost_update();
        if let Some(cause) = &mut other.cause {
            cause.pattern = "order".to_owned();
        }
        let findings = [
            Finding { solution: &one, count: 3, known: Some(true) },
            Finding { solution: &other, count: 1, known: Some(false) },
            Finding { solution: &one, count: 1, known: None },
        ];
        let log = super::log(&findings, SarifOptions::default());
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        let of = |name: &str| results.iter().map(|result| result[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("ruleIndex"), [0, 1, 0]);
        assert_eq!(of("occurrenceCount"), [json!(3), Value::Null, Value::Null]);
        assert_eq!(of("baselineState"), [json!("unchanged"), json!("new"), Value::Null]);
        assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
        assert_eq!(run["tool"]["driver"]["rules"][1]["id"], results[1]["ruleId"]);
    }

    #[test]
    fn paths_are_relative_to_the_root_and_escaped() {
        let mut solution = lost_update();
        solution.events[1].location.file = "/src/my bank.c".to_owned();
        solution.events[2].location.file = "/usr/include/x.h".to_owned();
        let log = log(&solution);
        let result = &log["runs"][0]["results"][0];
        let main = &result["locations"][0]["physicalLocation"];
        assert_eq!(main["artifactLocation"]["uri"], "my%20bank.c");
        assert_eq!(main["artifactLocation"]["uriBaseId"], "%SRCROOT%");
        assert_eq!(main["region"]["startLine"], 11);
        let elsewhere = &result["relatedLocations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(elsewhere["uri"], "file:///usr/include/x.h");
        assert_eq!(log["runs"][0]["originalUriBaseIds"]["%SRCROOT%"]["uri"], "file:///src/");
    }

    #[test]
    fn no_result_has_more_steps_than_github_shows() {
        let mut solution = lost_update();
        let template = solution.events[0].clone();
        let first = solution.events.len();
        for number in first..first + 3 * STEPS {
            let event = Event { id: format!("e{number}"), ..template.clone() };
            solution.schedule.insert(0, event.id.clone());
            solution.alternates[0].schedule.insert(0, event.id.clone());
            if let Some(dsp) = &mut solution.dsp {
                dsp.failing.push(event.id.clone());
            }
            solution.events.push(event);
        }
        let log = log(&solution);
        let flows = log["runs"][0]["results"][0]["codeFlows"].as_array().unwrap().clone();
        let threads = flows.iter().flat_map(|flow| flow["threadFlows"].as_array().unwrap());
        let steps: usize = threads.map(|t| t["locations"].as_array().unwrap().len()).sum();
        assert_eq!(steps, STEPS);
        // What is near the failure is kept.
        assert!(serde_json::to_string(&flows[0]).unwrap().contains("failure bank->total"));
    }

    #[test]
    fn without_a_failing_schedule_there_is_a_result_without_flows() {
        let mut solution = lost_update();
        (solution.cause, solution.dsp) = (None, None);
        solution.schedule.clear();
        solution.alternates.clear();
        let log = log(&solution);
        let result = &log["runs"][0]["results"][0];
        assert!(result.get("codeFlows").is_none() && result.get("partialFingerprints").is_none());
        assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 30);
    }
}
