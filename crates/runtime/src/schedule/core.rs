//! The scheduler as a plain state machine: who may run, who has the turn, who waits for what. It
//! knows no real threads, does not block and reads no clock, so that it can be tested as it is;
//! `park` makes threads do what it says.
//!
//! All methods are called by one thread at a time (the holder of the scheduler's lock). The rules
//! for choosing a thread are in `choice`.

use super::slots::{NEVER, NONE, Slots, State, Wait, WaitKind, Wake};
use super::table::Table;
use crate::layout::{Control, LeftReason, OrderRecord};
use crate::script::{Mark, Target, Turn};
use crate::text::Text;

/// So many points may a thread pass without blocking, in the modes without a schedule, before
/// others get the turn: a loop that waits for another thread ends that way.
pub const QUANTUM: u64 = 20_000;
/// A used-up quantum counts so many nanoseconds of virtual time, so that a thread which sleeps
/// comes back while others never stop.
pub(super) const QUANTUM_TIME: u64 = 10_000_000;
/// So often may a thread give something back in one go, in the same modes, before others get the turn: a
/// loop that waits and looks under a lock. Its quantum may end inside of the lock's section each time, where
/// nobody else can do what it waits for.
pub const MOST_RELEASES: u32 = 128;
/// The most priority changes of `pct`.
pub const MOST_CHANGES: usize = 64;
/// A thread that polls is not waited for any more when it got the turn so often, or passed so many
/// points, while nobody else could run.
pub(super) const MOST_POLLS: u32 = 100;
pub(super) const MOST_POLL_POINTS: u64 = 100_000;
/// After so many lines that were given up for their time, the whole schedule is.
const MOST_LATE: u32 = 4;
/// What a thread waits for whose condition was initialised meanwhile: no object is there.
const FORGOTTEN: u64 = u64::MAX;
/// What a yield counts in virtual time, in nanoseconds: so that a schedule does not hold on for
/// ever to a thread that does nothing but yield.
const YIELD: u64 = 50_000;

/// A time limit is long that has so much left, in nanoseconds: who looks more often than that polls.
pub const LONG_LIMIT: u64 = 1_000_000_000;

/// The schedule, as far as the state machine needs it.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The turns in order.
    pub turns: &'static [Turn],
    /// The places to announce.
    pub marks: &'static [Mark],
    /// Behind the last turn, only its thread goes on.
    pub hold: bool,
    /// The threads that may poll for ever, by the hashes of their names.
    pub polls: &'static [u64],
    /// The threads whose long time limits do not end at the failure's turn, likewise.
    pub waits: &'static [u64],
    /// The name of a thread that the turns mention, by its hash; empty when unknown.
    pub name: fn(u64) -> &'static [u8],
    /// The name of a site that the turns mention, by its hash; empty when unknown.
    pub site: fn(u64) -> &'static [u8],
}

fn no_name(_: u64) -> &'static [u8] {
    b""
}

impl Plan {
    /// The schedule without turns.
    pub const NONE: Self = Self {
        turns: &[],
        marks: &[],
        hold: false,
        polls: &[],
        waits: &[],
        name: no_name,
        site: no_name,
    };
}

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// By the lines of the schedule.
    Script,
    /// The thread of the schedule's last turn, others only as far as it needs them.
    Hold,
    /// One after the other.
    Run,
    /// By random priorities.
    Pct,
}

/// What a decision came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This thread has the turn.
    Turn(u32),
    /// Nobody can run now; something from outside, or time, may change that.
    Idle,
    /// Threads that poll are the only ones that can run, and have for long.
    Stuck,
    /// Behind the schedule, as many points were passed as may be: the process is to be ended.
    Far,
}

/// Where and why the schedule was left.
#[derive(Clone, Copy)]
pub struct Left {
    /// The line in the text.
    pub line: u32,
    /// Why.
    pub reason: LeftReason,
    /// Where the line's thread was; 0 for nowhere.
    pub site: u64,
    /// For people.
    pub message: Text<1024>,
}

/// The random numbers of `pct`: splitmix64.
#[must_use]
pub fn mix(mut state: u64) -> u64 {
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// The key of a thread's passages of a site.
pub(super) fn pair(thread: u64, site: u64) -> u64 {
    mix(thread ^ site.rotate_left(29)) | 1
}

/// The scheduler's state.
pub struct Core {
    /// The threads.
    pub slots: Slots,
    /// Who has the turn; [`NONE`] when nobody can run.
    pub turn: u32,
    /// Who had it last.
    pub last: u32,
    /// How the next thread is chosen.
    pub phase: Phase,
    /// The schedule.
    pub plan: Plan,
    /// Index of the current turn in the schedule.
    pub line: usize,
    /// Turns followed to their end before the schedule was left.
    pub followed: u32,
    /// Where it was left first.
    pub left: Option<Left>,
    /// Virtual time in nanoseconds.
    pub now: u64,
    /// How many times it was pushed on since nobody could run.
    pub skipped: u32,
    /// So many real nanoseconds are to pass for the last of those times.
    pub pause: u64,
    /// What the sleeps and yields of the current line's thread count, in nanoseconds.
    pub slept: u64,
    /// `slept` may come to so much.
    pub patience: u64,
    /// So many gates may be passed in one line: whoever passes more goes round in a loop, waiting for somebody
    /// that the schedule holds back.
    pub gates: u64,
    /// So many points may be passed behind the schedule.
    pub tail: u64,
    /// The total of points at the schedule's end, once that has come; where no schedule is followed, at the beginning.
    pub(super) tail_since: Option<u64>,
    /// The total of gates at the beginning of the line.
    pub(super) line_steps: u64,
    /// Points passed, over all threads, as far as counted.
    pub steps: u64,
    /// How often another thread got the turn.
    pub switches: u64,
    /// A turn that is over and belongs into `order.bin`.
    pub record: Option<OrderRecord>,
    /// The line's thread, or the one that has to create it.
    pub actor: u32,
    /// Something happened that may have ended waits without the scheduler's knowledge.
    pub dirty: bool,
    /// Everybody who waits has tried again since the last progress, so many times.
    pub probes: u32,
    /// How many threads are [`State::Away`].
    pub away: u32,
    /// How often threads that poll got the turn since others could run, and how many points had been
    /// passed by then.
    pub(super) polled: (u32, u64),
    pub(super) late: u32,
    pub(super) yielded: bool,
    /// How much the thread that has the turn gave back since it got it, or let others go first.
    pub(super) releases: u32,
    pub(super) held: u32,
    pub(super) passages: Table,
    pub(super) threads: Table,
    pub(super) sequence: u64,
    pub(super) seed: u64,
    pub(super) lowest: u64,
    pub(super) changes: [u64; MOST_CHANGES],
    pub(super) change: usize,
    pub(super) change_count: usize,
}

impl Core {
    /// A scheduler without threads.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: Slots::empty(),
            turn: NONE,
            last: NONE,
            phase: Phase::Run,
            plan: Plan::NONE,
            line: 0,
            followed: 0,
            left: None,
            now: 0,
            skipped: 0,
            pause: 0,
            slept: 0,
            patience: NEVER,
            gates: u64::MAX,
            tail: u64::MAX,
            tail_since: None,
            line_steps: 0,
            steps: 0,
            switches: 0,
            record: None,
            actor: NONE,
            dirty: false,
            probes: 0,
            away: 0,
            polled: (0, 0),
            late: 0,
            yielded: false,
            releases: 0,
            held: NONE,
            passages: Table::empty(),
            threads: Table::empty(),
            sequence: 0,
            seed: 0,
            lowest: 1 << 62,
            changes: [0; MOST_CHANGES],
            change: 0,
            change_count: 0,
        }
    }

    /// Follows a schedule from here on. `patience` is in virtual nanoseconds.
    pub fn follow(&mut self, plan: Plan, patience: u64) {
        self.passages = Table::with_room(plan.turns.len() + plan.marks.len());
        self.threads = Table::with_room(plan.turns.len() + plan.marks.len());
        for turn in plan.turns {
            self.threads.insert(turn.thread | 1, u64::from(NONE));
            if let Target::Site { hash, .. } = turn.target {
                self.passages.insert(pair(turn.thread, hash), 0);
            }
        }
        for mark in plan.marks {
            self.threads.insert(mark.thread | 1, u64::from(NONE));
            self.passages.insert(pair(mark.thread, mark.hash), 0);
        }
        self.plan = plan;
        self.patience = patience;
        self.phase = Phase::Script;
    }

    /// Runs threads by random priorities from here on: probabilistic concurrency testing
    /// (Burckhardt et al., ASPLOS 2010), with `depth - 1` priority changes in `steps` points.
    pub fn perturb(&mut self, seed: u64, depth: u32, steps: u64) {
        self.phase = Phase::Pct;
        self.seed = seed;
        self.change_count = (depth.saturating_sub(1) as usize).min(MOST_CHANGES);
        let mut state = mix(seed);
        for place in self.changes.iter_mut().take(self.change_count) {
            state = mix(state);
            *place = 1 + state % steps.max(1);
        }
        if let Some(used) = self.changes.get_mut(..self.change_count) {
            used.sort_unstable();
        }
    }

    /// A thread is about to be created; it stands at `start`. None when there is no room.
    pub fn add(&mut self, name: &[u8], control: *mut Control, start: u64) -> Option<u32> {
        let index = self.slots.add(name, control)?;
        let seed = self.seed;
        let slot = self.slots.get_mut(index);
        slot.at = start;
        slot.priority = mix(seed ^ slot.hash) | 1 << 63;
        let hash = slot.hash;
        let scripted = self.threads.set(hash | 1, u64::from(index));
        self.slots.get_mut(index).scripted = scripted;
        self.preempt();
        Some(index)
    }

    /// The thread could not be created after all.
    pub fn remove(&mut self, index: u32) {
        let hash = self.slots.get(index).hash;
        self.threads.set(hash | 1, u64::from(NONE));
        let slot = self.slots.get_mut(index);
        slot.state = State::Ended;
        slot.control = core::ptr::null_mut();
        slot.joined = true;
        self.slots.unlink(index);
    }

    /// The thread of the schedule with this name, if it was created.
    #[must_use]
    pub fn find(&self, hash: u64) -> Option<u32> {
        self.threads.get(hash | 1).map(|index| index as u32).filter(|index| *index != NONE)
    }

    /// A thread that was away is back in the scheduler.
    pub fn back(&mut self, me: u32) {
        let slot = self.slots.get_mut(me);
        if slot.state == State::Away {
            slot.state = State::Ready;
            self.away -= 1;
            self.preempt();
        }
    }

    /// The holder of the turn stands at a point that it has not passed.
    pub fn stand(&mut self, me: u32, site: u64) {
        self.slots.get_mut(me).at = site;
    }

    /// The holder of the turn passes the point that it stands at. Says the so-manieth passage it
    /// is, where the schedule asks for it.
    pub fn pass(&mut self, me: u32) -> Option<u64> {
        self.probes = 0;
        let slot = self.slots.get_mut(me);
        let site = core::mem::take(&mut slot.at);
        slot.behind = site;
        let (scripted, thread) = (slot.scripted, slot.hash);
        let mut occurrence = None;
        if scripted && let Some(passed) = self.passages.get(pair(thread, site)) {
            self.passages.set(pair(thread, site), passed + 1);
            occurrence = Some(passed + 1);
        }
        let allowed = self.allowance(me);
        self.slots.get(me).allow(allowed);
        occurrence
    }

    /// The number of a mark that this passage stands for.
    #[must_use]
    pub fn mark(&self, me: u32, occurrence: u64) -> Option<u64> {
        let slot = self.slots.get(me);
        let wanted = |mark: &&Mark| {
            mark.thread == slot.hash && mark.hash == slot.behind && mark.occurrence == occurrence
        };
        self.plan.marks.iter().find(wanted).map(|mark| mark.number)
    }

    /// The holder of the turn cannot go on; `site` is the point that it stands at meanwhile, 0 for
    /// none. To be followed by a decision.
    pub fn block(&mut self, me: u32, wait: Wait, site: u64) {
        self.sequence += 1;
        let ticket = self.sequence;
        let slot = self.slots.get_mut(me);
        slot.state = State::Blocked;
        slot.wait = wait;
        slot.at = site;
        slot.wake = Wake::Again;
        slot.ticket = ticket;
        slot.grant = 0;
        slot.tired = false;
        slot.quantum = slot.passed();
        if wait.deadline <= self.now {
            self.let_sleeper_go(me);
            // A loop around a sleep of no time must not keep others from running.
            if wait.kind == WaitKind::Sleep {
                self.give_way(me);
            }
        }
    }

    pub(super) fn unblock(&mut self, index: u32, wake: Wake) {
        let slot = self.slots.get_mut(index);
        slot.state = State::Ready;
        slot.wake = wake;
        slot.wait = Wait::NOTHING;
        slot.grant = 0;
        self.preempt();
    }

    fn unblock_all(&mut self, matches: impl Fn(&Wait) -> bool) {
        let mut at = self.slots.first;
        while at != NONE {
            let slot = self.slots.get(at);
            let next = slot.next;
            if slot.state == State::Blocked && matches(&slot.wait) {
                self.unblock(at, Wake::Again);
            }
            at = next;
        }
    }

    /// An object was released: those who wait for it may try again.
    pub fn released(&mut self, address: u64) {
        self.unblock_all(|wait| {
            wait.address == address && wait.kind.retries() && wait.kind != WaitKind::Join
        });
        self.releases += 1;
        if self.releases >= MOST_RELEASES && self.phase == Phase::Run && self.turn != NONE {
            // What it has used of its quantum counts as much as all of it would.
            let slot = self.slots.get(self.turn);
            slot.allow(0);
            let used = slot.passed().saturating_sub(slot.quantum).min(QUANTUM);
            self.pass_time(used * (QUANTUM_TIME / QUANTUM));
            self.yielded = true;
            self.releases = 0;
        }
    }

    /// A condition was signalled, for one waiter or for all of them. The signal is kept for the
    /// first waiter that has none; with a schedule, another one that waited by then may take it
    /// first. Without waiters it is lost.
    pub fn signal(&mut self, condition: u64, all: bool) {
        self.wake(condition, if all { u32::MAX } else { 1 });
    }

    /// The same for so many waiters of a condition or futex at most; says how many there were.
    pub fn wake(&mut self, object: u64, most: u32) -> u32 {
        self.sequence += 1;
        let sequence = self.sequence;
        for woken in 0..most {
            let mut first = NONE;
            for index in self.slots.living() {
                if self.waits_for(index, object)
                    && self.slots.get(index).grant == 0
                    && (first == NONE
                        || self.slots.get(index).ticket < self.slots.get(first).ticket)
                {
                    first = index;
                }
            }
            if first == NONE {
                return woken;
            }
            self.slots.get_mut(first).grant = sequence;
            self.preempt();
        }
        most
    }

    /// A condition is initialised: no signal from now on finds those who wait for it already.
    pub fn initialised(&mut self, condition: u64) {
        for index in 0..self.slots.count {
            if self.waits_for(index, condition) && self.slots.get(index).grant == 0 {
                self.slots.get_mut(index).wait.address = FORGOTTEN;
            }
        }
    }

    /// Does any thread wait for this object in this way?
    #[must_use]
    pub fn is_awaited(&self, kind: WaitKind, address: u64) -> bool {
        self.slots.living().any(|index| {
            let slot = self.slots.get(index);
            slot.state == State::Blocked && slot.wait.kind == kind && slot.wait.address == address
        })
    }

    fn waits_for(&self, index: u32, object: u64) -> bool {
        let slot = self.slots.get(index);
        slot.state == State::Blocked && slot.wait.kind.is_signalled() && slot.wait.address == object
    }

    /// Was this the kernel id of a thread that has ended, and is no living one's?
    #[must_use]
    pub fn has_ended(&self, tid: i32) -> bool {
        let is = |index: &u32| self.slots.get(*index).tid == tid;
        !self.slots.living().any(|index| is(&index))
            && (0..self.slots.count).any(|index| is(&index))
    }

    /// The thread whose signal this one would take: its own, else, with a schedule, the oldest
    /// that was sent after it began to wait.
    pub(super) fn grantor(&self, index: u32) -> u32 {
        let slot = self.slots.get(index);
        if slot.state != State::Blocked || !slot.wait.kind.is_signalled() {
            return NONE;
        }
        if slot.grant != 0 {
            return index;
        }
        if !matches!(self.phase, Phase::Script | Phase::Hold) || index != self.actor {
            return NONE;
        }
        let mut best = NONE;
        for other in self.slots.living() {
            let grant = self.slots.get(other).grant;
            if self.waits_for(other, slot.wait.address)
                && grant > slot.ticket
                && (best == NONE || grant < self.slots.get(best).grant)
            {
                best = other;
            }
        }
        if best == NONE && self.need_not_wait(index) { index } else { best }
    }

    /// Would the schedule's thread not wait for its futex if it came to it only now? The word has
    /// changed, and the schedule says that the thread goes on: that it came here before the change
    /// was the scheduler's choice. At a line that ends with the failure it goes on waiting, because
    /// that may be the failure.
    fn need_not_wait(&self, index: u32) -> bool {
        let wait = &self.slots.get(index).wait;
        let turn = self.plan.turns.get(self.line);
        if self.phase != Phase::Script
            || wait.kind != WaitKind::Futex
            || turn.is_none_or(|turn| matches!(turn.target, Target::Failure))
        {
            return false;
        }
        // SAFETY: the word of a futex that a thread waits for.
        unsafe { core::ptr::read_volatile(wait.address as *const u32) != wait.expected }
    }

    /// The holder of the turn has come to a barrier for so many threads. Says whether it is the
    /// last of them; otherwise it has to wait.
    pub fn at_barrier(&mut self, barrier: u64, threads: u32) -> bool {
        let here = |wait: &Wait| wait.kind == WaitKind::Barrier && wait.address == barrier;
        let waiting = self
            .slots
            .living()
            .filter(|index| {
                let slot = self.slots.get(*index);
                slot.state == State::Blocked && here(&slot.wait)
            })
            .count();
        if waiting + 1 < threads as usize {
            return false;
        }
        self.unblock_all(here);
        true
    }

    /// Somebody cancelled a thread: a wait that is a cancellation point ends.
    pub fn cancel(&mut self, index: u32) {
        let slot = self.slots.get_mut(index);
        slot.cancelled = true;
        if slot.state == State::Blocked && slot.wait.cancellable {
            self.unblock(index, Wake::Cancelled);
        }
    }

    /// A thread has passed its last point. To be followed by a decision.
    pub fn end(&mut self, me: u32) {
        self.count(me);
        let slot = self.slots.get(me);
        let (gates, points) = slot.counters();
        self.record = Some(OrderRecord { thread: slot.serial, gates, points });
        let slot = self.slots.get_mut(me);
        if slot.state == State::Away {
            self.away -= 1;
        }
        slot.state = State::Ended;
        slot.allow(u64::MAX);
        slot.control = core::ptr::null_mut();
        slot.at = 0;
        self.slots.unlink(me);
        if self.turn == me {
            self.turn = NONE;
        }
        self.unblock_all(|wait| wait.kind == WaitKind::Join && wait.address == u64::from(me));
    }

    /// The holder of the turn lost it inside of something that the scheduler does not control. To
    /// be followed by a decision.
    pub fn lose(&mut self, holder: u32) {
        let slot = self.slots.get_mut(holder);
        if slot.state == State::Ready {
            slot.state = State::Away;
            self.away += 1;
        }
    }

    /// Virtual time goes on by so many nanoseconds.
    pub(super) fn pass_time(&mut self, nanoseconds: u64) {
        self.now = self.now.saturating_add(nanoseconds);
        loop {
            let sleeper = self.earliest();
            if sleeper == NONE || self.slots.get(sleeper).wait.deadline > self.now {
                return;
            }
            self.let_sleeper_go(sleeper);
        }
    }

    /// The holder of the turn lets others go first. To be followed by a decision.
    pub fn give_way(&mut self, me: u32) {
        self.pass_time(YIELD);
        match self.phase {
            Phase::Script | Phase::Hold if me == self.actor => {
                self.slept = self.slept.saturating_add(YIELD);
            }
            Phase::Script | Phase::Hold => self.slots.get_mut(me).tired = true,
            Phase::Run => self.yielded = true,
            Phase::Pct => self.sink(me),
        }
    }

    /// Adds the points of a thread to the total.
    pub(super) fn count(&mut self, index: u32) {
        let passed = self.slots.get(index).passed();
        let slot = self.slots.get_mut(index);
        self.steps += passed.saturating_sub(slot.counted);
        slot.counted = passed;
    }

    /// Everybody who can find out by trying whether its wait is over tries again; says whether
    /// there is anybody.
    pub(super) fn probe(&mut self) -> bool {
        let mut any = false;
        let mut at = self.slots.first;
        while at != NONE {
            let slot = self.slots.get(at);
            let next = slot.next;
            let retries = slot.wait.kind.retries() && slot.wait.kind != WaitKind::Join;
            if slot.state == State::Blocked && retries {
                self.unblock(at, Wake::Again);
                any = true;
            }
            at = next;
        }
        any
    }

    /// Is all that is left to wait for outside of what the scheduler controls? Locks that something outside may
    /// have released have been tried again.
    pub fn waits_outside(&self) -> bool {
        self.away > 0 && self.probes > 0 && self.earliest() == NONE
    }

    /// Nobody could run for so many real nanoseconds. Says whether it is for good.
    pub fn idle_for(&mut self, elapsed: u64, patience: u64, grace: u64) -> bool {
        if self.away > 0 {
            let sleeper = self.earliest();
            if sleeper != NONE {
                let left = self.slots.get(sleeper).wait.deadline.saturating_sub(self.now);
                if elapsed >= left.min(patience) {
                    self.let_sleeper_go(sleeper);
                }
                return false;
            }
            // What is away may have released something.
            if elapsed >= grace && self.probes == 0 {
                self.probes = 1;
                self.probe();
                return false;
            }
            return elapsed >= patience;
        }
        if elapsed < grace {
            return false;
        }
        // One more try: a thread that ended may have left a robust mutex only just now.
        if self.probes < 2 {
            self.probes = 2;
            if self.probe() {
                return false;
            }
        }
        true
    }

    /// The current line has taken too long. Says whether the holder of the turn has to stop at its
    /// next gate.
    pub fn expire(&mut self) -> bool {
        match self.phase {
            Phase::Script => self.too_late(),
            Phase::Hold => self.phase = Phase::Run,
            Phase::Run | Phase::Pct => return false,
        }
        if self.turn != NONE {
            self.slots.get(self.turn).allow(0);
        }
        true
    }

    pub(super) fn too_late(&mut self) {
        self.leave(LeftReason::Late);
        self.late += 1;
        self.next_line(false);
        if self.late >= MOST_LATE {
            self.line = self.plan.turns.len();
        }
    }

    /// Was a line given up for its time?
    #[must_use]
    pub fn was_late(&self) -> bool {
        self.late > 0
    }

    /// What identifies the work that the patience is for: a line.
    #[must_use]
    pub fn effort(&self) -> usize {
        match self.phase {
            Phase::Script => self.line,
            Phase::Hold => self.plan.turns.len(),
            Phase::Run | Phase::Pct => usize::MAX,
        }
    }

    /// Is it for others to say whether this thread may end the process now? It is while there is more to
    /// come of the schedule than what this thread does, and where priorities decide.
    #[must_use]
    pub fn is_under_way(&self, me: u32) -> bool {
        match self.phase {
            Phase::Script => self.line < self.plan.turns.len(),
            Phase::Hold => {
                let last = self.plan.turns.last();
                last.is_some_and(|turn| turn.thread != self.slots.get(me).hash)
            }
            Phase::Pct => true,
            Phase::Run => false,
        }
    }

    /// The process ends: is the schedule left by that?
    pub fn process_ends(&mut self, me: u32, failed: bool) {
        if self.phase != Phase::Script {
            return;
        }
        while let Some(turn) = self.plan.turns.get(self.line) {
            let mine = me != NONE && self.slots.get(me).hash == turn.thread;
            let over = match turn.target {
                Target::Failure => mine && failed,
                Target::End => mine && me == 0,
                // There need be no other point behind the passage.
                Target::Site { hash, occurrence } => {
                    let passed = self.passed(turn.thread, hash);
                    mine && !failed && turn.past && passed >= occurrence
                }
            };
            if !over && !self.is_over(turn) {
                let created = self.find(turn.thread).is_some();
                self.leave(if created { LeftReason::Exited } else { LeftReason::Absent });
                return;
            }
            self.next_line(true);
        }
    }
}

impl Default for Core {
    fn default() -> Self {
        Self::new()
    }
}
