//! What the page's scripts get: the solution as tables of numbers, each text once. A hundred
//! thousand events stay a few megabytes.

use super::sources::{Part, Sources};
use crate::Solution;
use crate::lanes::place;
use crate::solution::{Alternate, DataFlow, Event, Location, Replay};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// All of it. Texts are indices into `strings`, events indices into the columns of `events`, lanes'
/// events indices into these, frames of a stack indices into `frames`.
#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    strings: Vec<&'a str>,
    threads: Vec<Thread<'a>>,
    files: Vec<File<'a>>,
    frames: Vec<Frame>,
    stacks: Vec<Vec<usize>>,
    events: Events<'a>,
    /// The failing schedule, then the alternates.
    lanes: Vec<Lane>,
    /// The events that the sentence about the cause names, in its order.
    cause: Vec<usize>,
    /// Of these, the ones of one thread that nothing should have come between.
    blocks: Vec<Vec<usize>>,
    failure: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Thread<'a> {
    id: &'a str,
    entry: &'a str,
}

#[derive(Debug, Serialize)]
struct File<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'a str>,
    parts: &'a [Part],
}

/// A place in the program.
#[derive(Debug, Serialize)]
struct Frame {
    /// `bank.c:20`.
    place: String,
    file: Option<usize>,
    line: u32,
    function: usize,
}

/// The events' fields, one list for each.
#[derive(Debug, Default, Serialize)]
struct Events<'a> {
    id: Vec<&'a str>,
    thread: Vec<usize>,
    kind: Vec<usize>,
    object: Vec<Option<usize>>,
    targets: Vec<Vec<usize>>,
    stack: Vec<usize>,
    value: Vec<Option<usize>>,
}

#[derive(Debug, Serialize)]
struct Lane {
    title: String,
    /// `failing` or `passing`.
    side: &'static str,
    order: Vec<usize>,
    /// Where the values are not the events' own.
    values: Vec<(usize, Option<usize>)>,
    /// What stays when the schedule is folded.
    shown: Vec<usize>,
    /// The reordered pair.
    flipped: Vec<usize>,
    flows: Vec<Flow>,
    replay: &'static str,
}

#[derive(Debug, Serialize)]
struct Flow {
    /// None for the initial value.
    write: Option<usize>,
    read: usize,
    value: Option<usize>,
    /// The reads from whose other source it follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    follows: Vec<usize>,
}

/// The page's data.
pub(super) fn page<'a>(solution: &'a Solution, sources: &'a Sources) -> Page<'a> {
    let mut tables = Tables::new(sources);
    for thread in solution.all_threads() {
        tables.thread(&thread.id, &thread.entry);
    }
    // Identifiers like `a3` are an alternate's own.
    let mut names = HashMap::new();
    for event in &solution.events {
        names.insert(event.id.as_str(), tables.event(event));
    }
    let own: Vec<HashMap<&str, usize>> = solution
        .alternates
        .iter()
        .map(|alternate| {
            let events = alternate.events.iter();
            events.map(|event| (event.id.as_str(), tables.event(event))).collect()
        })
        .collect();
    let find = |alternate: Option<usize>, id: &str| {
        let own = alternate.and_then(|number| own.get(number)?.get(id));
        own.or_else(|| names.get(id)).copied()
    };
    let mut lanes = Vec::new();
    let failure = solution.failure.as_ref().and_then(|failure| find(None, &failure.event));
    if !solution.schedule.is_empty() {
        lanes.push(failing(solution, &mut tables, failure, &find));
        for (number, alternate) in solution.alternates.iter().enumerate() {
            let find = |id: &str| find(Some(number), id);
            lanes.push(passing(solution, &mut tables, (number, alternate), &find));
        }
    }
    // Ones that only another run has are of the first alternate.
    let named = solution.cause.iter().flat_map(|cause| &cause.events);
    let cause: Vec<usize> = named.filter_map(|id| find(Some(0), id)).collect();
    let blocks = blocks(solution, &cause, &tables.events.thread);
    Page { cause, blocks, failure, lanes, ..tables.finish() }
}

fn failing<'a>(
    solution: &'a Solution,
    tables: &mut Tables<'a>,
    failure: Option<usize>,
    find: &impl Fn(Option<usize>, &str) -> Option<usize>,
) -> Lane {
    let dsp = solution.dsp.as_ref();
    let mut shown: BTreeSet<usize> = failure.into_iter().collect();
    let differ = dsp.iter().flat_map(|dsp| &dsp.failing);
    shown.extend(differ.chain(causes(solution)).filter_map(|id| find(None, id)));
    let waits = |event: &&Event| event.awaits();
    let waits = solution.events.iter().filter(waits);
    shown.extend(waits.filter_map(|event| find(None, &event.id)));
    let flows = dsp.map(|dsp| dsp.data_flows.failing_only.as_slice()).unwrap_or_default();
    let flipped = solution.alternates.first().map(|alternate| &alternate.flipped);
    lane(
        tables,
        |id| find(None, id),
        Contents {
            title: "failing schedule".to_owned(),
            side: "failing",
            order: &solution.schedule,
            values: Vec::new(),
            shown,
            flipped: flipped.map(<[String; 2]>::as_slice).unwrap_or_default(),
            flows,
            replay: solution.replay,
        },
    )
}

fn passing<'a>(
    solution: &'a Solution,
    tables: &mut Tables<'a>,
    (number, alternate): (usize, &'a Alternate),
    find: &impl Fn(&str) -> Option<usize>,
) -> Lane {
    // The DSP is of the first alternate.
    let dsp = solution.dsp.as_ref().filter(|_| number == 0);
    let mut shown: BTreeSet<usize> = alternate.flipped.iter().filter_map(|id| find(id)).collect();
    shown.extend(dsp.iter().flat_map(|dsp| &dsp.alternate).filter_map(|id| find(id)));
    shown.extend(causes(solution).filter_map(|id| find(id)));
    let mut values: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    for pair in dsp.iter().flat_map(|dsp| &dsp.values) {
        if let Some(event) = find(&pair.event).filter(|_| pair.alternate != pair.failing) {
            let own = tables.events.value.get(event).copied().flatten();
            let value = pair.alternate.as_deref().map(|text| tables.string(text));
            if value != own {
                values.insert(event, value);
            }
        }
    }
    for changed in &alternate.values {
        if let Some(event) = find(&changed.event) {
            values.insert(event, changed.value.as_deref().map(|text| tables.string(text)));
        }
    }
    let flows = dsp.map(|dsp| dsp.data_flows.alternate_only.as_slice()).unwrap_or_default();
    let kind = if alternate.same_path { "alternate schedule" } else { "passing run" };
    let title = if number == 0 { kind.to_owned() } else { format!("{kind} {number}") };
    lane(
        tables,
        find,
        Contents {
            title,
            side: "passing",
            order: &alternate.schedule,
            values: values.into_iter().collect(),
            shown,
            flipped: &alternate.flipped,
            flows,
            replay: alternate.replay,
        },
    )
}

/// The cause's events by thread, where the cause is that a thread was not left alone.
fn blocks(solution: &Solution, cause: &[usize], threads: &[usize]) -> Vec<Vec<usize>> {
    let atomicity = ["atomicity", "multi-variable-atomicity"];
    if !solution.cause.iter().any(|cause| atomicity.contains(&cause.pattern.as_str())) {
        return Vec::new();
    }
    let mut blocks: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for event in cause {
        blocks.entry(threads.get(*event).copied()).or_default().push(*event);
    }
    blocks.into_values().filter(|events| events.len() > 1).collect()
}

/// The events of the root cause and those that the sentence about it names.
fn causes(solution: &Solution) -> impl Iterator<Item = &String> {
    let orders = solution.root_cause.iter().flat_map(|cause| cause.orders.iter().flatten());
    orders.chain(solution.cause.iter().flat_map(|cause| &cause.events))
}

/// A lane with identifiers in place of numbers.
struct Contents<'a> {
    title: String,
    side: &'static str,
    order: &'a [String],
    values: Vec<(usize, Option<usize>)>,
    shown: BTreeSet<usize>,
    flipped: &'a [String],
    flows: &'a [DataFlow],
    replay: Replay,
}

fn lane<'a>(
    tables: &mut Tables<'a>,
    find: impl Fn(&str) -> Option<usize>,
    contents: Contents<'a>,
) -> Lane {
    let all = |ids: &[String]| ids.iter().filter_map(|id| find(id)).collect::<Vec<_>>();
    let mut shown = contents.shown;
    let flows = contents.flows.iter().filter_map(|flow| {
        let (write, read) = (find(&flow.write), find(&flow.read)?);
        shown.extend(write.into_iter().chain([read]));
        let value = flow.value.as_deref().map(|text| tables.string(text));
        let follows = flow.follows_from.iter().filter_map(|id| find(id)).collect();
        Some(Flow { write, read, value, follows })
    });
    let flows = flows.collect();
    Lane {
        title: contents.title,
        side: contents.side,
        order: all(contents.order),
        values: contents.values,
        shown: shown.into_iter().collect(),
        flipped: all(contents.flipped),
        flows,
        replay: contents.replay.words(),
    }
}

/// The tables while they are filled.
struct Tables<'a> {
    sources: &'a Sources,
    strings: Vec<&'a str>,
    string_numbers: HashMap<&'a str, usize>,
    threads: Vec<Thread<'a>>,
    thread_numbers: HashMap<&'a str, usize>,
    files: Vec<File<'a>>,
    file_numbers: HashMap<&'a str, usize>,
    frames: Vec<Frame>,
    frame_numbers: HashMap<(&'a str, u32, &'a str), usize>,
    stacks: Vec<Vec<usize>>,
    stack_numbers: HashMap<Vec<usize>, usize>,
    events: Events<'a>,
}

impl<'a> Tables<'a> {
    fn new(sources: &'a Sources) -> Self {
        Self {
            sources,
            strings: Vec::new(),
            string_numbers: HashMap::new(),
            threads: Vec::new(),
            thread_numbers: HashMap::new(),
            files: Vec::new(),
            file_numbers: HashMap::new(),
            frames: Vec::new(),
            frame_numbers: HashMap::new(),
            stacks: Vec::new(),
            stack_numbers: HashMap::new(),
            events: Events::default(),
        }
    }

    fn finish(self) -> Page<'a> {
        Page {
            strings: self.strings,
            threads: self.threads,
            files: self.files,
            frames: self.frames,
            stacks: self.stacks,
            events: self.events,
            lanes: Vec::new(),
            cause: Vec::new(),
            blocks: Vec::new(),
            failure: None,
        }
    }

    fn string(&mut self, text: &'a str) -> usize {
        *self.string_numbers.entry(text).or_insert_with(|| {
            self.strings.push(text);
            self.strings.len() - 1
        })
    }

    /// A thread that nobody described comes without its entry function.
    fn thread(&mut self, id: &'a str, entry: &'a str) -> usize {
        *self.thread_numbers.entry(id).or_insert_with(|| {
            self.threads.push(Thread { id, entry });
            self.threads.len() - 1
        })
    }

    fn file(&mut self, name: &'a str) -> usize {
        *self.file_numbers.entry(name).or_insert_with(|| {
            let (missing, parts) = match self.sources.file(name) {
                Ok(parts) => (None, parts),
                Err(reason) => (Some(reason), [].as_slice()),
            };
            self.files.push(File { name, missing, parts });
            self.files.len() - 1
        })
    }

    fn frame(&mut self, location: &'a Location) -> usize {
        let key = (location.file.as_str(), location.line, location.function.as_str());
        if let Some(number) = self.frame_numbers.get(&key) {
            return *number;
        }
        let file = (!location.file.is_empty()).then(|| self.file(&location.file));
        let function = self.string(&location.function);
        self.frames.push(Frame { place: place(location), file, line: location.line, function });
        self.frame_numbers.insert(key, self.frames.len() - 1);
        self.frames.len() - 1
    }

    fn stack(&mut self, event: &'a Event) -> usize {
        let frames = [&event.location].into_iter().chain(&event.callers);
        let frames: Vec<usize> = frames.map(|location| self.frame(location)).collect();
        if let Some(number) = self.stack_numbers.get(&frames) {
            return *number;
        }
        self.stacks.push(frames.clone());
        self.stack_numbers.insert(frames, self.stacks.len() - 1);
        self.stacks.len() - 1
    }

    fn event(&mut self, event: &'a Event) -> usize {
        let thread = self.thread(&event.thread, "");
        let kind = self.string(&event.kind);
        let object = event.object.as_deref().map(|text| self.string(text));
        let targets = event.targets.iter().map(|target| self.string(target)).collect();
        let stack = self.stack(event);
        let value = event.value.as_deref().map(|text| self.string(text));
        let events = &mut self.events;
        events.id.push(&event.id);
        events.thread.push(thread);
        events.kind.push(kind);
        events.object.push(object);
        events.targets.push(targets);
        events.stack.push(stack);
        events.value.push(value);
        events.id.len() - 1
    }
}
