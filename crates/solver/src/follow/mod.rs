//! A failing schedule made from its beginning by what the recorded run's log tells of the values that were read.
//!
//! Where it is known what each read returned, it is known what each write wrote, and there is nothing left to look for but
//! an order in which each read finds its value. One is made event by event, by the clock's orders as far as there
//! are any. A read that finds its value, and whatever else cannot take anything from others, happens at once. Of
//! writes and acquisitions that one is tried first that leaves others what they read next, or gives it to them
//! ([`State::worth`]). Where nothing can happen, the search goes back to the last choice that has to do with what the
//! threads wait for: behind it nothing else can come about.
//!
//! That takes time in proportion to the trace where there is little to choose from, and too much where neither clock
//! nor values tell threads apart. What it finds is a proposal: whoever asked checks it. That it finds nothing says
//! nothing.

mod hopeless;
mod program;
mod reasons;
mod state;

use crate::Order;
use encoders::ConstraintSystem;
use model::{EventTrace, Schedule};
use program::Program;
use rustc_hash::FxHashSet;
use state::State;

/// So many events happen in vain for each event of the trace, and so many more, before the search gives up.
const WASTED: (u64, u64) = (3, 200_000);
/// No more events are kept of what a choice has to do with.
const REASONS: usize = 64;
/// After so many events it is asked whether to go on.
const POLL: u64 = 1_024;

/// A place where threads could go on whose next event may take something from others.
struct Choice {
    /// How many events had happened.
    step: usize,
    /// The other threads, the next one to try last.
    rest: Vec<u32>,
    /// The events because of which what was tried led nowhere; `None` where that may be any before.
    reasons: Option<Vec<u32>>,
    /// The state.
    hash: u64,
}

/// A schedule with the orders that `system` has for certain, and these, in which each read returns what it did in the
/// recorded run, as far as its log tells: most likely it follows the recorded paths and fails. Unless `is_strict`, a read
/// may return something else where the paths stay the same, when the run cannot be followed otherwise: what is not
/// logged may have come about in another way. `None` when `goes_on`, which is asked now and then, says no, and when
/// nothing is found.
#[must_use]
pub fn follow(
    trace: &EventTrace,
    system: &ConstraintSystem,
    orders: &[Order],
    is_strict: bool,
    goes_on: impl FnMut() -> bool,
) -> Option<Schedule> {
    let program = Program::new(trace, &all_certain(trace, system, orders), is_strict);
    let mut search = Search::new(State::new(&program, system.moments()));
    let found = search.run(goes_on);
    tracing::debug!(events = trace.events.len(), work = search.work, is_strict, found, "followed");
    if !found && tracing::enabled!(tracing::Level::DEBUG) {
        search.tell_where();
    }
    found.then(|| search.schedule())
}

/// As [`follow`] when strict, but where no such schedule is found, the reads that cannot be served may return something
/// else, one after the other: of memory that was used after it was freed the log says what the program's own writes
/// do not explain. Behind these the threads are as they were in the recorded run, as far as the log tells. The schedule has
/// only a part of the events where the search ends before. Gives it, and how many reads return something else.
#[must_use]
pub fn follow_loosely(
    trace: &EventTrace,
    system: &ConstraintSystem,
    orders: &[Order],
    mut goes_on: impl FnMut() -> bool,
) -> (Schedule, usize) {
    let program = Program::new(trace, &all_certain(trace, system, orders), true);
    let mut search = Search::new(State::new(&program, system.moments()));
    while !search.run(&mut goes_on) && goes_on() && search.spare() {}
    search.farthest.note(&search.state);
    let spared = search.state.spared.len();
    let (events, far) = (trace.events.len(), search.farthest.threads.len());
    tracing::debug!(events, far, work = search.work, spared, "followed loosely");
    (search.schedule(), spared)
}

/// The orders that the system has for certain, and these.
fn all_certain(trace: &EventTrace, system: &ConstraintSystem, orders: &[Order]) -> Vec<(u32, u32)> {
    let mut certain = crate::ordering::certain(trace, system);
    certain.extend(orders.iter().map(|order| (order.before.0, order.after.0)));
    certain
}

/// The longest beginning of a schedule that was met.
#[derive(Default)]
struct Farthest {
    /// Whose event each of its steps is.
    threads: Vec<u32>,
    /// So many of its steps are as they are in the state now.
    common: usize,
}

impl Farthest {
    /// The search is about to go back.
    fn note(&mut self, state: &State<'_, '_>) {
        if state.step() > self.threads.len() {
            self.threads.truncate(self.common);
            self.threads.extend(state.threads_since(self.common));
            self.common = self.threads.len();
        }
    }
}

struct Search<'p, 't> {
    state: State<'p, 't>,
    choices: Vec<Choice>,
    /// States from which nothing leads on.
    dead: FxHashSet<u64>,
    /// How many events happened, those in vain included.
    work: u64,
    farthest: Farthest,
}

impl<'p, 't> Search<'p, 't> {
    fn new(state: State<'p, 't>) -> Self {
        let (choices, dead) = (Vec::new(), FxHashSet::default());
        Self { state, choices, dead, work: 0, farthest: Farthest::default() }
    }

    /// The longest schedule that was met.
    fn schedule(&self) -> Schedule {
        Schedule { order: self.state.events_of(&self.farthest.threads) }
    }

    /// Goes on until all events have happened; false where that does not come about.
    fn run(&mut self, mut goes_on: impl FnMut() -> bool) -> bool {
        let most = self.work + self.state.events() as u64 * (WASTED.0 + 1) + WASTED.1;
        let mut asked = 0;
        loop {
            self.work += self.state.settle();
            if self.state.is_done() {
                self.farthest.note(&self.state);
                return true;
            }
            if self.work >= asked {
                asked = self.work + POLL;
                if self.work > most || !goes_on() {
                    return false;
                }
            }
            let mut threads = match self.state.hopeless() {
                Some(_) => Vec::new(),
                None => self.state.choices(),
            };
            let stuck = match threads.pop() {
                None if let Some(thread) = self.state.hopeless() => {
                    Some(self.state.reasons_of(thread))
                }
                None => Some(self.state.reasons()),
                Some(_) if self.dead.contains(&self.state.hash) => Some(None),
                Some(thread) => {
                    // Where there is one thread alone, why the others cannot go on counts, too.
                    self.choices.push(Choice {
                        step: self.state.step(),
                        rest: threads,
                        reasons: Some(Vec::new()),
                        hash: self.state.hash,
                    });
                    self.go(thread);
                    None
                }
            };
            if let Some(reasons) = stuck {
                self.farthest.note(&self.state);
                if !self.go_back(reasons) {
                    return false;
                }
            }
        }
    }

    /// Where the search came farthest, lets the event go on that cannot because of what it would read, the first one by the
    /// clock. False where there is none.
    fn spare(&mut self) -> bool {
        self.return_to_farthest();
        self.state.spare_first()
    }

    fn return_to_farthest(&mut self) {
        self.choices.clear();
        self.dead.clear();
        self.state.undo(self.farthest.common);
        let rest = self.farthest.threads.get(self.farthest.common..).unwrap_or_default();
        for &thread in rest {
            self.state.perform(thread as usize);
        }
        self.work += rest.len() as u64;
        self.farthest.common = self.farthest.threads.len();
    }

    /// Says in the log what each thread was to do where the search came farthest.
    fn tell_where(&mut self) {
        self.return_to_farthest();
        let program = self.state.program;
        for thread in 0..program.threads.len() {
            let Some(op) = self.state.next(thread) else { continue };
            let (event, held) = (program.trace.event(op.event), self.state.held(op));
            let site = event.site();
            tracing::debug!(thread, event = ?event.id, kind = event.kind.name(), file = ?site.file, line = site.line, ?held, "next");
        }
    }

    fn go(&mut self, thread: u32) {
        self.state.perform(thread as usize);
        self.work += 1;
    }

    /// Goes back to the last choice that one of these events hangs on, or to the last one where that may be any, and
    /// on in another way; false where there is none.
    fn go_back(&mut self, mut reasons: Option<Vec<u32>>) -> bool {
        loop {
            if let Some(reasons) = &mut reasons {
                let Some(last) = reasons.iter().copied().max() else { return false };
                reasons.extend(self.state.written_before(last));
                while self.choices.last().is_some_and(|choice| choice.step > last as usize) {
                    self.choices.pop();
                }
            }
            let Some(choice) = self.choices.last_mut() else { return false };
            self.state.undo(choice.step);
            self.farthest.common = self.farthest.common.min(choice.step);
            match (&mut choice.reasons, reasons) {
                (Some(known), Some(mut more)) => {
                    known.append(&mut more);
                    known.retain(|&step| (step as usize) < choice.step);
                    known.sort_unstable();
                    known.dedup();
                    if known.len() > REASONS {
                        choice.reasons = None;
                    }
                }
                _ => choice.reasons = None,
            }
            if let Some(thread) = choice.rest.pop() {
                self.go(thread);
                return true;
            }
            self.dead.insert(choice.hash);
            reasons = choice.reasons.take();
            self.choices.pop();
            // Why the others could not go on here counts, too.
            reasons = reasons.zip(self.state.reasons()).map(|(mut all, more)| {
                all.extend(more);
                all
            });
        }
    }
}
