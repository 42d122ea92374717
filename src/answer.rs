//! From an explanation to the answer that the formats print: names, places and values in place of
//! identifiers.

mod across;
mod cause;
mod kept;
mod sources;

pub use across::add_across;
pub use cause::{add_cause, add_late_writes, came_from_outside, passed_elsewhere, tried_in_vain};
pub use kept::{KeptError, keep, kept, kept_file};
pub use sources::add_sources;

use encoders::SystemSize;
use explain::{CauseKind, CutReason, Explanation, Phase};
use model::evaluate::Evaluation;
use model::names::is_channel;
use model::trace::HAND_OVER;
use model::{
    Awaited, CellId, Event, EventId, EventKind, EventTrace, ExprId, FailureCondition, ReadRef,
    Site, VarId, WriteSource,
};
use render::Solution;
use render::solution::{
    Alternate, AtomicBlock, DataFlow, DataFlows, Dsp, EventValue, FORMAT, Failure, Location,
    Replay, RootCause, Stats, Thread, VERSION, ValuePair, Verdict,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long the stages took, wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Loading and symbolic execution.
    pub symex: Duration,
    /// Encoding and the failing schedule.
    pub solve: Duration,
    /// The root cause.
    pub root_cause: Duration,
    /// Alternates and DSP.
    pub alternates: Duration,
}

/// Takes the time of the explanation's phases.
#[derive(Debug)]
pub struct PhaseClock {
    marks: RefCell<Vec<(Phase, Instant)>>,
}

impl PhaseClock {
    /// The first phase began at `started`, when encoding began.
    #[must_use]
    pub fn start(started: Instant) -> Self {
        Self { marks: RefCell::new(vec![(Phase::Schedule, started)]) }
    }

    /// A phase begins now.
    pub fn enter(&self, phase: Phase) {
        self.marks.borrow_mut().push((phase, Instant::now()));
    }

    /// Adds the phases' times to `timing`.
    pub fn finish(&self, timing: &mut Timing) {
        let marks = self.marks.borrow();
        let ends = marks.iter().skip(1).map(|mark| mark.1).chain([Instant::now()]);
        for ((phase, begin), end) in marks.iter().zip(ends) {
            let spent = end.saturating_duration_since(*begin);
            match phase {
                Phase::Schedule | Phase::Switches => timing.solve += spent,
                Phase::RootCause => timing.root_cause += spent,
                Phase::Alternates => timing.alternates += spent,
            }
        }
    }
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The event trace.
    pub trace: &'a EventTrace,
    /// How large its constraints are.
    pub size: SystemSize,
    /// The explanation.
    pub explanation: &'a Explanation,
    /// Model gaps.
    pub gaps: u64,
    /// Rounds of waiting that have no events.
    pub rounds_left_out: u64,
    /// Times.
    pub timing: Timing,
    /// No schedule fails in which the writes of all threads, or of one, are seen late.
    pub sought_late: bool,
}

/// The answer.
#[must_use]
pub fn solution(parts: &Parts<'_>) -> Solution {
    let Parts { trace, explanation, .. } = *parts;
    let failing = explanation.failing.as_ref();
    let evaluation = failing.map(|failing| &failing.evaluation);
    let names = Names { trace };
    Solution {
        format: FORMAT.to_owned(),
        version: VERSION.to_owned(),
        verdict: verdict(&explanation.verdict),
        reason: reason(explanation, trace, parts.sought_late),
        failure: names.failure(),
        cause: None,
        threads: names.threads(),
        events: trace.events.iter().map(|event| names.event(event, evaluation)).collect(),
        schedule: failing.map(|failing| ids(&failing.schedule.order)).unwrap_or_default(),
        root_cause: explanation.root_cause.as_ref().map(root_cause),
        alternates: explanation
            .alternates
            .found
            .iter()
            .map(|found| alternate(&names, evaluation, found))
            .collect(),
        dsp: dsp(&names, explanation),
        replay: Replay::NotRun,
        replay_notes: Vec::new(),
        late_writes: Vec::new(),
        check: None,
        sources: Vec::new(),
        stats: stats(parts),
    }
}

fn verdict(verdict: &explain::Verdict) -> Verdict {
    match verdict {
        explain::Verdict::FailingSchedule => Verdict::FailingSchedule,
        explain::Verdict::NoSchedule => Verdict::NoSchedule,
        explain::Verdict::Unknown(_) => Verdict::Unknown,
    }
}

fn reason(explanation: &Explanation, trace: &EventTrace, sought_late: bool) -> Option<String> {
    let reasons: Vec<String> = explanation
        .cut
        .iter()
        .map(|cut| {
            let phase = match cut.phase {
                Phase::Schedule => "the search for a failing schedule",
                Phase::Switches => "the search for fewer context switches",
                Phase::RootCause => "the search for the root cause",
                Phase::Alternates => "the search for alternates",
            };
            match &cut.reason {
                CutReason::Limit(limit) => format!("{phase} ended early: {limit}"),
                CutReason::Error(error) => format!("{phase} broke: {error}"),
            }
        })
        .collect();
    if reasons.is_empty() && explanation.verdict == explain::Verdict::NoSchedule {
        let mut taken = match sought_late {
            true => {
                "every write is taken to be seen at once by all threads, or those of all threads, or of one, to be \
                 seen as late as x86 has it; other mixtures are not looked for"
            }
            false => {
                "every write is taken to be seen at once by all threads; a store that another one sees late, as \
                 weak memory order allows, was not looked for to the end"
            }
        }
        .to_owned();
        if trace.objects.iter().any(|object| object.name.starts_with(HAND_OVER)) {
            taken.push_str(
                "; what a library gave a thread is taken to come from the thread that passed it there",
            );
        }
        return Some(taken);
    }
    if reasons.is_empty() { None } else { Some(reasons.join("; ")) }
}

fn root_cause(cause: &explain::RootCause) -> RootCause {
    let pair = |order: &explain::ConflictOrder| {
        [order.order.before.to_string(), order.order.after.to_string()]
    };
    RootCause {
        orders: cause.orders.iter().map(pair).collect(),
        minimal: cause.minimal,
        proposed: !cause.shown,
        fails_always: cause.kind == CauseKind::FailsAlways,
    }
}

fn alternate(
    names: &Names<'_>,
    failing: Option<&Evaluation>,
    alternate: &explain::Alternate,
) -> Alternate {
    let values = names.trace.events.iter().filter_map(|event| {
        let value = names.value(event, &alternate.evaluation);
        let failing = failing.and_then(|failing| names.value(event, failing));
        (value != failing).then(|| EventValue { event: event.id.to_string(), value })
    });
    Alternate {
        flipped: [alternate.flipped.before.to_string(), alternate.flipped.after.to_string()],
        same_path: true,
        schedule: ids(&alternate.schedule.order),
        events: Vec::new(),
        values: values.collect(),
        replay: Replay::NotRun,
        threads: Vec::new(),
        replay_note: None,
    }
}

fn ids(events: &[EventId]) -> Vec<String> {
    events.iter().map(ToString::to_string).collect()
}

fn dsp(names: &Names<'_>, explanation: &Explanation) -> Option<Dsp> {
    let found = explanation.dsps.first()?;
    let failing = &explanation.failing.as_ref()?.evaluation;
    let alternate = &explanation.alternates.found.first()?.evaluation;
    let events: BTreeSet<EventId> = found.failing.iter().copied().collect();
    let values = events
        .into_iter()
        .map(|id| (id, names.trace.event(id)))
        .filter(|(_, event)| !event.kind.reads().is_empty() || !event.kind.writes().is_empty())
        .map(|(id, event)| ValuePair {
            event: id.to_string(),
            failing: names.value(event, failing),
            alternate: names.value(event, alternate),
        })
        .collect();
    Some(Dsp {
        failing: ids(&found.failing),
        alternate: ids(&found.alternate),
        data_flows: DataFlows {
            failing_only: names.data_flows(&found.failing_only, failing, &found.follows),
            alternate_only: names.data_flows(&found.alternate_only, alternate, &found.follows),
        },
        values,
        atomic_blocks: found.atomic_blocks.iter().map(|block| atomic_block(names, block)).collect(),
    })
}

fn atomic_block(names: &Names<'_>, block: &explain::AtomicBlock) -> AtomicBlock {
    AtomicBlock {
        thread: names.trace.threads[block.thread.index()].name.clone(),
        first: block.first.to_string(),
        last: block.last.to_string(),
        interrupted_by: ids(&block.interrupted_by),
    }
}

fn stats(parts: &Parts<'_>) -> Stats {
    let Parts { trace, size, explanation, gaps, rounds_left_out, timing, .. } = parts;
    let accesses =
        |event: &&Event| !event.kind.reads().is_empty() || !event.kind.writes().is_empty();
    let counts = explanation.dsps.first().map(|dsp| dsp.counts).unwrap_or_default();
    let flows = explanation.failing.as_ref().map_or(0, |f| flow_count(&f.evaluation));
    let varied = explanation.dsps.first().map_or(0, |dsp| {
        let pairs = dsp.failing_only.iter().map(|flow| (flow.write, flow.read.event));
        pairs.collect::<BTreeSet<_>>().len()
    });
    Stats {
        events: trace.events.len() as u64,
        shared_accesses: trace.events.iter().filter(accesses).count() as u64,
        constraints: size.constraints as u64,
        variables: size.variables as u64,
        model_gaps: *gaps,
        rounds_left_out: *rounds_left_out,
        context_switches: explanation.statistics.switches as u64,
        data_flows: flows as u64,
        dsp_events: counts.events as u64,
        dsp_data_flows: varied as u64,
        alternates_tried: explanation.alternates.tried as u64,
        not_compared: 0,
        symex_ms: milliseconds(timing.symex),
        solve_ms: milliseconds(timing.solve),
        root_cause_ms: milliseconds(timing.root_cause),
        alternates_ms: milliseconds(timing.alternates),
    }
}

/// Pairs of a reading event and a source.
fn flow_count(evaluation: &Evaluation) -> usize {
    let pairs = evaluation.reads_from.iter().map(|(read, source)| (read.event, *source));
    pairs.collect::<BTreeSet<_>>().len()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Looks things up in a trace.
struct Names<'a> {
    trace: &'a EventTrace,
}

impl Names<'_> {
    fn threads(&self) -> Vec<Thread> {
        let name = |id: model::ThreadId| self.trace.threads[id.index()].name.clone();
        self.trace
            .threads
            .iter()
            .map(|thread| Thread {
                id: thread.name.clone(),
                parent: thread.parent.map(name),
                entry: self.entry(thread),
            })
            .collect()
    }

    /// The function that a thread starts in. Where that is a library's (`std::thread` has one of
    /// its own), the outermost function of the program that is seen in it.
    fn entry(&self, thread: &model::Thread) -> String {
        let own = thread.events.iter().find_map(|&id| {
            let stack = &self.trace.event(id).stack;
            stack.iter().rev().find(|site| !site.is_in_library())
        });
        match own {
            Some(site) if thread.entry.starts_with("0x") => site.function.clone(),
            _ => thread.entry.clone(),
        }
    }

    fn failure(&self) -> Option<Failure> {
        let failure = self.trace.failure.as_ref()?;
        Some(Failure {
            kind: failure.kind.name().to_owned(),
            thread: self.trace.thread_of(failure.event).name.clone(),
            event: failure.event.to_string(),
            location: location(self.trace.event(failure.event).site()),
            message: failure.message.clone(),
        })
    }

    fn event(&self, event: &Event, evaluation: Option<&Evaluation>) -> render::solution::Event {
        let callers = event.stack.iter().skip(event.depth() + 1);
        render::solution::Event {
            id: event.id.to_string(),
            thread: self.trace.threads[event.thread.index()].name.clone(),
            kind: self.kind(event).to_owned(),
            object: self.trace.subject(event).map(str::to_owned),
            targets: self.targets(event),
            location: location(event.site()),
            callers: callers.filter(|site| !site.is_in_library()).map(location).collect(),
            library: event.stack.iter().take(event.depth()).map(location).collect(),
            value: evaluation.and_then(|evaluation| self.value(event, evaluation)),
        }
    }

    /// What an event does, in the words of the answer. Of what goes through a channel it is written and read.
    fn kind(&self, event: &Event) -> &'static str {
        let channel = self.trace.subject(event).is_some_and(is_channel);
        match event.kind {
            _ if self.trace.ends_local(event) => "end",
            EventKind::SemaphorePost { .. } if channel => "write-to",
            EventKind::SemaphoreWait { .. } if channel => "read-from",
            EventKind::SemaphoreWaitFailed { .. } if channel => "found-nothing-in",
            EventKind::Block { on: Awaited::Unit { .. } } if channel => "wait-to-read-from",
            _ => event.kind.name(),
        }
    }

    /// The identifiers of what the event touches.
    fn targets(&self, event: &Event) -> Vec<String> {
        let cells: BTreeSet<CellId> = cells(event).into_iter().collect();
        let cells = cells.iter().map(ToString::to_string);
        cells.chain(event.kind.object().map(|object| object.to_string())).collect()
    }

    /// What the event reads or writes; for a read-modify-write `old -> new`. No write tells what is
    /// found in freed memory.
    fn value(&self, event: &Event, evaluation: &Evaluation) -> Option<String> {
        if evaluation.fails && self.is_use_of_freed(event) {
            return None;
        }
        let read = self.read_value(event, evaluation);
        let written = event.kind.writes().iter();
        let written = written.map(|part| (part.cell, self.evaluate(part.value, evaluation)));
        let written = self.joined(event, written);
        match (read, written) {
            (Some(read), Some(written)) => Some(format!("{read} -> {written}")),
            (read, written) => read.or(written),
        }
    }

    /// Is it the access that fails where it comes after the free of its object?
    fn is_use_of_freed(&self, event: &Event) -> bool {
        let is_it = |condition: &FailureCondition| match condition {
            FailureCondition::Before(free, access) => {
                *access == event.id
                    && matches!(self.trace.event(*free).kind, EventKind::Free { .. })
            }
            _ => false,
        };
        match self.trace.failure.as_ref().map(|failure| &failure.condition) {
            Some(FailureCondition::Any(parts)) => parts.iter().any(is_it),
            Some(condition) => is_it(condition),
            None => false,
        }
    }

    fn read_value(&self, event: &Event, evaluation: &Evaluation) -> Option<String> {
        let parts = event.kind.reads().iter().map(|part| {
            let value = evaluation.values.get(part.var.index()).copied().flatten();
            (part.cell, value)
        });
        self.joined(event, parts)
    }

    /// The value of one access. The parts of an event are put together, lowest first, and shown as
    /// the scalars that they are: mostly one, of which some other access touches only a part.
    fn joined(
        &self,
        event: &Event,
        parts: impl Iterator<Item = (CellId, Option<u128>)>,
    ) -> Option<String> {
        let (mut value, mut width, mut first) = (Some(0u128), 0, None);
        for (id, part) in parts {
            let cell = &self.trace.cells[id.index()];
            first.get_or_insert(cell);
            value = match (value, part) {
                (Some(low), Some(high)) if width + cell.width <= 128 => Some(low | (high << width)),
                _ => None,
            };
            width += cell.width;
        }
        let first = first?;
        let Some(value) = value else { return Some("?".to_owned()) };
        let pieces = event.pieces.iter();
        if pieces.clone().all(|piece| piece.width == 0) {
            return Some(first.display.format(value, width));
        }
        let shown = pieces.map(|piece| match piece.width {
            0 => "..".to_owned(),
            width => piece.display.format(value >> piece.first, width),
        });
        Some(format!("{{{}}}", shown.collect::<Vec<_>>().join(", ")))
    }

    fn evaluate(&self, expr: ExprId, evaluation: &Evaluation) -> Option<u128> {
        let value_of = |var: VarId| evaluation.values.get(var.index()).copied().flatten();
        self.trace.exprs.evaluate(expr, &value_of)
    }

    /// Data-flows between events, by the trace's own identifiers.
    fn data_flows(
        &self,
        flows: &[explain::DataFlow],
        evaluation: &Evaluation,
        follows: &Follows,
    ) -> Vec<DataFlow> {
        self.flows(flows, evaluation)
            .map(|(write, read, value)| DataFlow {
                write: match write {
                    WriteSource::Init => "init".to_owned(),
                    WriteSource::Write(event) => event.to_string(),
                },
                read: read.to_string(),
                value,
                follows_from: reads_behind(flows, (write, read), follows)
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            })
            .collect()
    }

    /// Data-flows between events: one for all pieces of a read that come from one event.
    fn flows(
        &self,
        flows: &[explain::DataFlow],
        evaluation: &Evaluation,
    ) -> impl Iterator<Item = (WriteSource, EventId, Option<String>)> {
        let mut seen = BTreeSet::new();
        flows.iter().filter(move |flow| seen.insert((flow.write, flow.read.event))).map(|flow| {
            let read = flow.read.event;
            (flow.write, read, self.read_value(self.trace.event(read), evaluation))
        })
    }
}

/// Reads whose variation follows from that of others.
type Follows = BTreeMap<ReadRef, Vec<ReadRef>>;

/// The events from whose reads it follows that all pieces of a data-flow between events vary.
fn reads_behind(
    flows: &[explain::DataFlow],
    (write, read): (WriteSource, EventId),
    follows: &Follows,
) -> BTreeSet<EventId> {
    let pieces = flows.iter().filter(|flow| flow.write == write && flow.read.event == read);
    let causes: Option<Vec<&Vec<ReadRef>>> = pieces.map(|flow| follows.get(&flow.read)).collect();
    causes.into_iter().flatten().flatten().map(|cause| cause.event).collect()
}

fn cells(event: &Event) -> Vec<CellId> {
    let reads = event.kind.reads().iter().map(|part| part.cell);
    reads.chain(event.kind.writes().iter().map(|part| part.cell)).collect()
}

fn location(site: &Site) -> Location {
    Location {
        file: site.file.clone(),
        line: site.line,
        column: site.column,
        function: site.function.clone(),
    }
}
