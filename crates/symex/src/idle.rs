//! Rounds of waiting: a thread that polls goes round a loop until another one has done something, and
//! makes the same few reads in each round. Only the first and the last round tell anything; those in
//! between are left out of the event trace, as if the thread had been slower.
//!
//! A round lasts from one arrival at a loop's header to the next. It may be left out when
//!
//! * it did nothing that others could notice: it read, took locks and gave them back, exchanged what
//!   it found for the same, asked in vain, slept, or looked at the clock ([`is_quiet`], [`is_harmless`]);
//! * the thread is at its end as it was at its beginning: the header's phis, its memory, its locks. A
//!   byte may differ that the next round writes before anybody reads it;
//! * its path conditions speak of what it read itself.
//!
//! Why that is sound: the thread's walk up to the round's beginning, followed by its walk from the
//! round's end on, is a path of the program, since both places are the same one with the same state; it
//! is the path that the thread takes when it comes later to what follows. Nothing that is left refers
//! to a read of the round: state that does is no state of before the round. So each schedule of the
//! reduced trace is one of the program, along this path. The recorded run is among them, without the
//! round: nobody else's reads or locks can tell. For an exchange that needs that it wrote what it
//! found. Where the log does not say so, the values that the cell can have must ([`Assumption`]); that
//! is looked at when all threads were walked ([`Engine::assumptions_hold`]), and when it is not so the
//! pass is done again with all such rounds in it.
//!
//! Whether a round may go is decided when the next one is over and has gone the same way. So the first
//! round stays, the last full one, and the one in which the loop is left. What the walk notes of a
//! round is kept in short logs, from which a round is cut out as from the trace; its variables are used
//! again, so that rounds by the million need no memory.

mod updates;

use crate::engine::Engine;
use crate::externals::is_computed;
use crate::foreign;
use crate::heap::PRIVATE;
use crate::image::FunctionInfo;
use crate::memory::{MemoryByte, Stale, Trail};
use crate::points::Stand;
use crate::tail::is_sleep;
use crate::thread::{Frame, HeldLock};
use crate::value::Value;
use ir::loops::Loop;
use ir::repeats::{Cell, WaitingLoop};
use ir::types::{BlockId, InstId, InstKind};
use model::{EventKind, ExprId, LockMode, VarId};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use updates::{Assumption, Update};

/// So many loops around each other are watched.
const DEEPEST: usize = 8;
/// After this many rounds in a row that changed something, some rounds pass unwatched.
const PATIENCE: u32 = 4;
/// So many rounds at most, as a power of two, ...
const LONGEST_PAUSE: u32 = 10;
/// ... and in a walk of which few rounds are left ([`crate::endless`]).
const SHORT_PAUSE: u32 = 2;

/// How far the logs were at a moment of the walk.
#[derive(Clone, Copy, Default)]
struct Mark {
    events: usize,
    conditions: usize,
    contained: usize,
    written: usize,
    variables: usize,
    known: usize,
    conditioned: usize,
    concretised: usize,
    updates: usize,
    sites: usize,
    inputs: usize,
    gates: u64,
    syncs: u64,
}

/// What has to be the same at the beginnings of two rounds, besides memory.
#[derive(PartialEq)]
pub(crate) struct State {
    /// [`Idle::effects`].
    effects: u64,
    phis: SmallVec<[Value; 4]>,
    private_next: u64,
    held: SmallVec<[(u64, LockMode, u32); 4]>,
    pending: usize,
    settled: usize,
    stand: Option<Stand>,
}

/// A round that is over.
struct Past {
    mark: Mark,
    /// The way that it went.
    path: u64,
    /// At its end the thread was as at its beginning, but for stale bytes.
    clean: bool,
    /// There were such bytes.
    stale: bool,
}

/// The last rounds of a loop.
struct Watch {
    past: Option<Past>,
    mark: Mark,
    state: State,
    /// The locks that the thread has at the header.
    held: Vec<HeldLock>,
}

/// A loop that the thread is in.
struct Watched<'r> {
    body: &'r Loop,
    /// How many frames there are, the loop's on top.
    depth: usize,
    serial: u64,
    /// [`Idle::effects`] and [`Idle::made`] at the last arrival.
    effects: u64,
    made: u64,
    path: u64,
    /// Rounds in a row that changed something, and how many to let pass for that.
    failures: u32,
    pause: u32,
    /// A round wrote what was stale at its beginning before it read it.
    settled: bool,
    /// When the last round was over, the one before it was left out.
    left_out: bool,
    /// Objects of functions that were called in the round: they are gone when it is over.
    gone: Vec<(u64, u64)>,
    watch: Option<Watch>,
}

/// What is left out of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveOut {
    /// No round: the run was scheduled, and what it passed counts.
    Nothing,
    /// Rounds that only read.
    Reads,
    /// Rounds with updates that changed nothing, too.
    Updates,
}

/// See the module.
pub(crate) struct Idle<'r> {
    leave_out: LeaveOut,
    loops: Vec<Watched<'r>>,
    /// How often something was done that is not to be left out.
    effects: u64,
    /// Events so far.
    made: u64,
    known: Vec<ExprId>,
    conditioned: Vec<ExprId>,
    concretised: Vec<ExprId>,
    updates: Vec<Update>,
    assumptions: FxHashSet<Assumption>,
    /// Somebody watches: the logs are kept.
    active: bool,
}

impl Idle<'_> {
    pub fn new(leave_out: LeaveOut) -> Self {
        Self {
            leave_out,
            loops: Vec::new(),
            effects: 0,
            made: 0,
            known: Vec::new(),
            conditioned: Vec::new(),
            concretised: Vec::new(),
            updates: Vec::new(),
            assumptions: FxHashSet::default(),
            active: false,
        }
    }

    /// Is nothing watched, and has nothing happened since the thread came to the header of this loop, the innermost one?
    pub fn is_calm(&self, (depth, serial, header): (usize, u64, BlockId)) -> bool {
        !self.active
            && self.loops.last().is_some_and(|top| {
                (top.depth, top.serial, top.body.header) == (depth, serial, header)
                    && (top.effects, top.made) == (self.effects, self.made)
            })
    }

    /// Something was done that is not to be left out.
    pub fn effect(&mut self) {
        self.effects += 1;
    }

    /// A block was entered, or something else happened that tells one way from another.
    pub fn step(&mut self, step: impl Hash) {
        if !self.active {
            return;
        }
        let mut hasher = FxHasher::default();
        step.hash(&mut hasher);
        let step = hasher.finish();
        for watched in self.loops.iter_mut().filter(|watched| watched.watch.is_some()) {
            watched.path = watched.path.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step;
        }
    }

    /// An expression's recorded value came to be known.
    pub fn note_known(&mut self, id: ExprId) {
        if self.active {
            self.known.push(id);
        }
    }

    /// An expression became a condition.
    pub fn note_conditioned(&mut self, id: ExprId) {
        if self.active {
            self.conditioned.push(id);
        }
    }

    /// An expression became constant by a condition.
    pub fn note_concretised(&mut self, id: ExprId) {
        if self.active {
            self.concretised.push(id);
        }
    }

    /// A function obtained an object on the stack; there are so many frames.
    pub fn note_object(&mut self, depth: usize, address: u64, size: u64) {
        let inner = |watched: &&mut Watched<'_>| watched.watch.is_some() && watched.depth < depth;
        for watched in self.loops.iter_mut().filter(inner) {
            watched.gone.push((address, size));
        }
    }

    /// Notes what an event says of the round that it is in.
    pub fn event(&mut self, kind: &EventKind) {
        self.made += 1;
        self.step(kind.name());
        match kind {
            EventKind::ReadModifyWrite { reads, writes } => {
                for write in writes {
                    match reads.iter().find(|read| read.cell == write.cell) {
                        Some(read) if self.active => {
                            let update =
                                Update { cell: write.cell, old: read.var, new: write.value };
                            self.updates.push(update);
                        }
                        Some(_) => {}
                        None => self.effects += 1,
                    }
                }
            }
            kind if is_quiet(kind) => {}
            _ => self.effects += 1,
        }
    }
}

/// May a round with this event be left out?
fn is_quiet(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Read { .. }
            | EventKind::Lock { .. }
            | EventKind::Unlock { synthetic: false, .. }
            | EventKind::TryLockFailed { .. }
            | EventKind::SemaphoreWaitFailed { .. }
            | EventKind::WaitTimedOut { .. }
            | EventKind::Fence
    )
}

/// Functions whose effects are their events and what they write to memory: those that synchronise, wait
/// for a while, or tell the time or who asks.
pub(crate) fn is_harmless(name: &str) -> bool {
    is_sleep(name)
        || is_computed(name)
        || foreign::is_harmless(name)
        || matches!(
            name,
            "thrd_sleep"
                | "thrd_yield"
                | "pthread_yield"
                | "pthread_mutex_lock"
                | "pthread_mutex_trylock"
                | "pthread_mutex_timedlock"
                | "pthread_mutex_unlock"
                | "pthread_spin_lock"
                | "pthread_spin_trylock"
                | "pthread_spin_unlock"
                | "pthread_rwlock_rdlock"
                | "pthread_rwlock_tryrdlock"
                | "pthread_rwlock_wrlock"
                | "pthread_rwlock_trywrlock"
                | "pthread_rwlock_unlock"
                | "mtx_lock"
                | "mtx_trylock"
                | "mtx_timedlock"
                | "mtx_unlock"
                | "sem_trywait"
                | "sem_timedwait"
                | "pthread_cond_timedwait"
                | "pthread_cond_clockwait"
                | "cnd_timedwait"
                | "clock_gettime"
                | "gettimeofday"
                | "timespec_get"
                | "time"
                | "clock"
                | "_ZNSt6chrono3_V212steady_clock3nowEv"
                | "_ZNSt6chrono3_V212system_clock3nowEv"
                | "_ZNSt3__16chrono12steady_clock3nowEv"
                | "_ZNSt3__16chrono12system_clock3nowEv"
                | "_ZNSt3__15mutex4lockEv"
                | "_ZNSt3__15mutex8try_lockEv"
                | "_ZNSt3__15mutex6unlockEv"
                | "pthread_self"
                | "thrd_current"
                | "getpid"
                | "gettid"
                | "sched_getcpu"
                | "__errno_location"
        )
}

impl<'r> Engine<'r> {
    /// The walk of another thread goes on.
    pub fn forget_idle(&mut self) {
        self.idle.loops.clear();
        self.stop_watching();
    }

    /// Drops the logs when no loop is watched.
    fn stop_watching(&mut self) {
        if !self.idle.active {
            return;
        }
        if self.idle.loops.iter().any(|watched| watched.watch.is_some()) {
            return;
        }
        let rounds = &mut self.idle;
        rounds.active = false;
        rounds.known.clear();
        rounds.conditioned.clear();
        rounds.concretised.clear();
        rounds.updates.clear();
        self.out.recent = None;
        self.points.recent = None;
        self.collected.recent = None;
        self.memory.trail = None;
    }

    fn start_watching(&mut self) {
        if self.idle.active {
            return;
        }
        self.idle.active = true;
        self.out.recent = Some(Vec::new());
        self.points.recent = Some(Vec::new());
        self.collected.recent = Some(Vec::new());
        self.memory.trail = Some(Box::<Trail>::default());
    }

    /// The thread has entered a block from another one; phis have their values.
    pub fn arrive(&mut self, t: usize, info: &'r FunctionInfo<'r>, from: BlockId, target: BlockId) {
        if !self.symbolic() {
            return;
        }
        let body = info.loops().at(target);
        if self.idle.loops.is_empty() && body.is_none() {
            return;
        }
        let Some(serial) = self.threads[t].code().map(|frame| frame.serial) else { return };
        let depth = self.threads[t].frames.len();
        let again = body.is_some_and(|body| body.latches.contains(&from));
        while let Some(top) = self.idle.loops.last() {
            let here = (top.depth, top.serial) == (depth, serial);
            let stays = match here {
                true => top.body.contains(target) && (top.body.header != target || again),
                false => top.depth < depth && self.is_frame(t, top.depth, top.serial),
            };
            if stays {
                break;
            }
            self.idle.loops.pop();
        }
        self.fit_stale();
        let Some(body) = body else { return self.stop_watching() };
        let top = self.idle.loops.last();
        let known = top
            .is_some_and(|top| (top.depth, top.serial, top.body.header) == (depth, serial, target));
        if known {
            self.round(t, info);
        } else {
            let (effects, made) = (self.idle.effects, self.idle.made);
            if self.idle.loops.len() >= DEEPEST {
                self.idle.loops.remove(0);
                if let Some(trail) = &mut self.memory.trail
                    && !trail.stale.is_empty()
                {
                    trail.stale.remove(0);
                }
            }
            self.idle.loops.push(Watched {
                body,
                depth,
                serial,
                effects,
                made,
                path: 0,
                failures: 0,
                pause: 0,
                settled: false,
                left_out: false,
                gone: Vec::new(),
                watch: None,
            });
        }
        self.stop_watching();
    }

    fn is_frame(&self, t: usize, depth: usize, serial: u64) -> bool {
        let frame = depth.checked_sub(1).and_then(|at| self.threads[t].frames.get(at));
        matches!(frame, Some(Frame::Code(frame)) if frame.serial == serial)
    }

    /// There is a set of stale bytes for each loop.
    fn fit_stale(&mut self) {
        let count = self.idle.loops.len();
        if let Some(trail) = &mut self.memory.trail {
            trail.stale.resize_with(count, Stale::default);
        }
    }

    /// A round of the innermost loop is over, and the next one begins.
    fn round(&mut self, t: usize, info: &'r FunctionInfo<'r>) {
        let (effects, made) = (self.idle.effects, self.idle.made);
        let full = self.memory.trail.as_ref().is_some_and(|trail| trail.full);
        if full {
            self.idle.loops.iter_mut().for_each(|watched| watched.watch = None);
        }
        let Some(top) = self.idle.loops.last_mut() else { return };
        top.left_out = false;
        let quiet = top.effects == effects && !full;
        let busy = top.made != made;
        (top.effects, top.made) = (effects, made);
        let path = std::mem::take(&mut top.path);
        if !quiet || (!busy && top.watch.is_none()) {
            top.watch = None;
            return;
        }
        if top.pause > 0 {
            top.pause -= 1;
            return;
        }
        let watch = top.watch.take();
        let mut gone = std::mem::take(&mut top.gone);
        self.start_watching();
        self.fit_stale();
        let counting = self.counting(t, info);
        if let Some(waiting) = counting {
            gone.extend(self.counted_bytes(t, &waiting.counters));
        }
        let state = self.round_state(t, info, counting);
        let past = match watch {
            None => None,
            Some(watch) => {
                let Some(past) = self.over(t, watch, &state, path, &gone) else { return };
                Some(past)
            }
        };
        let (mark, held) = (self.mark(t), self.threads[t].held.clone());
        if let Some(top) = self.idle.loops.last_mut() {
            top.watch = Some(Watch { past, mark, state, held });
        }
    }

    /// A watched round is over: leaves the one before out if it may be. None when the loop is not
    /// watched for a while.
    fn over(
        &mut self,
        t: usize,
        watch: Watch,
        now: &State,
        path: u64,
        gone: &[(u64, u64)],
    ) -> Option<Past> {
        let mut mark = watch.mark;
        let same = watch.state == *now;
        let changed = if same { self.changed(t, mark.written, gone) } else { Vec::new() };
        let mut failed = !same;
        let (mut settled, mut left_out) = (false, false);
        if let Some(past) = &watch.past
            && past.clean
            && past.path == path
            && same
        {
            settled = self.are_stale_written();
            let goes = settled && self.idle.leave_out != LeaveOut::Nothing;
            left_out = goes && self.leave_out(t, past, mark);
            if left_out {
                mark = past.mark;
            } else {
                failed = goes || !settled;
            }
        }
        let stale = !changed.is_empty();
        if let Some(trail) = &mut self.memory.trail
            && let Some(last) = trail.stale.last_mut()
        {
            *last = Stale { bytes: changed.into_iter().collect(), read: false };
        }
        let longest = if self.threads[t].cut.is_some() { SHORT_PAUSE } else { LONGEST_PAUSE };
        let top = self.idle.loops.last_mut()?;
        (top.settled, top.left_out) = (settled, left_out);
        top.failures = if failed { top.failures + 1 } else { 0 };
        if top.failures >= PATIENCE {
            top.pause = 1 << (top.failures - PATIENCE).min(longest);
            return None;
        }
        Some(Past { mark, path, clean: same, stale })
    }

    /// Did the round write all bytes that were stale at its beginning before it read any?
    fn are_stale_written(&self) -> bool {
        let last = self.memory.trail.as_ref().and_then(|trail| trail.stale.last());
        last.is_some_and(|stale| stale.bytes.is_empty() && !stale.read)
    }

    /// The bytes that hold something else than at that place of the trail, without those that are gone or do
    /// not matter.
    fn changed(&mut self, t: usize, written: usize, gone: &[(u64, u64)]) -> Vec<u64> {
        let Some(trail) = &self.memory.trail else { return Vec::new() };
        let mut before: FxHashMap<u64, MemoryByte> = FxHashMap::default();
        for &(address, byte) in trail.written.get(written..).unwrap_or_default() {
            before.entry(address).or_insert(byte);
        }
        let dead = self.threads[t].private_next..PRIVATE + ((t as u64) << 40) + (1 << 39);
        let mut changed: Vec<u64> = Vec::new();
        for (address, byte) in before {
            let is_gone = |&(start, size): &(u64, u64)| (start..start + size).contains(&address);
            if self.memory.peek(address) != byte
                && !dead.contains(&address)
                && !gone.iter().any(is_gone)
            {
                changed.push(address);
            }
        }
        changed
    }

    /// Was a round of the innermost loop left out when the last one was over, and begins it at this header?
    pub fn has_left_out(&self, t: usize, header: BlockId) -> bool {
        let (depth, serial) =
            (self.threads[t].frames.len(), self.threads[t].code().map(|frame| frame.serial));
        self.idle.loops.last().is_some_and(|top| {
            top.left_out
                && (top.depth, Some(top.serial), top.body.header) == (depth, serial, header)
        })
    }

    /// In a survey: begins to watch what is written; gives what the thread has besides memory.
    pub fn watch_memory(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        waiting: &WaitingLoop,
    ) -> State {
        self.memory.trail = Some(Box::<Trail>::default());
        self.round_state(t, info, Some(waiting))
    }

    /// Are state and memory as they were then? Nobody watches any more.
    pub fn is_unchanged(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        before: &State,
        waiting: &WaitingLoop,
    ) -> bool {
        let full = self.memory.trail.as_ref().is_none_or(|trail| trail.full);
        let same = !full && *before == self.round_state(t, info, Some(waiting));
        let counted = self.counted_bytes(t, &waiting.counters);
        let unchanged = same && self.changed(t, 0, &counted).is_empty();
        self.memory.trail = None;
        unchanged
    }

    /// `counting`: without the loop's counters.
    fn round_state(
        &self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        counting: Option<&WaitingLoop>,
    ) -> State {
        let counts = |id: u32| {
            let cell = Cell::Phi(InstId(id));
            counting.is_some_and(|it| it.counters.iter().any(|counter| counter.cell == cell))
        };
        let thread = &self.threads[t];
        let mut phis = SmallVec::new();
        if let Some(frame) = thread.code() {
            let block = info.function.blocks.get(frame.block.index());
            let first = block.map_or(0, |block| block.first.0);
            let is_phi = |id: &u32| {
                let inst = info.function.instructions.get(InstId(*id).index());
                matches!(inst.map(|inst| &inst.kind), Some(InstKind::Phi(_)))
            };
            let values = (first..frame.next.0).take_while(is_phi);
            let values = values.filter(|&id| !counts(id));
            phis.extend(
                values.map(|id| frame.registers.get(id as usize).cloned().unwrap_or_default()),
            );
        }
        State {
            effects: self.idle.effects,
            phis,
            private_next: thread.private_next,
            held: thread.held.iter().map(|held| (held.address, held.mode, held.count)).collect(),
            pending: thread.pending_sync.len(),
            settled: thread.settled.len(),
            stand: self.points.stand(t),
        }
    }

    fn mark(&self, t: usize) -> Mark {
        let rounds = &self.idle;
        let (gates, syncs) = self.points.counts(t);
        Mark {
            events: self.out.threads[t].events.len(),
            conditions: self.out.threads[t].conditions.len(),
            contained: self.containers.noted(),
            written: self.memory.trail.as_ref().map_or(0, |trail| trail.written.len()),
            variables: self.out.recent.as_ref().map_or(0, Vec::len),
            known: rounds.known.len(),
            conditioned: rounds.conditioned.len(),
            concretised: rounds.concretised.len(),
            updates: rounds.updates.len(),
            sites: self.points.recent.as_ref().map_or(0, Vec::len),
            inputs: self.collected.recent.as_ref().map_or(0, Vec::len),
            gates,
            syncs,
        }
    }

    /// Takes a round out, from its beginning to `to`. False when it has to stay.
    fn leave_out(&mut self, t: usize, past: &Past, to: Mark) -> bool {
        let from = past.mark;
        let Some(recent) = &self.out.recent else { return false };
        let variables: FxHashSet<VarId> =
            recent[from.variables..to.variables].iter().copied().collect();
        let conditions: Vec<ExprId> = self.out.threads[t].conditions
            [from.conditions..to.conditions]
            .iter()
            .map(|condition| condition.expr)
            .collect();
        let own = |engine: &Self, id: ExprId| {
            engine.pool.variables(id).iter().any(|var| variables.contains(var))
        };
        if !conditions.iter().all(|&condition| own(self, condition))
            || !self.change_nothing(from.updates..to.updates, &conditions)
        {
            return false;
        }
        self.out.remove(t, from.events..to.events, from.conditions..to.conditions);
        self.containers.remove(from.contained..to.contained);
        let sites: Vec<u32> = match &mut self.points.recent {
            Some(recent) => recent.drain(from.sites..to.sites).collect(),
            None => Vec::new(),
        };
        let (gates, syncs) = (to.gates - from.gates, to.syncs - from.syncs);
        self.points.remove(t, from.events..to.events, &sites, gates, syncs);
        if let Some(mut recent) = self.collected.recent.take() {
            let gone: Vec<(usize, usize)> = recent.drain(from.inputs..to.inputs).collect();
            self.collected.remove(t, &gone, recent.get(from.inputs..).unwrap_or_default());
            self.collected.recent = Some(recent);
        }
        for id in self.idle.known.drain(from.known..to.known).collect::<Vec<_>>() {
            if own(self, id) {
                self.known.remove(&id);
            }
        }
        let range = from.conditioned..to.conditioned;
        for id in self.idle.conditioned.drain(range).collect::<Vec<_>>() {
            if own(self, id) {
                self.threads[t].conditioned.remove(&id);
            }
        }
        let range = from.concretised..to.concretised;
        for id in self.idle.concretised.drain(range).collect::<Vec<_>>() {
            if own(self, id) {
                self.threads[t].concretised.remove(&id);
            }
        }
        self.idle.updates.drain(from.updates..to.updates);
        if let Some(recent) = &mut self.out.recent {
            recent.drain(from.variables..to.variables);
        }
        let variables: Vec<VarId> = {
            let mut sorted: Vec<VarId> = variables.into_iter().collect();
            sorted.sort_unstable();
            sorted
        };
        self.out.release(&variables);
        if let Some(trail) = &mut self.memory.trail {
            trail.written.drain(from.written..to.written);
        }
        // What a stale byte was before is not known any more to the loops around this one.
        if past.stale {
            let outer = self.idle.loops.len().saturating_sub(1);
            self.idle.loops[..outer].iter_mut().for_each(|watched| watched.watch = None);
        }
        self.threads[t].report.idle_rounds += 1;
        true
    }

    /// The thread's log has ended in a loop whose last full round left everything as it was: the places
    /// of that round's events and conditions.
    pub fn last_round(&self, t: usize) -> Option<(Range<usize>, Range<usize>)> {
        let watch = self.ends_in(t)?;
        let (from, to) = (watch.past.as_ref()?.mark, watch.mark);
        Some((from.events..to.events, from.conditions..to.conditions))
    }

    fn ends_in(&self, t: usize) -> Option<&Watch> {
        let effects = self.idle.effects;
        let polls = |watched: &&Watched<'r>| {
            let past = watched.watch.as_ref().and_then(|watch| watch.past.as_ref());
            watched.effects == effects
                && past.is_some_and(|past| past.clean && (!past.stale || watched.settled))
                && self.is_frame(t, watched.depth, watched.serial)
        };
        self.idle.loops.iter().rev().find(polls)?.watch.as_ref()
    }

    /// Cuts off what the thread did behind that round.
    pub fn cut_to_last_round(&mut self, t: usize) -> Option<()> {
        let watch = self.ends_in(t)?;
        let (to, held) = (watch.mark, watch.held.clone());
        let end = self.mark(t);
        let recent = self.out.recent.as_ref()?;
        let variables: Vec<VarId> = recent.get(to.variables..)?.to_vec();
        self.out.remove(t, to.events..end.events, to.conditions..end.conditions);
        // Whoever gets one of the variables next knows nothing of it yet.
        let gone: FxHashSet<VarId> = variables.iter().copied().collect();
        for id in self.idle.known.drain(to.known..).collect::<Vec<_>>() {
            if self.pool.variables(id).iter().any(|var| gone.contains(var)) {
                self.known.remove(&id);
            }
        }
        self.out.release(&variables);
        self.containers.remove(to.contained..end.contained);
        let sites = self.points.recent.as_ref().and_then(|recent| recent.get(to.sites..));
        let sites = sites.unwrap_or_default().to_vec();
        let (gates, syncs) = (end.gates - to.gates, end.syncs - to.syncs);
        self.points.remove(t, to.events..end.events, &sites, gates, syncs);
        self.threads[t].held = held;
        Some(())
    }
}
