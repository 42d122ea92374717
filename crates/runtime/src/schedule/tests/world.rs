//! A process whose threads are lists of calls, and one thread that runs them all as the state machine says.

use super::super::core::{Core, LONG_LIMIT, Next, Plan};
use super::super::slots::{NEVER, NONE, Slots, State, Wait, WaitKind, Wake};
use crate::layout::{Control, OrderRecord, site_hash};
use crate::script::{Target, Turn, thread_hash};
use core::ptr::null;

/// A call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Gate(u64),
    Lock(usize),
    Unlock(usize),
    /// Condition and mutex, and the time limit.
    Wait(usize, usize, u64),
    Signal(usize),
    Broadcast(usize),
    Initialise(usize),
    Post(usize),
    Take(usize),
    /// Barrier and count.
    Meet(usize, u32),
    Join(usize),
    Create(usize),
    Sleep(u64),
    Yield,
}

pub(super) use Op::{
    Broadcast, Create, Gate, Initialise, Join, Lock, Meet, Post, Signal, Sleep, Take, Unlock,
    Wait as Await, Yield,
};

pub(super) const START: u64 = site_hash(b"~start");
pub(super) const EXIT: u64 = site_hash(b"~exit");
pub(super) const CALL: u64 = site_hash(b"~call");
pub(super) const WAKE: u64 = site_hash(b"~wake");
pub(super) const RELOCK: u64 = site_hash(b"~relock");
pub(super) const LEAVE: u64 = site_hash(b"~leave");

/// Where a thread is in its current call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Between,
    Point,
    Retry,
    Woken,
    Relock,
    Relocking,
    Leaving,
    Exiting,
    Ended,
}

pub(super) struct Runner {
    slot: u32,
    name: String,
    program: Vec<Op>,
    at: usize,
    pub(super) stage: Stage,
}

/// A process: the programs of its threads, the first of them the initial one's.
pub(super) struct World {
    pub(super) core: Core,
    pub(super) threads: Vec<Runner>,
    pub(super) mutexes: [i32; 4],
    /// The threads that hold the mutexes, by their numbers, where the scheduler may know them.
    pub(super) owners: Option<Box<[i32; 4]>>,
    pub(super) semaphores: [u32; 4],
    pub(super) log: Vec<(u32, u64)>,
    pub(super) records: Vec<OrderRecord>,
    pub(super) timed_out: u32,
    pub(super) marks: Vec<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    All,
    Deadlock,
    Stuck,
    Far,
}

pub(super) fn object(kind: u64, index: usize) -> u64 {
    kind << 32 | index as u64
}

pub(super) fn name(hash: u64) -> &'static [u8] {
    const NAMES: [&[u8]; 9] =
        [b"t0", b"t0.1", b"t0.2", b"t0.3", b"t0.4", b"t0.1.1", b"t0.2.1", b"t0.9", b"t1"];
    NAMES.iter().copied().find(|name| thread_hash(name) == hash).unwrap_or(b"")
}

pub(super) fn no_site(_: u64) -> &'static [u8] {
    b"site"
}

pub(super) fn plan(turns: &[Turn], hold: bool) -> Plan {
    Plan {
        turns: turns.to_vec().leak(),
        marks: &[],
        hold,
        polls: &[],
        waits: &[],
        name,
        site: no_site,
    }
}

pub(super) fn to(thread: &str, site: u64, occurrence: u64) -> Turn {
    let target = Target::Site { hash: site, occurrence };
    Turn { line: 0, thread: thread_hash(thread.as_bytes()), target, past: false }
}

pub(super) fn past(thread: &str, site: u64, occurrence: u64) -> Turn {
    Turn { past: true, ..to(thread, site, occurrence) }
}

pub(super) fn end(thread: &str) -> Turn {
    Turn { target: Target::End, ..to(thread, 0, 0) }
}

pub(super) fn numbered(turns: &[Turn]) -> Vec<Turn> {
    turns.iter().zip(2..).map(|(turn, line)| Turn { line, ..*turn }).collect()
}

impl World {
    pub(super) fn new(programs: &[(&str, &[Op])], prepare: impl FnOnce(&mut Core)) -> Self {
        let mut core = Core::new();
        core.slots = Slots::with_room(64);
        prepare(&mut core);
        let threads = programs
            .iter()
            .map(|(name, program)| Runner {
                slot: NONE,
                name: (*name).to_owned(),
                program: program.to_vec(),
                at: 0,
                stage: Stage::New,
            })
            .collect();
        let mut world = Self {
            core,
            threads,
            mutexes: [-1; 4],
            owners: None,
            semaphores: [0; 4],
            log: Vec::new(),
            records: Vec::new(),
            timed_out: 0,
            marks: Vec::new(),
        };
        world.create(0);
        world
    }

    pub(super) fn create(&mut self, index: usize) {
        // SAFETY: zeros are a valid control page.
        let control: Control = unsafe { std::mem::zeroed() };
        let control = Box::leak(Box::new(control));
        control.gate_stop = u64::MAX;
        let name = self.threads[index].name.clone();
        self.threads[index].slot = self.core.add(name.as_bytes(), control, START).unwrap();
        let serial = index as u64 + 1;
        self.core.slots.get_mut(self.threads[index].slot).serial = serial;
    }

    pub(super) fn decide(&mut self) -> Next {
        let next = self.core.decide();
        self.records.extend(self.core.record.take());
        next
    }

    /// Runs to the end.
    pub(super) fn run(&mut self) -> End {
        let mut idle = 0;
        let mut next = self.decide();
        for _ in 0..2_000_000 {
            match next {
                Next::Turn(slot) => {
                    idle = 0;
                    self.go_on(slot);
                    if self.threads.iter().all(|t| t.slot == NONE || t.stage == Stage::Ended) {
                        return End::All;
                    }
                }
                Next::Stuck => return End::Stuck,
                Next::Far => return End::Far,
                Next::Idle => {
                    idle += 1;
                    assert!(idle < 10, "idle for ever");
                    if self.core.idle_for(1 << 40, 1 << 40, 1) {
                        self.check_deadlock();
                        return End::Deadlock;
                    }
                }
            }
            next = self.decide();
        }
        panic!("does not end");
    }

    /// The thread that has the turn goes on until it has to ask the scheduler.
    pub(super) fn go_on(&mut self, slot: u32) {
        assert_eq!(self.core.turn, slot);
        assert_eq!(self.core.slots.get(slot).state, State::Ready);
        let index = self.threads.iter().position(|thread| thread.slot == slot).unwrap();
        while self.step(index) {}
    }

    pub(super) fn pass(&mut self, index: usize) {
        let slot = self.threads[index].slot;
        let site = self.core.slots.get(slot).at;
        assert_ne!(site, 0);
        if let Some(occurrence) = self.core.pass(slot) {
            self.marks.extend(self.core.mark(slot, occurrence));
        }
        let control = self.core.slots.get(slot).control;
        // SAFETY: leaked in `create`.
        unsafe { (*control).points += 1 };
        self.log.push((slot, site));
    }

    pub(super) fn block(&mut self, index: usize, wait: Wait, site: u64, stage: Stage) -> bool {
        self.threads[index].stage = stage;
        self.core.block(self.threads[index].slot, wait, site);
        false
    }

    pub(super) fn stand(&mut self, index: usize, site: u64, stage: Stage) -> bool {
        self.threads[index].stage = stage;
        self.core.stand(self.threads[index].slot, site);
        false
    }

    /// One step; false when the scheduler has to decide.
    pub(super) fn step(&mut self, index: usize) -> bool {
        let slot = self.threads[index].slot;
        match self.threads[index].stage {
            Stage::New => {
                self.pass(index);
                self.threads[index].stage = Stage::Between;
            }
            Stage::Between => return self.begin(index),
            Stage::Point => {
                self.pass(index);
                return self.call(index);
            }
            Stage::Retry => return self.call(index),
            Stage::Woken => {
                if self.core.slots.get(slot).wake == Wake::TimedOut {
                    self.timed_out += 1;
                }
                self.pass(index);
                return self.stand(index, RELOCK, Stage::Relock);
            }
            Stage::Relock => {
                self.pass(index);
                return self.relock(index);
            }
            Stage::Relocking => return self.relock(index),
            Stage::Leaving => {
                self.pass(index);
                self.done(index);
            }
            Stage::Exiting => {
                self.pass(index);
                self.threads[index].stage = Stage::Ended;
                self.core.end(slot);
                self.records.extend(self.core.record.take());
                return false;
            }
            Stage::Ended => panic!("an ended thread has the turn"),
        }
        true
    }

    pub(super) fn done(&mut self, index: usize) {
        self.threads[index].at += 1;
        self.threads[index].stage = Stage::Between;
    }

    pub(super) fn begin(&mut self, index: usize) -> bool {
        let Some(op) = self.threads[index].program.get(self.threads[index].at).copied() else {
            return self.stand(index, EXIT, Stage::Exiting);
        };
        match op {
            Gate(site) => self.stand(index, site, Stage::Point),
            Sleep(time) => {
                self.done(index);
                let deadline = self.core.now.saturating_add(time);
                let wait = Wait { deadline, ..Wait::on(WaitKind::Sleep, 0) };
                self.block(index, wait, 0, Stage::Between)
            }
            Yield => {
                self.done(index);
                self.core.give_way(self.threads[index].slot);
                false
            }
            _ => self.stand(index, CALL, Stage::Point),
        }
    }

    pub(super) fn relock(&mut self, index: usize) -> bool {
        let thread = &self.threads[index];
        let Await(_, mutex, _) = thread.program[thread.at] else { panic!("a wait expected") };
        if self.mutexes[mutex] != -1 {
            let wait = Wait::on(WaitKind::Mutex, object(1, mutex));
            return self.block(index, wait, 0, Stage::Relocking);
        }
        self.mutexes[mutex] = thread.slot as i32;
        self.done(index);
        true
    }

    /// Performs the call behind the point.
    pub(super) fn call(&mut self, index: usize) -> bool {
        let slot = self.threads[index].slot;
        match self.threads[index].program[self.threads[index].at] {
            Lock(mutex) => {
                if self.mutexes[mutex] != -1 {
                    let mut wait = Wait::on(WaitKind::Mutex, object(1, mutex));
                    wait.owner =
                        self.owners.as_ref().map_or(null(), |owners| &raw const owners[mutex]);
                    return self.block(index, wait, 0, Stage::Retry);
                }
                self.mutexes[mutex] = slot as i32;
                if let Some(owners) = &mut self.owners {
                    owners[mutex] = slot as i32 + 1;
                    self.core.slots.get_mut(slot).tid = slot as i32 + 1;
                }
            }
            Unlock(mutex) => {
                if self.mutexes[mutex] == slot as i32 {
                    self.mutexes[mutex] = -1;
                    self.core.released(object(1, mutex));
                }
            }
            Take(semaphore) => {
                if self.semaphores[semaphore] == 0 {
                    let wait = Wait::on(WaitKind::Semaphore, object(2, semaphore));
                    return self.block(index, wait, 0, Stage::Retry);
                }
                self.semaphores[semaphore] -= 1;
            }
            Post(semaphore) => {
                self.semaphores[semaphore] += 1;
                self.core.released(object(2, semaphore));
            }
            Await(condition, mutex, limit) => {
                if self.mutexes[mutex] == slot as i32 {
                    self.mutexes[mutex] = -1;
                    self.core.released(object(1, mutex));
                    let deadline = self.core.now.saturating_add(limit);
                    let on = Wait::on(WaitKind::Condition, object(3, condition));
                    return self.block(index, Wait { deadline, ..on }, WAKE, Stage::Woken);
                }
            }
            Signal(condition) => self.core.signal(object(3, condition), false),
            Broadcast(condition) => self.core.signal(object(3, condition), true),
            Initialise(condition) => self.core.initialised(object(3, condition)),
            Meet(barrier, count) => {
                if self.core.at_barrier(object(4, barrier), count) {
                    return self.stand(index, LEAVE, Stage::Leaving);
                }
                let wait = Wait::on(WaitKind::Barrier, object(4, barrier));
                return self.block(index, wait, LEAVE, Stage::Leaving);
            }
            Join(other) => {
                let target = &self.threads[other];
                if target.slot != NONE && target.stage != Stage::Ended {
                    let wait = Wait::on(WaitKind::Join, u64::from(target.slot));
                    return self.block(index, wait, 0, Stage::Retry);
                }
            }
            Create(other) => self.create(other),
            Gate(_) | Sleep(_) | Yield => {}
        }
        self.done(index);
        true
    }

    /// Nobody that waits could go on.
    pub(super) fn check_deadlock(&self) {
        for index in self.core.slots.living() {
            let slot = self.core.slots.get(index);
            assert_eq!(slot.state, State::Blocked);
            let long = slot.wait.deadline.saturating_sub(self.core.now) >= LONG_LIMIT;
            let stays = long && self.core.plan.waits.contains(&slot.hash);
            assert!(slot.wait.deadline == NEVER || stays);
            let number = slot.wait.address as u32 as usize;
            match slot.wait.kind {
                WaitKind::Mutex => assert_ne!(self.mutexes[number], -1),
                WaitKind::Semaphore => assert_eq!(self.semaphores[number], 0),
                WaitKind::Join => {
                    assert_ne!(self.core.slots.get(number as u32).state, State::Ended);
                }
                WaitKind::Condition => assert_eq!(slot.grant, 0),
                _ => {}
            }
        }
    }

    pub(super) fn sites(&self, site: u64) -> Vec<u32> {
        self.log.iter().filter(|entry| entry.1 == site).map(|entry| entry.0).collect()
    }
}

pub(super) const A: u64 = 1001;
pub(super) const B: u64 = 1002;

pub(super) fn three(body: &[Op]) -> Vec<(&'static str, Vec<Op>)> {
    let main = vec![Create(1), Create(2), Create(3), Join(1), Join(2), Join(3)];
    vec![("t0", main), ("t0.1", body.to_vec()), ("t0.2", body.to_vec()), ("t0.3", body.to_vec())]
}

pub(super) fn world(
    programs: &[(&'static str, Vec<Op>)],
    prepare: impl FnOnce(&mut Core),
) -> World {
    let borrowed: Vec<(&str, &[Op])> =
        programs.iter().map(|(name, program)| (*name, &program[..])).collect();
    World::new(&borrowed, prepare)
}

pub(super) fn followed(programs: &[(&'static str, Vec<Op>)], turns: &[Turn]) -> World {
    let turns = numbered(turns);
    world(programs, |core| core.follow(plan(&turns, false), 1 << 30))
}
