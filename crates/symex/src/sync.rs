//! Runtime entries: threads, synchronisation, and what uninstrumented code wrote.

use crate::access::{Grain, Place};
use crate::builder::says_more;
use crate::engine::Engine;
use crate::foreign;
use crate::memory::{Bytes, MemoryByte};
use crate::report::{BlockedCall, GapKind};
use crate::signals::SIGNAL_WORDS;
use crate::sizes::{CONDITION_SIZE, MUTEX_SIZE, SEMAPHORE_SIZE, WORD_SIZE, object_size};
use crate::thread::{Frame, HeldLock, PendingSync, Stop, contradiction};
use model::{EventId, EventKind, Interval, LockMode, ObjectId, ObjectKind, Stack};
use trace_format::layout::{RuntimeEvent, SyncOp, SyncPoint};

/// `ETIMEDOUT` of Linux.
pub(crate) const TIMED_OUT: u64 = 110;
/// `PTHREAD_BARRIER_SERIAL_THREAD` as a payload word.
const SERIAL_THREAD: u64 = u64::MAX;
/// The logged result of a futex wait behind which the word has another value.
const CHANGED: u64 = 1;
/// The logged result of a once call that ran the routine.
const RAN: u64 = 1;
/// See [`class_of`].
const LOCK: u8 = 0;
const CONDITION: u8 = 1;
const SEMAPHORE: u8 = 2;
const BARRIER: u8 = 3;
/// `EOWNERDEAD`: only functions on mutexes give it.
const OWNER_DEAD: u64 = 130;

/// What ended a wait for a condition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    Signalled,
    TimedOut,
    Cancelled,
}

impl<'r> Engine<'r> {
    /// Handles the runtime entry that comes next, and moves past it.
    pub fn runtime(&mut self, t: usize, event: RuntimeEvent) -> Result<(), Stop> {
        let words = match event {
            RuntimeEvent::SignalBegin => SIGNAL_WORDS,
            RuntimeEvent::SignalEnd => 1,
            RuntimeEvent::SyncBegin
            | RuntimeEvent::SyncEnd
            | RuntimeEvent::Locked
            | RuntimeEvent::Unlocked => 0,
            RuntimeEvent::ThreadCreate => 4,
            RuntimeEvent::Map => 5,
            RuntimeEvent::Allocate | RuntimeEvent::Unmap => 3,
            RuntimeEvent::Repeat => {
                return contradiction("rounds are counted where no waiting loop begins again");
            }
            RuntimeEvent::JoinEnd | RuntimeEvent::Free => 2,
            RuntimeEvent::JoinBegin
            | RuntimeEvent::ThreadExit
            | RuntimeEvent::Reading
            | RuntimeEvent::CallReading => 1,
            RuntimeEvent::NonLocal => 0,
            RuntimeEvent::ExternalWrite => {
                let length = self.threads[t].peek_word(1).ok_or(Stop::EndOfLog)?;
                let bytes = length.checked_next_multiple_of(8).and_then(|n| n.checked_add(16));
                let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
                self.threads[t].peek_bytes(bytes.unwrap_or(usize::MAX)).ok_or(Stop::EndOfLog)?;
                2
            }
        };
        if event == RuntimeEvent::JoinEnd {
            self.wait_for_joined(t)?;
            self.check_joined(t)?;
        }
        match event {
            RuntimeEvent::SyncBegin
            | RuntimeEvent::SyncEnd
            | RuntimeEvent::Locked
            | RuntimeEvent::Unlocked
            | RuntimeEvent::Reading
            | RuntimeEvent::CallReading
            | RuntimeEvent::ExternalWrite => {}
            _ => self.idle.effect(),
        }
        let thread = &mut self.threads[t];
        let before = thread.sync_time();
        let words = match event {
            RuntimeEvent::SyncBegin | RuntimeEvent::SyncEnd => thread.sync_payload()?,
            RuntimeEvent::Locked | RuntimeEvent::Unlocked => thread.short_payload()?,
            _ => thread.words(words)?,
        };
        thread.advance();
        self.check_after_panic(t, event, &words)?;
        if matches!(event, RuntimeEvent::SyncBegin | RuntimeEvent::Locked) {
            self.cancelled_inside(t);
        }
        match (event, words.as_slice()) {
            (RuntimeEvent::ThreadCreate, [serial, handle, ..]) => {
                // Of a thread that the library makes later nobody knows the handle.
                if *handle != 0 {
                    if let Some(call) = self.threads[t].external_call() {
                        call.created = Some(*handle);
                    }
                    if let Some(&child) = self.serials.get(serial) {
                        self.learned.thread_pointers.insert(child, *handle);
                    }
                }
                self.pass_sync(t, SyncPoint::Create, None);
                // Who creates a thread is told its handle before that begins.
                match self.threads[t].is_told_next(*handle) {
                    true => self.threads[t].creating = Some(*serial),
                    false => self.create(t, *serial),
                }
            }
            (RuntimeEvent::JoinBegin, [serial]) => {
                self.pass_sync(t, SyncPoint::Join, None);
                self.threads[t].joining = self.serials.get(serial).copied();
            }
            (RuntimeEvent::JoinEnd, [serial, result]) => {
                if self.ends_in_join(t, *result) {
                    self.threads[t].forget_rest();
                    return Err(Stop::EndOfLog);
                }
                self.joined(t, *serial, *result);
            }
            (RuntimeEvent::ThreadExit, [tsc]) => {
                self.stamp(t, *tsc);
                if t != 0 {
                    self.cancelled(t);
                    self.pass_sync(t, SyncPoint::Exit, None);
                }
                self.threads[t].exited = true;
            }
            (RuntimeEvent::Reading, [tsc]) => self.stamp(t, *tsc),
            (RuntimeEvent::CallReading, [tsc]) => self.read_clock(t, *tsc),
            (RuntimeEvent::SignalBegin, [signal, _, _, _, info, context]) => {
                return self.handle_signal(t, *signal, [*info, *context]);
            }
            (RuntimeEvent::SignalEnd, _) => return contradiction("end of no signal handler"),
            (RuntimeEvent::NonLocal, _) => self.threads[t].non_local = true,
            (RuntimeEvent::Allocate, [address, size, tsc]) => {
                self.allocate(t, *address, *size, *tsc);
            }
            (RuntimeEvent::Free, [address, tsc]) => self.free(t, *address, *tsc),
            (RuntimeEvent::Map, [address, size, contents, before, after]) => {
                self.map(t, (*address, *size), *contents, (*before, *after));
            }
            (RuntimeEvent::Unmap, [address, size, tsc]) => self.unmap(t, *address, *size, *tsc),
            (RuntimeEvent::SyncBegin, [op, address, second, argument, tsc]) => {
                if *tsc != before {
                    self.stamp(t, *tsc);
                }
                return self.sync_begin(t, *op, *address, *second, *argument);
            }
            (RuntimeEvent::SyncEnd, [op, address, second, result, tsc]) => {
                // Without a reading the call's end is known from the next one.
                let latest = if *tsc == before { self.latest(t) } else { *tsc };
                if *tsc != before {
                    self.stamp(t, *tsc);
                }
                let ended = self.sync_end(t, *op, *address, (*second, *result), latest);
                self.threads[t].call_time = None;
                return ended;
            }
            (RuntimeEvent::Locked, [address, tsc]) => {
                let lock = SyncOp::MutexLock as u64;
                self.sync_begin(t, lock, *address, 0, 0)?;
                self.stamp(t, *tsc);
                self.sync_end(t, lock, *address, (0, 0), *tsc)?;
            }
            (RuntimeEvent::Unlocked, [address, tsc]) => {
                let unlock = SyncOp::MutexUnlock as u64;
                if *tsc != before {
                    self.loose_stamp(t, *tsc);
                }
                self.sync_begin(t, unlock, *address, 0, 0)?;
                let latest = self.latest(t);
                self.sync_end(t, unlock, *address, (0, 0), latest)?;
            }
            (RuntimeEvent::ExternalWrite, [address, length]) => {
                let padded = usize::try_from(*length).unwrap_or(0).next_multiple_of(8);
                let bytes = self.threads[t].bytes(padded, |bytes| Box::<[u8]>::from(bytes))?;
                self.external_write(t, *address, *length, &bytes);
                if let Some(call) = self.threads[t].external_call() {
                    call.written.get_or_insert((*length, bytes));
                }
                if let Some(serial) = self.threads[t].creating.take() {
                    self.create(t, serial);
                }
            }
            _ => {}
        }
        self.threads[t].call_time = None;
        Ok(())
    }

    /// A join can only be walked past when the thread joined has been walked.
    fn wait_for_joined(&mut self, t: usize) -> Result<(), Stop> {
        let (Some(serial), Some(result)) =
            (self.threads[t].peek_word(0), self.threads[t].peek_word(1))
        else {
            return Err(Stop::EndOfLog);
        };
        match self.serials.get(&serial) {
            Some(&child) if result == 0 && child != t && !self.has_ended(child) => {
                Err(Stop::Wait(child))
            }
            _ => Ok(()),
        }
    }

    fn create(&mut self, t: usize, serial: u64) {
        if let Some(address) = self.image.single_threaded()
            && let Some(internal) = self.resolve(t, address)
        {
            self.memory.fill(internal, 1, MemoryByte::Const(0));
        }
        let Some(&child) = self.serials.get(&serial) else {
            self.gap(t, GapKind::Synchronisation, format!("thread {serial} left no log"));
            return;
        };
        let mine = self.threads[child].log.parent == self.threads[t].log.serial;
        if child <= t || self.threads[child].started || !mine {
            self.gap(t, GapKind::Synchronisation, format!("creates thread {serial}"));
            return;
        }
        self.give_locals(t, child);
        let kept = &mut self.learned.kept_by_fork;
        if kept.contains(&t) && !kept.contains(&child) {
            kept.push(child);
        }
        self.event(t, EventKind::Fork { child: model::ThreadId::from_index(child) }, None);
        let clock = self.threads[t].clock.clone();
        let stamp = self.threads[t].last_stamp;
        self.learned.began[child] = Some(stamp);
        self.threads[t].clock.tick(t);
        let thread = &mut self.threads[child];
        thread.last_stamp = thread.last_stamp.max(stamp);
        thread.clock.join(&clock);
        thread.clock.tick(child);
        thread.started = true;
    }

    /// The log ends inside a call that created threads: their own logs show it. The entry of a
    /// creation comes behind the call, and a thread can end the process before its creator is back.
    pub fn create_unlogged(&mut self, t: usize) {
        let inside = matches!(self.threads[t].frames.last(), Some(Frame::External(_)));
        if !inside || !self.threads[t].exhausted() {
            return;
        }
        let parent = self.threads[t].log.serial;
        let mine = |child: &usize| {
            let thread = &self.threads[*child];
            thread.log.parent == parent && !thread.started
        };
        let children: Vec<usize> = (t + 1..self.threads.len()).filter(mine).collect();
        for child in children {
            self.pass_sync(t, SyncPoint::Create, None);
            self.create(t, self.threads[child].log.serial);
        }
    }

    fn joined(&mut self, t: usize, serial: u64, result: u64) {
        self.threads[t].joining = None;
        let Some(&child) = self.serials.get(&serial) else { return };
        if result != 0 || child == t {
            return;
        }
        self.event(t, EventKind::Join { child: model::ThreadId::from_index(child) }, None);
        let (clock, stamp) = (self.threads[child].clock.clone(), self.threads[child].last_stamp);
        self.threads[t].clock.join(&clock);
        self.threads[t].last_stamp = self.threads[t].last_stamp.max(stamp);
        self.threads[t].clock.tick(t);
    }

    /// Bytes that uninstrumented code wrote. One that holds this very constant already was not
    /// written, as far as anybody can tell.
    fn external_write(&mut self, t: usize, address: u64, length: u64, written: &[u8]) {
        // What a walked callee wrote is known, also where another thread has written there since.
        if self.threads[t].external_call().is_some_and(|call| call.walked_result.is_some()) {
            return;
        }
        self.read_described(t, None);
        if self.measures(t, address, written) {
            return;
        }
        let guessed = self.is_guess(t);
        self.learn_thread_local(t, address, length);
        let Some(internal) = self.resolve(t, address) else { return };
        let mut length = length;
        if guessed {
            self.doubt(t);
            // A type may promise more than the object has.
            if let Some(index) = self.learned.heap.at_internal(internal) {
                let object = &self.learned.heap.objects[index];
                length = length.min(object.base + object.size - internal);
            }
        }
        self.memory.rewrite(internal, length);
        let written = &written[..written.len().min(length.min(1 << 30) as usize)];
        let bytes: Bytes = written.iter().copied().map(MemoryByte::Const).collect();
        let bytes = self.grown(t, address, bytes);
        let old = self.memory.read(internal, bytes.len() as u64);
        let what = self.derived_bytes(t, bytes.clone());
        let foreign = |engine: &Self, i: usize| {
            guessed && engine.learned.writers.other_than(t, internal + i as u64)
        };
        self.guessing = guessed;
        let mut at = 0;
        while at < bytes.len() {
            let changed = |&i: &usize| old.get(i) != bytes.get(i);
            let run = (at..bytes.len()).take_while(|i| changed(i) && !foreign(self, *i)).count();
            if run > 0 {
                let place = Place::new(internal + at as u64, run as u64, None);
                self.write_whole_cells(t, place, &what, at);
            } else if let Some(byte) = what.get(at..=at).filter(|_| changed(&at)) {
                self.write_private_bytes(Place::new(internal + at as u64, 1, None), byte);
            }
            at += run.max(1);
        }
        self.guessing = false;
        self.note_external_store(t, internal, length);
    }

    /// Forgets what the objects behind a call's arguments hold, before the first word of the log
    /// about what they hold after the call.
    fn doubt(&mut self, t: usize) {
        let Some(Frame::External(mut frame)) = self.threads[t].frames.pop() else { return };
        if let Some(call) = &mut frame.call
            && call.assembly.is_none()
            && !call.doubted
        {
            call.doubted = true;
            self.unknown_effect(t, call);
        }
        self.threads[t].frames.push(Frame::External(frame));
    }

    /// Does the log only say that an object has these bytes after the call? It does when nobody
    /// declared what the callee writes: the instrumented code then reports the whole objects that
    /// it passed. Bytes in there that another thread's own instructions write were changed by that
    /// thread, and its log tells of it; the others were changed by the callee.
    fn is_guess(&mut self, t: usize) -> bool {
        let call = self.threads[t].external_call();
        let guessed = call.is_some_and(|call| match &call.assembly {
            // Operands in memory are written for certain.
            Some(assembly) => assembly.clobbers_memory,
            None => ir::effects::effect(call.name).is_none_or(|described| described.objects),
        });
        self.learned.guesses |= guessed;
        guessed
    }

    /// Writes the changed run; a shared cell is written as a whole, from the same bytes.
    fn write_whole_cells(&mut self, t: usize, place: Place, bytes: &[MemoryByte], at: usize) {
        let base = place.address - at as u64;
        let (mut start, mut end) = (place.address, place.address + place.length);
        if let crate::engine::Pass::Symbolic(shared) = &self.pass {
            for index in shared.within(start, place.length) {
                let cell = shared.cells[index];
                start = start.min(cell.address.max(base));
                end = end.max(cell.end().min(base + bytes.len() as u64));
            }
        }
        let range = (start - base) as usize..(end - base) as usize;
        if let Some(bytes) = bytes.get(range) {
            self.write(t, Place::new(start, end - start, None), bytes, Grain::Cell);
        }
    }

    fn sync_begin(
        &mut self,
        t: usize,
        op: u64,
        address: u64,
        second: u64,
        argument: u64,
    ) -> Result<(), Stop> {
        let Some(operation) = SyncOp::from_code(op) else {
            return contradiction(format!("unknown synchronisation call {op}"));
        };
        self.pass_sync(t, SyncPoint::Begin, Some(operation));
        if operation == SyncOp::Panic {
            self.begin_panic(t)?;
        }
        let size = self.foreign_size(t, false).unwrap_or(object_size(operation));
        let name = self.object_name(t, address, Some(size));
        let stack = if self.symbolic() { self.sync_stack(t) } else { Stack::default() };
        let depth = self.threads[t].frames.len();
        let stamp = self.threads[t].last_stamp;
        let pending =
            PendingSync { operation, address, second, argument, depth, stamp, name, stack };
        self.threads[t].pending_sync.push(pending);
        self.note_asked_lock(t, address);
        if operation == SyncOp::QueuePop {
            self.begin_pop(t, address);
        }
        if operation == SyncOp::Once {
            self.expect_not_run(t, (address, stamp), argument);
            self.acquire(t, address, LockMode::Exclusive, WORD_SIZE);
            self.expect_not_run(t, (address, stamp), argument);
            self.begin_once(t, (address, stamp), argument);
        }
        Ok(())
    }

    fn sync_end(
        &mut self,
        t: usize,
        op: u64,
        address: u64,
        (second, result): (u64, u64),
        latest: u64,
    ) -> Result<(), Stop> {
        let Some(operation) = SyncOp::from_code(op) else {
            return contradiction(format!("unknown synchronisation call {op}"));
        };
        let pending = &mut self.threads[t].pending_sync;
        let matching = pending
            .iter()
            .rposition(|begun| begun.operation == operation && begun.address == address);
        let begun = matching.and_then(|at| pending.drain(at..).next());
        let Some(begun) = begun else {
            let detail = format!("{operation:?} ends without a beginning");
            self.gap(t, GapKind::Synchronisation, detail);
            return Ok(());
        };
        if self.ends_in_wait(t, &begun, result) || self.ends_behind_failure(t, operation, latest) {
            let thread = &mut self.threads[t];
            thread.pending_sync.push(begun);
            thread.forget_rest();
            return Err(Stop::EndOfLog);
        }
        self.threads[t].call_time = Some(Interval { earliest: begun.stamp, latest });
        // No instruction of the program gets what the call reads.
        let reads = std::mem::take(&mut self.pending_reads);
        self.sync_effect(t, &begun, second, result);
        self.pending_reads = reads;
        let performed = never_waits(operation) && result == 0;
        if let Some(call) = self.threads[t].external_call().filter(|_| performed) {
            call.performed = true;
        }
        Ok(())
    }

    fn sync_effect(&mut self, t: usize, begun: &PendingSync, second: u64, result: u64) {
        let address = begun.address;
        // Whoever is told that a robust mutex's owner ended with it has it.
        let failed = self.note_refusal(t, begun, result) || (result != 0 && result != OWNER_DEAD);
        let size = object_size(begun.operation);
        match begun.operation {
            SyncOp::MutexLock | SyncOp::SpinLock | SyncOp::RwWriteLock if !failed => {
                self.acquire(t, address, LockMode::Exclusive, size);
            }
            SyncOp::MutexTryLock
            | SyncOp::MutexTimedLock
            | SyncOp::SpinTryLock
            | SyncOp::RwTryWriteLock
            | SyncOp::RwTimedWriteLock
                if !failed =>
            {
                self.acquire(t, address, LockMode::Exclusive, size);
            }
            SyncOp::RwReadLock | SyncOp::RwTryReadLock | SyncOp::RwTimedReadLock if !failed => {
                self.acquire(t, address, LockMode::Shared, size);
            }
            SyncOp::MutexTryLock | SyncOp::SpinTryLock | SyncOp::RwTryWriteLock => {
                self.try_failed(t, address, LockMode::Exclusive, size);
            }
            SyncOp::RwTryReadLock => {
                let mode = self.what_turns_readers_away(t, address);
                self.try_failed(t, address, mode, size);
            }
            SyncOp::MutexUnlock | SyncOp::SpinUnlock | SyncOp::RwUnlock if !failed => {
                self.release(t, address, size);
            }
            SyncOp::CondWait | SyncOp::CondTimedWait => self.waited(t, begun, second, result),
            SyncOp::CondSignal if !failed => {
                let condition = self.sync_object(t, address, ObjectKind::Condition);
                self.sync_event(t, EventKind::Signal { condition }, begun);
            }
            SyncOp::CondBroadcast if !failed => {
                let condition = self.sync_object(t, address, ObjectKind::Condition);
                self.sync_event(t, EventKind::Broadcast { condition }, begun);
            }
            SyncOp::SemInit if !failed => {
                let kind = ObjectKind::Semaphore { initial: begun.argument as u32 };
                self.begin_object(t, address, class_of(kind));
                self.sync_object(t, address, kind);
            }
            SyncOp::SemWait | SyncOp::SemTryWait | SyncOp::SemTimedWait | SyncOp::SemPost => {
                self.semaphore(t, begun, failed);
            }
            SyncOp::BarrierInit if !failed => {
                let kind = ObjectKind::Barrier { count: (begun.argument as u32).max(1) };
                self.begin_object(t, address, class_of(kind));
                self.sync_object(t, address, kind);
            }
            SyncOp::BarrierWait if !failed || barrier_serial(result) => {
                let object = self.sync_object(t, address, ObjectKind::Barrier { count: 1 });
                self.sync_event(t, EventKind::BarrierArrive { object }, begun);
                self.pass_sync(t, SyncPoint::Leave, None);
                self.sync_event(t, EventKind::BarrierLeave { object }, begun);
            }
            SyncOp::FutexWait if result == CHANGED => {
                if let Some(internal) = self.resolve(t, address) {
                    let place = Place::new(internal, WORD_SIZE, None);
                    let bytes = self.read(t, place, Grain::Access);
                    self.assume_bytes(t, &bytes, begun.argument.into(), false);
                }
            }
            SyncOp::FutexWake => self.note_woken(t, begun),
            SyncOp::Once => {
                self.note_once(t, begun, result == RAN, second);
                self.release(t, address, size);
            }
            SyncOp::QueuePush => self.pushed(t, begun),
            SyncOp::QueuePop => self.popped(t, begun, second, result),
            SyncOp::SocketWrite | SyncOp::SocketRead => self.use_socket(t, begun, result),
            // A call that gave an error had no effect.
            _ => {}
        }
    }

    fn sync_event(&mut self, t: usize, kind: EventKind, begun: &PendingSync) -> u32 {
        self.event(t, kind, begun.name.clone())
    }

    fn semaphore(&mut self, t: usize, begun: &PendingSync, failed: bool) {
        let kind = ObjectKind::Semaphore { initial: 0 };
        let object = self.sync_object(t, begun.address, kind);
        let event = match (begun.operation, failed) {
            (SyncOp::SemPost, false) => EventKind::SemaphorePost { object },
            (SyncOp::SemTryWait, true) => EventKind::SemaphoreWaitFailed { object },
            (SyncOp::SemPost, true) | (_, true) => return,
            _ => EventKind::SemaphoreWait { object },
        };
        self.sync_event(t, event, begun);
    }

    /// A condition wait that ended: released, woken or timed out, acquired again.
    fn waited(&mut self, t: usize, begun: &PendingSync, mutex: u64, result: u64) {
        let timed_out = begun.operation == SyncOp::CondTimedWait && result == TIMED_OUT;
        if result == 0 || timed_out {
            let end = if timed_out { WaitEnd::TimedOut } else { WaitEnd::Signalled };
            self.ended_wait(t, begun, mutex, end);
        }
    }

    pub(crate) fn ended_wait(&mut self, t: usize, begun: &PendingSync, mutex: u64, end: WaitEnd) {
        let condition = self.sync_object(t, begun.address, ObjectKind::Condition);
        // A recursive mutex is released as a whole, whatever its count.
        let internal = self.resolve(t, mutex).unwrap_or(mutex);
        let held = self.threads[t].held.iter_mut().find(|held| held.address == internal);
        let count = held.map_or(1, |held| std::mem::replace(&mut held.count, 1));
        let began = self.release(t, mutex, MUTEX_SIZE).map(EventId);
        self.pass_sync(t, SyncPoint::Wake, None);
        if end == WaitEnd::Cancelled {
            self.was_cancelled(t);
        }
        // A thread that waits without having the mutex, which is an error of the program and counted as a
        // gap, releases nothing that its wait could begin with.
        if let Some(began) = began {
            let kind = match end {
                WaitEnd::Signalled => EventKind::Wake { condition, began },
                WaitEnd::TimedOut | WaitEnd::Cancelled => {
                    EventKind::WaitTimedOut { condition, began }
                }
            };
            self.sync_event(t, kind, begun);
        }
        self.pass_sync(t, SyncPoint::Relock, None);
        self.acquire(t, mutex, LockMode::Exclusive, MUTEX_SIZE);
        if let Some(held) = self.threads[t].held.iter_mut().find(|held| held.address == internal) {
            held.count = count;
        }
    }

    /// The log ends inside a call that never waits: other threads may have seen what it does, and it
    /// was certainly going to do it.
    pub fn complete_certain(&mut self, t: usize) {
        let Some(pending) = self.threads[t].pending_sync.last() else { return };
        if never_waits(pending.operation) {
            let begun = pending.clone();
            self.threads[t].pending_sync.pop();
            self.sync_effect(t, &begun, 0, 0);
            if let Some(call) = self.threads[t].external_call() {
                call.performed = true;
            }
        }
    }

    /// For a condition wait that never ended: the condition, and the release that began the wait,
    /// as an index in the thread.
    pub fn begin_wait(&mut self, t: usize, begun: &PendingSync) -> Option<(ObjectId, u32)> {
        if !matches!(begun.operation, SyncOp::CondWait | SyncOp::CondTimedWait) {
            return None;
        }
        let condition = self.sync_object(t, begun.address, ObjectKind::Condition);
        let internal = self.resolve(t, begun.second).unwrap_or(begun.second);
        if let Some(held) = self.threads[t].held.iter_mut().find(|held| held.address == internal) {
            held.count = 1;
        }
        self.release(t, begun.second, MUTEX_SIZE).map(|began| (condition, began))
    }

    /// A thread that had not come back from a barrier when the run failed has arrived there: others that left it
    /// may have needed that one.
    pub fn arrive_at_end(&mut self, t: usize, begun: &PendingSync) {
        if begun.operation == SyncOp::BarrierWait {
            let object = self.sync_object(t, begun.address, ObjectKind::Barrier { count: 1 });
            self.sync_event(t, EventKind::BarrierArrive { object }, begun);
        }
    }

    fn acquire(&mut self, t: usize, address: u64, mode: LockMode, size: u64) {
        let size = self.lock_size(t, size);
        let object = self.sized_object(t, address, ObjectKind::Lock, size);
        let internal = self.resolve(t, address).unwrap_or(address);
        let held = self.threads[t].held.iter_mut().find(|held| held.address == internal);
        if let Some(held) = held {
            held.count += 1;
            return;
        }
        self.note_taken(t, internal);
        let name = self.event_object_name(t, address, object, size);
        let acquired = self.event(t, EventKind::Lock { object, mode }, name);
        self.note_contained_sync(t, acquired, internal);
        self.note_words(t, acquired, internal, size);
        self.threads[t].held.push(HeldLock { address: internal, mode, count: 1, acquired });
    }

    /// Gives the event, when there is one.
    pub(crate) fn release(&mut self, t: usize, address: u64, size: u64) -> Option<u32> {
        let internal = self.resolve(t, address).unwrap_or(address);
        let at = self.threads[t].held.iter().rposition(|held| held.address == internal);
        let Some(at) = at else {
            self.note_given_back(internal);
            self.gap(t, GapKind::NotHeld, format!("{address:#x}"));
            return None;
        };
        let size = self.lock_size(t, size);
        let held = &mut self.threads[t].held[at];
        held.count -= 1;
        if held.count > 0 {
            return None;
        }
        let mode = held.mode;
        self.threads[t].held.remove(at);
        let object = self.sized_object(t, address, ObjectKind::Lock, size);
        let name = self.event_object_name(t, address, object, size);
        let kind = EventKind::Unlock { object, mode, synthetic: false };
        let released = self.event(t, kind, name);
        self.note_contained_sync(t, released, internal);
        Some(released)
    }

    /// Releases what the thread still holds at its end ([S] 4.2).
    pub fn release_all(&mut self, t: usize) {
        while let Some(held) = self.threads[t].held.pop() {
            let class = (held.address, LOCK);
            let Some(&object) = self.sync_objects.get(&class) else { continue };
            let kind = EventKind::Unlock { object, mode: held.mode, synthetic: true };
            self.event(t, kind, None);
        }
    }

    /// The model's object at an address.
    pub(crate) fn sync_object(&mut self, t: usize, address: u64, kind: ObjectKind) -> ObjectId {
        let size = match kind {
            ObjectKind::Condition => CONDITION_SIZE,
            ObjectKind::Semaphore { .. } | ObjectKind::Barrier { .. } => SEMAPHORE_SIZE,
            ObjectKind::Lock | ObjectKind::Heap | ObjectKind::Local => MUTEX_SIZE,
        };
        let size = self.foreign_size(t, kind == ObjectKind::Lock).unwrap_or(size);
        self.sized_object(t, address, kind, size)
    }

    /// The size of the lock, or of another object, that the call in progress is about, where that is one of a
    /// library's own.
    fn foreign_size(&mut self, t: usize, lock: bool) -> Option<u64> {
        self.threads[t].external_call().and_then(|call| foreign::size(call.name, lock))
    }

    /// The size of the lock that the call in progress is about; `size` for one of pthreads.
    pub(crate) fn lock_size(&mut self, t: usize, size: u64) -> u64 {
        self.foreign_size(t, true).unwrap_or(size)
    }

    /// The model's object of so many bytes at an address; the size tells its name from those of
    /// the objects in and around it.
    pub(crate) fn sized_object(
        &mut self,
        t: usize,
        address: u64,
        kind: ObjectKind,
        size: u64,
    ) -> ObjectId {
        if !self.symbolic() {
            return ObjectId(0);
        }
        let class = class_of(kind);
        let internal = self.resolve(t, address).unwrap_or(address);
        if let Some(&object) = self.sync_objects.get(&(internal, class)) {
            let name = self.object_name(t, address, Some(size));
            if let Some(name) = name
                && let Some(object) = self.out.objects.get_mut(object.index())
                && says_more(&name, &object.name)
            {
                object.name = name;
            }
            return object;
        }
        let name = self.object_name(t, address, Some(size));
        let name = name.unwrap_or_else(|| format!("{address:#x}"));
        let object = self.out.object(kind, name);
        self.note_contained_lock(object, internal);
        self.sync_objects.insert((internal, class), object);
        object
    }

    /// The call that a stream ended in.
    pub fn blocked_call(&self, t: usize) -> Option<BlockedCall> {
        if let Some(pending) = self.threads[t].pending_sync.last() {
            return Some(pending.blocked());
        }
        let child = self.threads.get(self.threads[t].joining?)?;
        Some(BlockedCall {
            operation: "Join".to_owned(),
            address: 0,
            object: child.log.name.clone(),
            stack: Vec::new(),
        })
    }
}

/// Calls that come to their end whatever other threads do, and give 0: their names, and what they
/// are logged as.
const NEVER_WAIT: [(&str, SyncOp); 9] = [
    ("pthread_mutex_unlock", SyncOp::MutexUnlock),
    ("pthread_rwlock_unlock", SyncOp::RwUnlock),
    ("pthread_spin_unlock", SyncOp::SpinUnlock),
    ("pthread_cond_signal", SyncOp::CondSignal),
    ("pthread_cond_broadcast", SyncOp::CondBroadcast),
    ("sem_post", SyncOp::SemPost),
    ("mtx_unlock", SyncOp::MutexUnlock),
    ("cnd_signal", SyncOp::CondSignal),
    ("cnd_broadcast", SyncOp::CondBroadcast),
];

/// Is a call with this effect one of those?
pub(crate) fn never_waits(operation: SyncOp) -> bool {
    operation == SyncOp::QueuePush || NEVER_WAIT.iter().any(|(_, other)| *other == operation)
}

/// Is a call of this function one of those?
pub(crate) fn is_certain(name: &str) -> bool {
    NEVER_WAIT.iter().any(|(other, _)| *other == name)
        || foreign::operation(name).is_some_and(never_waits)
}

/// Objects of one address and different classes are different objects.
fn class_of(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Condition => CONDITION,
        ObjectKind::Semaphore { .. } => SEMAPHORE,
        ObjectKind::Barrier { .. } => BARRIER,
        ObjectKind::Lock | ObjectKind::Heap | ObjectKind::Local => LOCK,
    }
}

fn barrier_serial(result: u64) -> bool {
    result == SERIAL_THREAD || result as u32 == u32::MAX
}

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
