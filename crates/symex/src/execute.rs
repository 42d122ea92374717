//! The passes, one after the other.

use crate::access::Stamp;
use crate::budget::{Limits, Spending};
use crate::builder::Builder;
use crate::cells::SharedCells;
use crate::channels::Channels;
use crate::containers::is_library_function;
use crate::contents::Contents;
use crate::descriptors::Descriptors;
use crate::endless;
use crate::engine::{Engine, Learned, Pass};
use crate::failure::AccessKey;
use crate::files::Files;
use crate::handovers::Handovers;
use crate::hang::Noticed;
use crate::idle::LeaveOut;
use crate::image::Image;
use crate::initialised::Initialisations;
use crate::locals::Used;
use crate::openmp;
use crate::owners::{self, Handing};
use crate::queues::Queues;
use crate::recording::{RecordedFailureKind, Recording};
use crate::report::{EndedBy, Execution, FunctionCalls, Options, Report, SymexError};
use crate::shadow::Shadow;
use model::{EventTrace, FailureCondition, FailureKind, Thread, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The most survey passes. The second one is needed where a thread's memory is accessed by a
/// thread that is walked before it, and where what uninstrumented code wrote has to be guessed; a
/// third one never finds anything new in consistent logs.
const MOST_SURVEYS: usize = 3;
/// How often the surveys begin anew, since threads were cancelled in calls (`Learned::jumps`): of each it is tried, and where that
/// leads nowhere, taken back; what one thread does may show only behind another's.
const MOST_TAKEN_BACK: usize = 4;

/// Executes a recording.
///
/// # Errors
/// When there is nothing to execute, or a stream cannot be read. Contradictory logs are no error: the
/// thread stops, and the report says why.
pub fn execute(recording: &Recording, options: &Options) -> Result<Execution, SymexError> {
    execute_within(recording, options, &|| true)
}

/// The same, as long as there is something left to spend. That is asked every few milliseconds.
///
/// # Errors
/// As [`execute`], and [`SymexError::BudgetSpent`] once there is nothing left.
pub fn execute_within(
    recording: &Recording,
    options: &Options,
    spending: &dyn Spending,
) -> Result<Execution, SymexError> {
    if recording.threads.is_empty() {
        return Err(SymexError::NoThreads);
    }
    let mut limits = Limits::new(recording, options, spending);
    let image = Image::new(recording)?;
    let (execution, found) = walk(recording, &limits, &image)?;
    if let Some(noticed) = found.noticed {
        return of_hang(recording, noticed, (options, spending), execution);
    }
    if found.failed_by.is_some() {
        tracing::debug!(failed_by = ?found.failed_by, "the run went on");
        limits.failed_by = found.failed_by;
        let image = Image::new(recording)?;
        return Ok(walk(recording, &limits, &image)?.0);
    }
    Ok(execution)
}

/// What a walk finds that calls for another one.
struct Found {
    /// The run had hung before it failed in another way.
    noticed: Option<Noticed>,
    /// See [`Limits::failed_by`].
    failed_by: Option<(u64, u64)>,
}

/// Asks a run that failed why it hung before, where it is known what it hung on; gives what is known of the failure otherwise.
fn of_hang(
    recording: &Recording,
    noticed: Noticed,
    budget: (&Options, &dyn Spending),
    execution: Execution,
) -> Result<Execution, SymexError> {
    tracing::debug!(?noticed, "the run had hung before it failed");
    let limits = Limits::of_hang(recording, noticed, budget);
    let image = Image::new(recording)?;
    let (mut of_hang, _) = match walk(recording, &limits, &image) {
        // What is known of the failure is true as well.
        Err(SymexError::BudgetSpent) => return Ok(execution),
        walked => walked?,
    };
    let is_known = of_hang.trace.failure.as_ref().is_some_and(|failure| match failure.kind {
        FailureKind::Deadlock => true,
        FailureKind::Hang => {
            !noticed.circle && (noticed.for_ever || depends(&of_hang.trace, &failure.condition))
        }
        _ => false,
    });
    if !is_known {
        return Ok(execution);
    }
    of_hang.report.ended_by = execution.trace.failure.as_ref().map(|failure| EndedBy {
        kind: failure.kind,
        message: failure.message.clone(),
        thread: execution.trace.thread_of(failure.event).name.clone(),
        site: execution.trace.event(failure.event).site().clone(),
    });
    Ok(of_hang)
}

/// Does the condition depend on the order of the run?
fn depends(trace: &EventTrace, condition: &FailureCondition) -> bool {
    match condition {
        FailureCondition::Value(value) => trace.exprs.as_const(*value).is_none(),
        FailureCondition::Before(..) | FailureCondition::Unwoken { .. } => true,
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().any(|part| depends(trace, part))
        }
    }
}

/// All passes.
fn walk<'r>(
    recording: &'r Recording,
    limits: &'r Limits<'r>,
    image: &'r Image<'r>,
) -> Result<(Execution, Found), SymexError> {
    let order = thread_order(recording);
    let (ranges, learned) = survey(recording, limits, image, &order)?;
    tracing::debug!(cells = ranges.len(), "survey done");
    let handed = owners::find(recording, limits, image, (&order, &learned), &ranges)?;
    let ranges = handed.as_ref().map_or(ranges.clone(), |handed| handed.others(&ranges));
    let symbolic = |learned: Learned, leave_out: LeaveOut| {
        let pass = Pass::Symbolic(SharedCells::new(&ranges));
        let mut engine = Engine::new(image, recording, limits, pass, learned, &order, leave_out);
        engine.handing = Handing::of(handed.clone());
        engine.run().map(|()| engine)
    };
    let mut leave_out = match recording.scheduled {
        true => LeaveOut::Nothing,
        false => LeaveOut::Updates,
    };
    let mut engine = symbolic(learned, leave_out)?;
    if !engine.assumptions_hold() {
        tracing::debug!("updates in rounds of waiting stay");
        let learned = std::mem::take(&mut engine.learned);
        leave_out = LeaveOut::Reads;
        engine = symbolic(learned, leave_out)?;
    }
    let suspects = !engine.lifetime.locals.is_empty()
        || !engine.lifetime.freed.found.is_empty()
        || engine.lifetime.outlived.is_asked();
    // A check that failed seldom tells of such; a crash does.
    let looks_again = handed.is_none() && (engine.has_crashed() || !suspects || limits.is_ample());
    // What a local variable held is freed with it.
    if let Some(better) = with_lost(&engine, &symbolic, &order, leave_out)? {
        engine = better;
    } else if !looks_again {
        tracing::debug!("no time to look for what was used when it had ended");
    } else if !engine.lifetime.locals.is_empty()
        && let Some(better) = with_locals(&engine, &order, leave_out)?
    {
        engine = better;
    } else if !engine.lifetime.freed.found.is_empty()
        && let Some(better) = with_freed(&engine, &order, leave_out)?
    {
        engine = better;
    } else if engine.lifetime.outlived.is_asked()
        && let Some(better) = with_outlived(&engine, &order, leave_out)?
    {
        engine = better;
    }
    limits.ask()?;
    let found = Found { noticed: engine.hung_before(), failed_by: engine.went_on() };
    let hang = engine.explain_hang();
    limits.ask()?;
    let lifetime = std::mem::take(&mut engine.lifetime);
    let numbering = engine.out.numbering();
    let owners = engine.owners();
    let mut execution = collect(engine, image);
    execution.report.not_looked_again = suspects && !looks_again;
    execution.report.handed_over = handed.map_or(0, |handed| handed.count());
    hang.apply(&mut execution.trace, &numbering);
    lifetime.apply(&mut execution.trace, &numbering);
    lifetime.keep_alive(&mut execution.trace, &numbering, &owners);
    tracing::debug!(
        events = execution.trace.events.len(),
        conditions = execution.trace.conditions.len(),
        gaps = execution.report.gap_count(),
        "symbolic pass done"
    );
    Ok((execution, found))
}

/// What is looked for in another walk.
struct Suspects {
    objects: BTreeSet<usize>,
    meant: Arc<FxHashMap<AccessKey, usize>>,
}

/// Walks the run again with all accesses to the objects that the failing thread may have used after
/// they were freed as events; `None` where that explains no failure.
fn with_freed<'r>(
    first: &Engine<'r>,
    order: &[usize],
    leave_out: LeaveOut,
) -> Result<Option<Engine<'r>>, SymexError> {
    let freed = &first.lifetime.freed;
    tracing::debug!(objects = freed.found.len(), "freed objects may have been used");
    let meant = Arc::new(freed.meant_now.clone());
    let suspects = Suspects { objects: freed.found.clone(), meant };
    with_suspects(first, first.learned.clone(), &suspects, (order, leave_out))
}

/// The same with the local variables of other threads that the failing thread may have used after they
/// had ended.
fn with_locals<'r>(
    first: &Engine<'r>,
    order: &[usize],
    leave_out: LeaveOut,
) -> Result<Option<Engine<'r>>, SymexError> {
    let Some(failing) = first.failing else { return Ok(None) };
    let walk = knowing_locals(first, first.lifetime.locals.clone(), order)?;
    let ended = |object: &usize| walk.learned.heap.objects[*object].freed.is_some();
    let mut meant = walk.pointed_to(first, &first.lifetime.pointed.uses);
    tracing::debug!(
        used = first.lifetime.locals.len(),
        meant = meant.len(),
        "local variables of other threads were used"
    );
    meant.retain(|_, object| ended(object));
    let given = walk.learned.locals.given_to(failing).filter(ended);
    let objects: BTreeSet<usize> = given.chain(meant.values().copied()).collect();
    if objects.is_empty() {
        return Ok(None);
    }
    tracing::debug!(objects = objects.len(), "ended local variables may have been used");
    let mut learned = walk.learned;
    learned.locals.choose(&objects);
    let suspects = Suspects { objects, meant: Arc::new(meant) };
    with_suspects(first, learned, &suspects, (order, leave_out))
}

/// The same of a run that hung, where a thread does not come back from a call about a local variable of another one.
fn with_lost<'r>(
    first: &Engine<'r>,
    symbolic: &dyn Fn(Learned, LeaveOut) -> Result<Engine<'r>, SymexError>,
    order: &[usize],
    leave_out: LeaveOut,
) -> Result<Option<Engine<'r>>, SymexError> {
    let Some(lost) = first.lost_in_stack() else { return Ok(None) };
    tracing::debug!(thread = lost, "a call about another thread's stack does not come back");
    let again = symbolic(Learned { lost: Some(lost), ..first.learned.clone() }, leave_out)?;
    with_locals(&again, order, leave_out)
}

/// The same with the ends of the failing thread's own variables that other threads wrote to after they had ended.
fn with_outlived<'r>(
    first: &Engine<'r>,
    order: &[usize],
    leave_out: LeaveOut,
) -> Result<Option<Engine<'r>>, SymexError> {
    let Some(failing) = first.failing else { return Ok(None) };
    let known = knowing_locals(first, first.lifetime.outlived.used(failing), order)?;
    let wanted = known.outlived(first);
    tracing::debug!(uses = wanted.len(), "variables of the failing thread may have ended");
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut learned = known.learned;
    learned.locals.choose_ends(&wanted.values().map(|meant| meant.object).collect());
    // A write that nobody reads is an event, too.
    let Engine { pass, mut learned, .. } = surveyed(first, learned, order)?;
    let Pass::Survey(shadow) = pass else { return Ok(None) };
    let pass = Pass::Symbolic(SharedCells::new(&shadow.cells()));
    learned.writers = shadow.writers;
    let (image, recording, limits) = (first.image, first.recording, first.limits);
    let mut walk = Engine::new(image, recording, limits, pass, learned, order, leave_out);
    walk.lifetime.outlived.wanted = Arc::new(wanted);
    walk.run()?;
    Ok((walk.assumptions_hold() && walk.blame_outlived()).then_some(walk))
}

/// A walk that knows the local variables that ever lay at some addresses.
fn knowing_locals<'r>(
    first: &Engine<'r>,
    used: Used,
    order: &[usize],
) -> Result<Engine<'r>, SymexError> {
    let mut learned = first.learned.clone();
    learned.locals.used = Arc::new(used);
    learned.locals.stores = first.lifetime.pointed.stores();
    surveyed(first, learned, order)
}

fn surveyed<'r>(
    first: &Engine<'r>,
    learned: Learned,
    order: &[usize],
) -> Result<Engine<'r>, SymexError> {
    let (image, recording, limits) = (first.image, first.recording, first.limits);
    let shadow = Pass::Survey(Box::new(Shadow::new(limits.options.ordered_accesses)));
    let nothing = LeaveOut::Nothing;
    let mut walk = Engine::new(image, recording, limits, shadow, learned, order, nothing);
    walk.run()?;
    Ok(walk)
}

fn with_suspects<'r>(
    first: &Engine<'r>,
    learned: Learned,
    suspects: &Suspects,
    (order, leave_out): (&[usize], LeaveOut),
) -> Result<Option<Engine<'r>>, SymexError> {
    let walk = |pass: Pass, learned: Learned, leave_out: LeaveOut| {
        let (image, recording, limits) = (first.image, first.recording, first.limits);
        let mut walk = Engine::new(image, recording, limits, pass, learned, order, leave_out);
        walk.lifetime.freed.suspects.clone_from(&suspects.objects);
        walk.lifetime.freed.meant = Arc::clone(&suspects.meant);
        walk.run().map(|()| walk)
    };
    let shadow = Pass::Survey(Box::new(Shadow::new(first.limits.options.ordered_accesses)));
    let Engine { pass, mut learned, .. } = walk(shadow, learned, LeaveOut::Nothing)?;
    let Pass::Survey(shadow) = pass else { return Ok(None) };
    let ranges = shadow.cells();
    learned.writers = shadow.writers;
    let mut again = walk(Pass::Symbolic(SharedCells::new(&ranges)), learned, leave_out)?;
    Ok((again.assumptions_hold() && again.blame_freed()).then_some(again))
}

/// Runs the survey until it knows every object that it met.
fn survey<'r>(
    recording: &'r Recording,
    limits: &'r Limits<'r>,
    image: &'r Image<'r>,
    order: &[usize],
) -> Result<(Vec<(u64, u32)>, Learned), SymexError> {
    let cuts = endless::find(recording, limits, image, order)?;
    let panicked = recording.handled.filter(|_| recording.common_clock);
    let mut learned = Learned { cuts, panicked, ..Learned::default() };
    let mut ranges = Vec::new();
    let (mut round, mut taken_back) = (0, 0);
    while round < MOST_SURVEYS {
        let pass = Pass::Survey(Box::new(Shadow::new(limits.options.ordered_accesses)));
        learned.unresolved.clear();
        learned.used_dead.get_mut().clear();
        learned.text_ends.clear();
        learned.channels = Channels::default();
        learned.descriptors = Descriptors::default();
        learned.files = Files::default();
        learned.contents = Contents::default();
        learned.initialisations = Initialisations::default();
        learned.handovers = Handovers::default();
        learned.queues = Queues::default();
        let nothing = LeaveOut::Nothing;
        let mut engine = Engine::new(image, recording, limits, pass, learned, order, nothing);
        engine.run()?;
        let jumps = engine.learn_jumps();
        let late = engine.resolves_more();
        let complete = engine.threads.iter().all(|thread| thread.report.reached_end);
        engine.learned.channels.decide(complete);
        engine.learned.descriptors.decide(complete);
        engine.learned.files.decide(complete);
        engine.decide_contents(complete);
        engine.learned.initialisations.decide();
        (0..engine.threads.len()).for_each(|t| engine.note_open_calls(t));
        engine.learned.handovers.decide(complete);
        engine.learned.queues.decide();
        let published = engine.publish_thread_locals();
        let (pass, found) = (engine.pass, engine.learned);
        learned = found;
        if let Pass::Survey(shadow) = pass {
            ranges = shadow.cells();
            learned.writers = shadow.writers;
        }
        if jumps && taken_back < MOST_TAKEN_BACK {
            // Behind where a thread was cancelled this walk read the log at wrong places: all that it learned may be wrong.
            let Learned { cuts, panicked, jumps, .. } = learned;
            learned = Learned { cuts, panicked, jumps, ..Learned::default() };
            (round, taken_back) = (0, taken_back + 1);
            continue;
        }
        let unjudged = round == 0 && learned.guesses;
        let shared = SharedCells::new(&ranges);
        let ends = std::mem::take(&mut learned.text_ends).into_iter();
        let open: Vec<u64> = ends.filter(|end| shared.at(*end).is_some()).collect();
        let goes_on = !open.is_empty();
        learned.open_ends.extend(open);
        tracing::debug!(
            round,
            cells = ranges.len(),
            late,
            unjudged,
            published,
            goes_on,
            "surveyed"
        );
        if !(late || unjudged || published || goes_on) {
            break;
        }
        round += 1;
    }
    Ok((ranges, learned))
}

impl Engine<'_> {
    /// Does an address that belonged to nothing when it was accessed, or to what had been freed, belong to something now?
    fn resolves_more(&self) -> bool {
        let now_known = |&address: &u64| {
            (0..self.threads.len()).any(|t| self.lookup(t, address) != Some(address))
        };
        let objects = &self.learned.heap.objects;
        let now_stack =
            |(&index, &from): (&usize, &u64)| self.is_below_stack(&objects[index], from);
        self.learned.unresolved.iter().any(now_known)
            || self.learned.used_dead.borrow().iter().any(now_stack)
    }
}

/// Indices into the recording's threads, creators before those they create.
fn thread_order(recording: &Recording) -> Vec<usize> {
    let mut order: Vec<usize> = (0..recording.threads.len()).collect();
    order.sort_by_key(|&index| (recording.threads[index].serial, index));
    order
}

fn collect(mut engine: Engine<'_>, image: &Image<'_>) -> Execution {
    let serials: HashMap<u64, usize> =
        engine.threads.iter().map(|thread| (thread.log.serial, thread.index)).collect();
    let threads = engine.threads.iter().map(|thread| Thread {
        id: ThreadId::from_index(thread.index),
        name: thread.log.name.clone(),
        parent: match thread.index {
            0 => None,
            _ => serials
                .get(&thread.log.parent)
                .filter(|&&parent| parent < thread.index)
                .map(|&parent| ThreadId::from_index(parent)),
        },
        entry: thread_name(image, thread.log.start_routine, thread.index, &engine.out),
        events: Vec::new(),
    });
    let threads = threads.collect();
    let names: Vec<&str> = engine.threads.iter().map(|thread| thread.log.name.as_str()).collect();
    let (inputs, inputs_left_out) = engine.collected.finish(&names);
    let failure = engine.limits.failure.as_ref();
    let report = Report {
        threads: engine.threads.iter().map(|thread| thread.report.clone()).collect(),
        gaps: engine.gap_counts,
        functions: engine
            .functions
            .into_iter()
            .map(|(name, (known, calls))| FunctionCalls { name: name.to_owned(), known, calls })
            .collect(),
        inputs_left_out,
        still_running: std::mem::take(&mut engine.still_running),
        awaited_child: engine.awaited_child.take(),
        awaits_lost: engine.awaits_lost,
        used_after_free: engine
            .used_after_free
            .and_then(|(t, site)| Some((names.get(t)?.to_string(), site))),
        timed_out: failure.is_some_and(|f| f.kind == RecordedFailureKind::TimedOut),
        ended_by: None,
        not_looked_again: false,
        handed_over: 0,
    };
    std::mem::take(&mut engine.containers).rename(&mut engine.out);
    let is_sorted = engine.learned.stamps.iter().all(|stamps| Stamp::are_sorted(stamps));
    // Events are about to be moved, which takes room, and a long run leaves much that is done with.
    engine.learned = Learned::default();
    engine.known = FxHashMap::default();
    let mut trace = engine.out.finish(engine.pool, threads, engine.failure);
    trace.forked = engine.recording.forked;
    model::fit_inputs(&mut trace);
    if !engine.recording.common_clock || !is_sorted {
        trace.intervals.clear();
    }
    let (points, own_uses) = (engine.points.finish(), engine.own.finish());
    Execution { trace, points, inputs, gaps: engine.gaps, own_uses, report }
}

fn thread_name(image: &Image<'_>, address: u64, thread: usize, out: &Builder) -> String {
    let entry = entry_name(image, address);
    openmp::worker_name(&entry, thread, out).unwrap_or(entry)
}

/// The start routine's name; its address where it is a library's.
fn entry_name(image: &Image<'_>, address: u64) -> String {
    if address == 0 {
        return "main".to_owned();
    }
    let function = image.by_address(address).and_then(|(module, id)| {
        let module = image.module(module);
        let function = module.functions.get(id.index())?;
        (!is_library_function(module, function)).then(|| ir::name::start_name(function))
    });
    function.unwrap_or_else(|| format!("{address:#x}"))
}
