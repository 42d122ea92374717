//! Who runs next.

use super::core::{
    Core, LONG_LIMIT, Left, MOST_POLL_POINTS, MOST_POLLS, Next, Phase, QUANTUM, QUANTUM_TIME, pair,
};
use super::slots::{NEVER, NONE, State, WaitKind, Wake};
use super::words;
use crate::layout::{LeftReason, OrderRecord};
use crate::script::{Target, Turn, thread_hash};
use crate::text::Text;

/// So many lines ahead the schedule is asked who could help a thread that waits.
const AHEAD: usize = 256;
/// What a sleep or time-out of the line's thread counts against the patience, in nanoseconds: a
/// loop around one has to end some time.
const NAP: u64 = 500_000;
/// The longest chain of threads that wait for each other that is followed.
const CHAIN: usize = 64;

/// What the rules of a phase say.
enum Choice {
    /// This thread.
    Thread(u32),
    /// The rules changed: ask again.
    Again,
    /// Nobody.
    Nobody,
}

/// Time is skipped so many times at no cost while all threads wait, ...
const FREE_SKIPS: u32 = 1_000;
/// ... and then for what was skipped, or so many nanoseconds: a program that hangs in a loop of waits that
/// time out is not to fill its log with them.
const LONGEST_PAUSE: u64 = 10_000_000;

impl Core {
    /// Gives the turn to somebody. To be called by its holder, who stands at a point, waits, or
    /// ended; or by anybody when nobody has the turn.
    pub fn decide(&mut self) -> Next {
        if self.turn != NONE {
            self.count(self.turn);
        }
        if self.is_far() {
            return Next::Far;
        }
        loop {
            let choice = match self.phase {
                Phase::Script => self.by_script(),
                Phase::Hold => self.by_hold(),
                Phase::Run => self.by_order(),
                Phase::Pct => self.by_priority(),
            };
            match choice {
                Choice::Thread(_) if self.is_stuck() => return Next::Stuck,
                Choice::Thread(index) => return self.give(index),
                Choice::Again => {}
                Choice::Nobody if self.revive() => {}
                Choice::Nobody => {
                    self.turn = NONE;
                    return Next::Idle;
                }
            }
        }
    }

    /// Did the threads go on behind the schedule for as long as they may?
    fn is_far(&mut self) -> bool {
        if !matches!(self.phase, Phase::Run | Phase::Pct) {
            return false;
        }
        let since = *self.tail_since.get_or_insert(self.steps);
        self.steps - since > self.tail
    }

    /// Have threads that poll been the only ones that can run for long? Behind the schedule, where
    /// nobody is held back.
    fn is_stuck(&mut self) -> bool {
        let polls = |hash: u64| self.plan.polls.contains(&hash);
        let waits = |index: u32| {
            let slot = self.slots.get(index);
            match slot.state {
                State::Ended => true,
                State::Away => false,
                _ if polls(slot.hash) => true,
                State::Ready => false,
                State::Blocked => self.grantor(index) == NONE && slot.wait.deadline == NEVER,
            }
        };
        if self.phase != Phase::Run || self.plan.polls.is_empty() || !self.slots.living().all(waits)
        {
            self.polled = (0, self.steps);
            return false;
        }
        self.polled.0 += 1;
        self.polled.0 > MOST_POLLS || self.steps - self.polled.1 > MOST_POLL_POINTS
    }

    /// May this thread have the turn?
    pub(super) fn can_go(&self, index: u32) -> bool {
        match self.slots.get(index).state {
            State::Ready => true,
            State::Blocked => self.grantor(index) != NONE,
            State::Away | State::Ended => false,
        }
    }

    fn give(&mut self, index: u32) -> Next {
        let grantor = self.grantor(index);
        if grantor != NONE {
            self.slots.get_mut(grantor).grant = 0;
            self.unblock(index, Wake::Again);
        }
        let previous = self.last;
        if previous != index {
            if previous != NONE && self.slots.get(previous).state != State::Ended {
                let slot = self.slots.get(previous);
                let (gates, points) = slot.counters();
                self.record = Some(OrderRecord { thread: slot.serial, gates, points });
            }
            if previous != NONE {
                self.switches += 1;
            }
            let passed = self.slots.get(index).passed();
            self.slots.get_mut(index).quantum = passed;
            self.releases = 0;
        }
        self.last = index;
        self.turn = index;
        let allowed = self.allowance(index);
        self.slots.get(index).allow(allowed);
        Next::Turn(index)
    }

    /// How many points this thread may pass before it has to ask again.
    pub(super) fn allowance(&self, me: u32) -> u64 {
        let slot = self.slots.get(me);
        // The point that it is about to pass is one of them.
        let quantum = (slot.quantum + QUANTUM).saturating_sub(slot.passed());
        match self.phase {
            Phase::Run => quantum,
            Phase::Script | Phase::Hold if me != self.actor => {
                if self.actor != NONE && self.can_go(self.actor) { 0 } else { quantum }
            }
            Phase::Hold => self.gates.saturating_sub(self.line_gates(me)).saturating_add(1),
            Phase::Script => {
                let Some(turn) = self.plan.turns.get(self.line) else { return u64::MAX };
                let stops = if turn.thread == slot.hash {
                    match turn.target {
                        Target::Site { hash, occurrence } => {
                            turn.past && self.passed(slot.hash, hash) >= occurrence
                        }
                        Target::End | Target::Failure => false,
                    }
                } else {
                    // It runs until it has created the line's thread.
                    self.find(turn.thread).is_some()
                };
                let left = self.gates.saturating_sub(self.line_gates(me));
                if stops { 0 } else { left.saturating_add(1) }
            }
            Phase::Pct => {
                let higher = |other: u32| {
                    self.slots.get(other).priority > slot.priority && self.can_go(other)
                };
                if self.slots.living().any(higher) {
                    return 0;
                }
                let steps = self.steps + slot.passed().saturating_sub(slot.counted);
                let change = self.next_change().map_or(u64::MAX, |at| at.saturating_sub(steps));
                quantum.min(change)
            }
        }
    }

    /// How many gates were passed since the line began; what this thread has passed lately is not in the
    /// total yet.
    fn line_gates(&self, me: u32) -> u64 {
        let slot = self.slots.get(me);
        let steps = self.steps + slot.passed().saturating_sub(slot.counted);
        steps.saturating_sub(self.line_steps)
    }

    /// Were more gates passed in this line than it may take?
    fn is_line_spent(&self) -> bool {
        self.steps.saturating_sub(self.line_steps) > self.gates
    }

    /// Lets the holder of the turn stop at its next gate, when somebody else has to go on.
    pub(super) fn preempt(&mut self) {
        if self.turn == NONE || self.phase == Phase::Run {
            return;
        }
        if self.allowance(self.turn) == 0 {
            self.slots.get(self.turn).allow(0);
        }
    }

    pub(super) fn passed(&self, thread: u64, site: u64) -> u64 {
        self.passages.get(pair(thread, site)).unwrap_or(0)
    }

    // With a schedule.

    pub(super) fn is_over(&self, turn: &Turn) -> bool {
        let Some(index) = self.find(turn.thread) else { return false };
        let slot = self.slots.get(index);
        match turn.target {
            Target::End => slot.state == State::Ended,
            Target::Failure => false,
            Target::Site { hash, occurrence } => {
                let passed = self.passed(slot.hash, hash);
                if turn.past {
                    // Right behind the passage it may still be on its way to the next point.
                    let moved = passed > occurrence || slot.at != 0 || slot.behind != hash;
                    passed >= occurrence && (moved || slot.state == State::Ended)
                } else {
                    passed >= occurrence || (passed + 1 == occurrence && slot.at == hash)
                }
            }
        }
    }

    pub(super) fn next_line(&mut self, followed: bool) {
        if followed && self.left.is_none() {
            self.followed += 1;
        }
        self.line += 1;
        self.slept = 0;
        self.line_steps = self.steps;
    }

    /// Notes that the schedule is left at the current line.
    pub(super) fn leave(&mut self, reason: LeftReason) {
        if self.left.is_some() {
            return;
        }
        let Some(turn) = self.plan.turns.get(self.line).copied() else { return };
        let index = self.find(turn.thread);
        let mut message = Text::new();
        words::left(self, &mut message, &turn, index, reason);
        let site = index.map_or(0, |index| {
            let slot = self.slots.get(index);
            if slot.at == 0 { slot.behind } else { slot.at }
        });
        self.left = Some(Left { line: turn.line, reason, site, message });
    }

    fn by_script(&mut self) -> Choice {
        while let Some(turn) = self.plan.turns.get(self.line)
            && self.is_over(turn)
        {
            self.next_line(true);
        }
        let turn = self.plan.turns.get(self.line).copied();
        // Where a thread polls for ever, the failure is that nobody gets on: all may try.
        let polls = !self.plan.polls.is_empty();
        let Some(turn) = turn.filter(|turn| turn.target != Target::Failure || !polls) else {
            self.actor = NONE;
            self.phase = Phase::Run;
            if self.plan.hold
                && !polls
                && let Some(last) = self.plan.turns.last()
                && let Some(index) = self.find(last.thread)
            {
                self.held = index;
                self.phase = Phase::Hold;
            }
            return Choice::Again;
        };
        let actor = match self.find(turn.thread) {
            Some(index) if self.slots.get(index).state == State::Ended => {
                self.leave(LeftReason::Ended);
                self.next_line(false);
                return Choice::Again;
            }
            Some(index) => index,
            None => match self.ancestor(turn.thread) {
                Some(index) => index,
                None => {
                    self.leave(LeftReason::Absent);
                    self.next_line(false);
                    return Choice::Again;
                }
            },
        };
        if self.is_line_spent() {
            self.too_late();
            return Choice::Again;
        }
        self.for_actor(actor)
    }

    fn by_hold(&mut self) -> Choice {
        if self.held == NONE || self.slots.get(self.held).state == State::Ended {
            self.actor = NONE;
            self.phase = Phase::Run;
            return Choice::Again;
        }
        if self.is_line_spent() {
            return self.out_of_patience();
        }
        self.for_actor(self.held)
    }

    /// The nearest living creator of a thread that does not exist yet, if it can still come.
    fn ancestor(&self, thread: u64) -> Option<u32> {
        let mut name = (self.plan.name)(thread);
        while let Some(dot) = name.iter().rposition(|byte| *byte == b'.') {
            name = name.get(..dot)?;
            let hash = thread_hash(name);
            for index in 0..self.slots.count {
                let slot = self.slots.get(index);
                if slot.hash == hash {
                    return (slot.state != State::Ended).then_some(index);
                }
            }
        }
        None
    }

    /// Lets this thread go on; when it cannot, whoever can help it.
    fn for_actor(&mut self, actor: u32) -> Choice {
        self.actor = actor;
        if self.can_go(actor) {
            if self.slept > self.patience {
                return self.out_of_patience();
            }
            return Choice::Thread(actor);
        }
        let slot = self.slots.get(actor);
        // A library's own wait ends when somebody has something for it.
        if slot.wait.between && self.waits_before_its_stop(actor) {
            self.next_line(true);
            return Choice::Again;
        }
        if slot.state == State::Blocked && slot.wait.deadline != NEVER && !self.stays(actor) {
            // Nobody else is to run now, so the time-out is what comes next.
            self.let_sleeper_go(actor);
            self.slept = self.slept.saturating_add(NAP);
            return Choice::Again;
        }
        if self.waits_before_its_stop(actor) {
            self.next_line(true);
            return Choice::Again;
        }
        if slot.comes_later() {
            // Its time comes whatever the others do.
            return Choice::Nobody;
        }
        let created = |turn: &Turn| self.find(turn.thread).is_some();
        let is_line = self.plan.turns.get(self.line).is_some_and(created);
        if self.phase == Phase::Script && is_line && !self.is_kept_by_one_that_is_free(actor) {
            self.leave(LeftReason::Blocked);
        }
        self.helper(actor)
    }

    /// Does it wait for a lock of a thread that can go on, and has come past the last place that a schedule, behind which all
    /// do as they like, has for it? What that one does then is nothing that the schedule has an order for.
    fn is_kept_by_one_that_is_free(&self, actor: u32) -> bool {
        let blocker = self.blocker(actor);
        if self.plan.hold || blocker == NONE || !self.can_go(blocker) {
            return false;
        }
        let hash = self.slots.get(blocker).hash;
        let last = self.plan.turns.iter().enumerate().rfind(|(_, turn)| turn.thread == hash);
        last.is_some_and(|(line, turn)| line < self.line && turn.past)
    }

    /// Is the line's thread to stand before a place, and waits for a futex on the way there? Such a
    /// wait is no event, so that whoever wrote the schedule took the thread to get to the place by
    /// itself. It is as good as there: what brings it on are the lines that follow. Where the wait is none of the
    /// program's calls, a thread is as good as behind a place that it has passed.
    fn waits_before_its_stop(&self, actor: u32) -> bool {
        let slot = self.slots.get(actor);
        self.phase == Phase::Script
            && slot.state == State::Blocked
            && slot.wait.kind == WaitKind::Futex
            && self.plan.turns.get(self.line).is_some_and(|turn| {
                let Target::Site { hash, occurrence } = turn.target else { return false };
                let passed = || self.passed(slot.hash, hash) >= occurrence;
                let there = if turn.past { slot.wait.between && passed() } else { true };
                there && turn.thread == slot.hash
            })
    }

    fn out_of_patience(&mut self) -> Choice {
        self.slept = 0;
        match self.phase {
            Phase::Hold => self.phase = Phase::Run,
            _ => self.too_late(),
        }
        Choice::Again
    }

    /// Somebody who may bring a waiting thread on.
    fn helper(&mut self, actor: u32) -> Choice {
        // A helper that went on for long without blocking is probably waiting itself.
        if self.last != NONE && self.last != actor {
            let slot = self.slots.get(self.last);
            if slot.state == State::Ready && slot.passed() >= slot.quantum + QUANTUM {
                let passed = slot.passed();
                let slot = self.slots.get_mut(self.last);
                slot.tired = true;
                slot.quantum = passed;
                self.pass_time(QUANTUM_TIME);
            }
        }
        for _ in 0..2 {
            let found = self.fresh_helper(actor);
            if found != NONE {
                return Choice::Thread(found);
            }
            for index in 0..self.slots.count {
                self.slots.get_mut(index).tired = false;
            }
        }
        Choice::Nobody
    }

    fn fresh_helper(&self, actor: u32) -> u32 {
        let fit = |index: u32| index != actor && self.can_go(index) && !self.slots.get(index).tired;
        let mut at = actor;
        for _ in 0..CHAIN {
            at = self.blocker(at);
            if at == NONE || at == actor {
                break;
            }
            if fit(at) {
                return at;
            }
        }
        if self.last != NONE && fit(self.last) {
            return self.last;
        }
        for turn in self.plan.turns.iter().skip(self.line + 1).take(AHEAD) {
            if let Some(index) = self.find(turn.thread)
                && fit(index)
            {
                return index;
            }
        }
        self.after(self.last, fit)
    }

    /// Who has to do something before this thread can go on, as far as that is known.
    #[must_use]
    pub fn blocker(&self, index: u32) -> u32 {
        let slot = self.slots.get(index);
        if slot.state != State::Blocked {
            return NONE;
        }
        if slot.wait.kind == WaitKind::Join {
            return slot.wait.address as u32;
        }
        if slot.wait.owner.is_null() {
            return NONE;
        }
        // SAFETY: the owner field of an object that a thread is waiting for.
        let tid = unsafe { core::ptr::read_volatile(slot.wait.owner) };
        let owns = |other: &u32| tid != 0 && self.slots.get(*other).tid == tid;
        self.slots.living().find(owns).unwrap_or(NONE)
    }

    // Without one.

    /// The first fitting thread behind this one in order of creation, going round.
    fn after(&self, from: u32, fit: impl Fn(u32) -> bool) -> u32 {
        let mut wrapped = NONE;
        for index in self.slots.living() {
            if fit(index) {
                if from == NONE || index > from {
                    return index;
                }
                if wrapped == NONE {
                    wrapped = index;
                }
            }
        }
        wrapped
    }

    /// The thread that runs goes on until it waits, ends, yields or has used up its quantum.
    fn by_order(&mut self) -> Choice {
        let last = self.last;
        if last != NONE && last == self.turn && self.can_go(last) {
            let slot = self.slots.get(last);
            let used = slot.passed().saturating_sub(slot.quantum);
            if used < QUANTUM && !core::mem::take(&mut self.yielded) {
                return Choice::Thread(last);
            }
            let passed = slot.passed();
            self.slots.get_mut(last).quantum = passed;
            if used >= QUANTUM {
                self.pass_time(QUANTUM_TIME);
            }
        }
        self.yielded = false;
        match self.after(last, |index| self.can_go(index)) {
            NONE => Choice::Nobody,
            index => Choice::Thread(index),
        }
    }

    pub(super) fn sink(&mut self, index: u32) {
        self.lowest -= 1;
        let (lowest, passed) = (self.lowest, self.slots.get(index).passed());
        let slot = self.slots.get_mut(index);
        slot.priority = lowest;
        slot.quantum = passed;
    }

    fn next_change(&self) -> Option<u64> {
        if self.change < self.change_count { self.changes.get(self.change).copied() } else { None }
    }

    fn by_priority(&mut self) -> Choice {
        if self.turn != NONE {
            while let Some(at) = self.next_change()
                && at <= self.steps
            {
                self.change += 1;
                self.sink(self.turn);
            }
            let slot = self.slots.get(self.turn);
            if slot.passed() >= slot.quantum + QUANTUM {
                self.sink(self.turn);
                self.pass_time(QUANTUM_TIME);
            }
        }
        let mut best = NONE;
        for index in self.slots.living() {
            if self.can_go(index)
                && (best == NONE || self.slots.get(index).priority > self.slots.get(best).priority)
            {
                best = index;
            }
        }
        if best == NONE { Choice::Nobody } else { Choice::Thread(best) }
    }

    // When nobody can run.

    /// The thread whose wait ends first by itself.
    pub(super) fn earliest(&self) -> u32 {
        let mut best = NONE;
        for index in self.slots.living() {
            let slot = self.slots.get(index);
            if slot.state == State::Blocked
                && slot.wait.deadline != NEVER
                && !self.stays(index)
                && (best == NONE || slot.wait.deadline < self.slots.get(best).wait.deadline)
            {
                best = index;
            }
        }
        best
    }

    /// Does the thread wait to the end, because it did so in the recorded run when that was stuck?
    fn stays(&self, index: u32) -> bool {
        let slot = self.slots.get(index);
        slot.wait.kind != WaitKind::Sleep
            && slot.wait.deadline.saturating_sub(self.now) >= LONG_LIMIT
            && self.plan.waits.contains(&slot.hash)
            && self.plan.turns.get(self.line).is_none_or(|turn| turn.target == Target::Failure)
    }

    pub(super) fn let_sleeper_go(&mut self, index: u32) {
        let wait = self.slots.get(index).wait;
        let ahead = wait.deadline.saturating_sub(self.now);
        if ahead > 0 {
            self.skipped = self.skipped.saturating_add(1);
            if self.skipped > FREE_SKIPS {
                self.pause = ahead.min(LONGEST_PAUSE);
            }
        }
        self.now = self.now.max(wait.deadline);
        let wake = if wait.kind == WaitKind::Sleep { Wake::Again } else { Wake::TimedOut };
        self.unblock(index, wake);
    }

    /// Tries to make somebody able to run: by what may have happened unseen, then by letting time
    /// pass. While a thread is away, time is not pushed on: it may be the one to come.
    fn revive(&mut self) -> bool {
        if core::mem::take(&mut self.dirty) && self.probe() {
            return true;
        }
        if self.away > 0 {
            return false;
        }
        let sleeper = self.earliest();
        if sleeper != NONE {
            self.let_sleeper_go(sleeper);
            return true;
        }
        if self.probes == 0 {
            self.probes = 1;
            return self.probe();
        }
        false
    }
}
