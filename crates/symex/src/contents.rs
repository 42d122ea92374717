//! What stands in files that one thread writes and another one reads.
//!
//! The contents of such a file are a variable: a number for what stands in it. A write makes that a new one, a
//! read finds the one that was last written. What was read is known from the log and does not follow from
//! what was written, so a read needs the contents that it found in the recorded run; where the clock does not
//! tell which these were, it needs nothing. A stream's writes count when it gives them out (it is flushed or
//! closed), its first read counts for all that follow, up to where it reads anew. Files that no two threads use
//! so are no events.
//!
//! The survey notes the calls; behind it is decided which file each of them was about, by where the handle was
//! opened, and what it found. Paths are compared as texts, as in [`crate::files`].

mod calls;

use crate::access::{Grain, Place, STAMP_SLACK};
use crate::clock::VectorClock;
use crate::engine::{Engine, Pass};
use crate::memory::{self, MemoryByte};
use crate::thread::{ExternalCall, Frame};
use crate::value::{self, Scalar, Value};
use calls::{BEHIND_INPUT, Handle, Named, Role, Text};
use model::names::CONTENTS;
use model::{CmpOp, Interval, PathConditionKind};
use std::collections::{BTreeMap, BTreeSet};

/// Internal addresses of the variables.
const FILES: u64 = 0xe300_0000_0000_0000;
/// Bytes of a variable.
const WIDTH: u64 = 4;
/// Whoever makes more such calls is not looked at.
const MOST_CALLS: usize = 1 << 14;
/// `std::ios_base`'s modes.
const APPENDS: u64 = 1;
const READS: u64 = 8;
const WRITES: u64 = 16;
const EMPTIES: u64 = 32;

/// What a call did.
#[derive(Clone, Debug)]
enum Step {
    Open {
        path: Vec<u8>,
        handle: Handle,
        empties: bool,
    },
    Same {
        from: Handle,
        to: Handle,
    },
    Put(Handle),
    Flush(Handle),
    /// Is the file empty then, if that is known?
    Write(Handle, Option<bool>),
    /// Of what is one of these. Did it find the end of the file, if its result tells?
    Read(Vec<Handle>, Option<bool>),
    Rewind(Vec<Handle>),
    Close(Handle),
    /// Is the file empty then, if that is known?
    Replace(Vec<u8>, Option<bool>),
}

/// How a call touches what stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// Does it leave nothing there, if that is known?
    Writes { empties: Option<bool> },
    /// Was there nothing, if that is known?
    Reads { nothing: Option<bool> },
}

impl Touch {
    fn writes(self) -> bool {
        matches!(self, Self::Writes { .. })
    }
}

/// A call, and the time in which it was made.
#[derive(Clone, Debug)]
struct Call {
    step: Step,
    thread: usize,
    /// Which call of the thread it was.
    number: usize,
    earliest: u64,
    latest: u64,
    /// How many time stamps of its thread stand before its end.
    stamps: usize,
    clock: VectorClock,
}

impl Call {
    fn precedes(&self, other: &Self) -> bool {
        match self.thread == other.thread {
            true => self.number < other.number,
            false => self.latest < other.earliest,
        }
    }
}

/// What a call did to a file's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// They are these from then on.
    Writes(u32),
    /// It found these, if that is known.
    Reads(Option<u32>),
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Contents {
    calls: Vec<Call>,
    paths: Vec<Vec<u8>>,
    /// By thread and the call's number: the file, and what it did.
    told: BTreeMap<(usize, usize), (usize, Deed)>,
}

impl Contents {
    /// The variable of a file, by an internal address in it.
    pub fn name(&self, internal: u64) -> Option<String> {
        let number = internal.checked_sub(FILES)? / WIDTH;
        let path = self.paths.get(usize::try_from(number).ok()?)?;
        Some(format!("{CONTENTS}{}", String::from_utf8_lossy(path)))
    }

    fn decide(&mut self) {
        self.sort();
        let mut uses = Uses::default();
        for (index, call) in self.calls.iter().enumerate() {
            uses.take(index, call);
        }
        for (path, touched) in uses.touched {
            let touched: Vec<(&Call, Touch)> =
                touched.iter().map(|&(index, touch)| (&self.calls[index], touch)).collect();
            if !is_shared(&touched) {
                continue;
            }
            let file = self.paths.len();
            self.paths.push(path);
            for (call, deed) in deeds(&touched) {
                self.told.insert((call.thread, call.number), (file, deed));
            }
        }
    }

    /// By time, where each thread's calls keep their order.
    fn sort(&mut self) {
        self.calls.sort_by_key(|call| (call.thread, call.number));
        let mut before = (usize::MAX, 0);
        for call in &mut self.calls {
            let least = if before.0 == call.thread { before.1 } else { 0 };
            call.latest = call.latest.max(least);
            before = (call.thread, call.latest);
        }
        self.calls.sort_by_key(|call| call.latest);
    }
}

/// Does one thread write what another one reads?
fn is_shared(touched: &[(&Call, Touch)]) -> bool {
    let readers: BTreeSet<_> =
        touched.iter().filter(|(_, touch)| !touch.writes()).map(|(call, _)| call.thread).collect();
    let mut writers =
        touched.iter().filter(|(_, touch)| touch.writes()).map(|(call, _)| call.thread);
    writers.any(|writer| readers.iter().any(|reader| *reader != writer))
}

/// Which contents each write left, and each read found.
fn deeds<'c>(touched: &[(&'c Call, Touch)]) -> Vec<(&'c Call, Deed)> {
    let writes: Vec<(&Call, Option<bool>)> = touched
        .iter()
        .filter_map(|&(call, touch)| match touch {
            Touch::Writes { empties } => Some((call, empties)),
            Touch::Reads { .. } => None,
        })
        .collect();
    let mut count = 0;
    let deed = |&(call, touch): &(&'c Call, Touch)| match touch {
        Touch::Writes { .. } => {
            count += 1;
            (call, Deed::Writes(count))
        }
        Touch::Reads { nothing } => (call, Deed::Reads(found(call, nothing, &writes))),
    };
    touched.iter().map(deed).collect()
}

/// Which of the writes it was, counted from 1, whose contents a read found; 0 for what was there at first. None
/// where the clock leaves several, and that there was something or nothing does not tell either.
fn found(read: &Call, nothing: Option<bool>, writes: &[(&Call, Option<bool>)]) -> Option<u32> {
    // What was over when another write began that came before the read, too, is gone by then.
    let mut begun = 0;
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (write, _) in writes.iter().filter(|(write, _)| write.precedes(read)) {
        begun = begun.max(write.earliest);
        let last = last.entry(write.thread).or_default();
        *last = write.number.max(*last);
    }
    let is_over = |write: &Call| {
        let again = last.get(&write.thread).is_some_and(|last| write.number < *last);
        again || write.latest < begun || read.precedes(write)
    };
    let at_first = last.is_empty();
    let left = (1..).zip(writes).filter(|(_, (write, empties))| {
        !is_over(write) && nothing.zip(*empties).is_none_or(|(nothing, empty)| nothing == empty)
    });
    let mut possible = at_first.then_some(0).into_iter().chain(left.map(|(number, _)| number));
    possible.next().filter(|_| possible.next().is_none())
}

/// Does the runtime read the clock before and behind what a function does?
pub(crate) fn is_timed(name: &str) -> bool {
    calls::role(name).is_some()
}

/// A write leaves something.
const WRITTEN: Touch = Touch::Writes { empties: Some(false) };

/// A file that is open.
#[derive(Clone, Debug)]
struct Open {
    path: Vec<u8>,
    /// Something was written that nobody else can read yet.
    kept: bool,
    /// What is read was read already.
    filled: bool,
    /// Is it still at the file's beginning, for all that is known?
    fresh: bool,
}

/// Which calls touch which files.
#[derive(Default)]
struct Uses {
    /// By handle: who opened it, the last one at the end.
    open: BTreeMap<Handle, Vec<(usize, Open)>>,
    /// By path: the calls, by their index, and what they do.
    touched: BTreeMap<Vec<u8>, Vec<(usize, Touch)>>,
}

impl Uses {
    fn take(&mut self, index: usize, call: &Call) {
        let thread = call.thread;
        match &call.step {
            Step::Open { path, handle, empties } => {
                self.enter(*handle, thread, path.clone(), true);
                if *empties {
                    let empties = Some(true);
                    self.touch(path.clone(), index, Touch::Writes { empties });
                }
            }
            Step::Same { from, to } => {
                if let Some(path) = self.find(*from, thread).map(|open| open.path.clone()) {
                    self.enter(*to, thread, path, false);
                }
            }
            Step::Put(handle) => {
                if let Some(open) = self.find(*handle, thread) {
                    (open.kept, open.fresh) = (true, false);
                }
            }
            Step::Flush(handle) | Step::Close(handle) => {
                let kept = |open: &mut Open| std::mem::take(&mut open.kept);
                let open = self.find(*handle, thread);
                if let Some(path) = open.and_then(|open| kept(open).then(|| open.path.clone())) {
                    self.touch(path, index, WRITTEN);
                }
                if matches!(call.step, Step::Close(_)) {
                    self.leave(*handle, thread);
                }
            }
            Step::Write(handle, empties) => {
                if let Some(open) = self.find(*handle, thread) {
                    (open.kept, open.fresh) = (false, false);
                    let path = open.path.clone();
                    self.touch(path, index, Touch::Writes { empties: *empties });
                }
            }
            Step::Read(handles, nothing) => {
                let Some(handle) = self.known(handles) else { return };
                let is_descriptor = matches!(handle, Handle::Descriptor(_));
                if let Some(open) = self.find(handle, thread) {
                    let again = std::mem::replace(&mut open.filled, true);
                    // Behind what was read there may be nothing more.
                    let fresh = std::mem::replace(&mut open.fresh, false);
                    if is_descriptor || !again {
                        let (path, nothing) = (open.path.clone(), nothing.filter(|_| fresh));
                        self.touch(path, index, Touch::Reads { nothing });
                    }
                }
            }
            Step::Rewind(handles) => {
                if let Some(open) = self.known(handles).and_then(|it| self.find(it, thread)) {
                    open.filled = false;
                }
            }
            Step::Replace(path, empties) => {
                self.touch(path.clone(), index, Touch::Writes { empties: *empties });
            }
        }
    }

    fn touch(&mut self, path: Vec<u8>, index: usize, touch: Touch) {
        self.touched.entry(path).or_default().push((index, touch));
    }

    fn enter(&mut self, handle: Handle, thread: usize, path: Vec<u8>, fresh: bool) {
        let open = self.open.entry(handle).or_default();
        open.retain(|(own, _)| *own != thread);
        open.push((thread, Open { path, kept: false, filled: false, fresh }));
    }

    /// What a thread's own handle is, or else one that it may have from another thread.
    fn find(&mut self, handle: Handle, thread: usize) -> Option<&mut Open> {
        let open = self.open.get_mut(&handle)?;
        let at = open.iter().rposition(|(own, _)| *own == thread).or(open.len().checked_sub(1))?;
        open.get_mut(at).map(|(_, open)| open)
    }

    fn leave(&mut self, handle: Handle, thread: usize) {
        if let Some(open) = self.open.get_mut(&handle)
            && let Some(at) =
                open.iter().rposition(|(own, _)| *own == thread).or(open.len().checked_sub(1))
        {
            open.remove(at);
        }
    }

    fn known(&self, handles: &[Handle]) -> Option<Handle> {
        let is_open = |handle: &Handle| self.open.get(handle).is_some_and(|open| !open.is_empty());
        handles.iter().copied().find(is_open)
    }
}

impl<'r> Engine<'r> {
    /// A call of uninstrumented code has returned `result`: what it did with what stands in files.
    pub fn use_contents(&mut self, t: usize, call: &ExternalCall<'r>, result: &Value) {
        if call.assembly.is_some() {
            return;
        }
        let Some(role) = calls::role(call.name) else { return };
        let number = self.threads[t].content_calls;
        self.threads[t].content_calls += 1;
        if self.symbolic() {
            self.touch_contents(t, number);
            return;
        }
        if self.learned.contents.calls.len() >= MOST_CALLS {
            return;
        }
        if let Some(step) = self.content_step(t, call, role, Some(result)) {
            let time = self.happened(t);
            self.note_content_call(t, number, step, time);
        }
    }

    fn note_content_call(&mut self, t: usize, number: usize, step: Step, time: Interval) {
        let clock = self.threads[t].clock.clone();
        let (earliest, latest) = (time.earliest, time.latest);
        let stamps = self.threads[t].stamps;
        let call = Call { step, thread: t, number, earliest, latest, stamps, clock };
        self.learned.contents.calls.push(call);
    }

    /// A log ends in a call: what that writes may stand in its file.
    pub fn end_in_file(&mut self, t: usize) {
        let is_call = |frame: &Frame<'_>| matches!(frame, Frame::External(_));
        let Some(Frame::External(frame)) = self.threads[t].frames.pop_if(|frame| is_call(frame))
        else {
            return;
        };
        if let Some(call) = frame.call.as_ref().filter(|call| call.assembly.is_none())
            && let Some(earliest) = call.reading.filter(|_| !call.walked)
            && let Some(role) = calls::role(call.name)
            && role.writes()
        {
            let latest = if call.at_work { u64::MAX } else { self.threads[t].last_stamp };
            self.leave_in_file(t, call, role, Interval { earliest, latest });
        }
        self.threads[t].frames.push(Frame::External(frame));
    }

    fn leave_in_file(&mut self, t: usize, call: &ExternalCall<'r>, role: Role, time: Interval) {
        let number = self.threads[t].content_calls;
        self.threads[t].content_calls += 1;
        if self.symbolic() {
            self.touch_contents(t, number);
        } else if self.learned.contents.calls.len() < MOST_CALLS
            && let Some(step) = self.content_step(t, call, role, None)
        {
            self.note_content_call(t, number, step, time);
        }
    }

    /// Behind a survey: decides which files count. `complete`: every thread was walked to the end of its log.
    pub fn decide_contents(&mut self, complete: bool) {
        let mut calls = std::mem::take(&mut self.learned.contents.calls);
        if !complete || calls.len() >= MOST_CALLS {
            return;
        }
        // The stamp that comes next was not known when the call came back.
        for call in calls.iter_mut().filter(|call| call.latest == u64::MAX) {
            let done = self.done_by(call.thread, call.stamps);
            call.latest = done.saturating_add(STAMP_SLACK);
        }
        let contents = &mut self.learned.contents;
        contents.calls = calls;
        contents.decide();
        let Pass::Survey(shadow) = &mut self.pass else { return };
        for call in &contents.calls {
            let Some(&(file, deed)) = contents.told.get(&(call.thread, call.number)) else {
                continue;
            };
            let (address, writes) = (address(file), matches!(deed, Deed::Writes(_)));
            shadow.access(call.thread, &call.clock, address, WIDTH, writes);
            if writes {
                shadow.writers.note(call.thread, address, WIDTH);
            }
        }
    }

    fn touch_contents(&mut self, t: usize, number: usize) {
        let Some(&(file, deed)) = self.learned.contents.told.get(&(t, number)) else { return };
        let place = Place::new(address(file), WIDTH, None);
        if self.memory.get(place.address) == MemoryByte::Unknown {
            self.memory.write(place.address, &[MemoryByte::Const(0); WIDTH as usize]);
        }
        match deed {
            Deed::Writes(contents) => {
                self.write(t, place, &contents.to_le_bytes().map(MemoryByte::Const), Grain::Access);
            }
            Deed::Reads(found) => {
                let bytes = self.read(t, place, Grain::Access);
                let Some(found) = found else { return };
                for read in std::mem::take(&mut self.pending_reads) {
                    self.out.set_recorded(read.var, u128::from(found));
                }
                let contents = memory::compose(&mut self.pool, &bytes);
                let found = Scalar::constant(8 * WIDTH as u32, u128::from(found));
                let so = value::cmp(&mut self.pool, CmpOp::Eq, contents, found);
                if let Some(expr) = so.as_expr() {
                    let site = self.site(t);
                    self.add_condition(t, expr, PathConditionKind::Branch, site);
                }
            }
        }
    }

    /// What a call did; without a result, what it may do.
    fn content_step(
        &mut self,
        t: usize,
        call: &ExternalCall<'r>,
        role: Role,
        result: Option<&Value>,
    ) -> Option<Step> {
        let given = result.and_then(Value::scalar).and_then(|scalar| self.in_recording(scalar));
        Some(match role {
            Role::Open => {
                let (named, opened) = self.opened(t, call)?;
                let (path, empties) = (self.path(t, call, named)?, opened.empties());
                if result.is_none() {
                    return empties.then_some(Step::Replace(path, Some(true)));
                }
                Step::Open { path, handle: given_handle(call.name, given?)?, empties }
            }
            Role::OpenStream(file, text) => {
                let handle = self.handle(call, file)?;
                let named = match text {
                    Text::Pointer => crate::files::Named::Text(1),
                    Text::String => crate::files::Named::Path(1),
                };
                let path = self.path(t, call, named)?;
                let mode = self.argument(call, 2)?;
                let writes = mode & WRITES != 0 || call.name.contains("basic_ofstream");
                let empties = mode & EMPTIES != 0 || writes && mode & (READS | APPENDS) == 0;
                Step::Open { path, handle, empties }
            }
            Role::Same(from) => {
                Step::Same { from: self.handle(call, from)?, to: given_handle(call.name, given?)? }
            }
            Role::Put(to) => Step::Put(self.handle(call, to)?),
            Role::Flush(stream) => Step::Flush(self.handle(call, stream)?),
            Role::Write(to) => {
                let failed = given.is_some_and(|given| (given as i64) < 0);
                let written = !call.name.starts_with("ftruncate");
                Step::Write(self.handle(call, to).filter(|_| !failed)?, written.then_some(false))
            }
            Role::Read(from) => {
                let nothing = given.and_then(|given| calls::found_nothing(call.name, given));
                Step::Read(self.handles(call, from)?, nothing)
            }
            Role::Rewind(stream) => Step::Rewind(self.handles(call, stream)?),
            Role::Close(file) => Step::Close(self.handle(call, file)?),
            Role::Replace(index) => {
                let done = result.is_none() || given? as i32 == 0;
                let path = done.then(|| self.path(t, call, crate::files::Named::Text(index)));
                Step::Replace(path??, None)
            }
        })
    }

    fn argument(&mut self, call: &ExternalCall<'r>, index: usize) -> Option<u64> {
        let scalar = call.arguments.get(index).and_then(Value::scalar)?;
        self.in_recording(scalar)
    }

    fn handle(&mut self, call: &ExternalCall<'r>, named: Named) -> Option<Handle> {
        self.handles(call, named)?.first().copied()
    }

    fn handles(&mut self, call: &ExternalCall<'r>, named: Named) -> Option<Vec<Handle>> {
        Some(match named {
            Named::Descriptor(index) => {
                let number = self.argument(call, index)?;
                vec![Handle::Descriptor(u64::from(number as u32))]
            }
            Named::Stream(index) => vec![Handle::Stream(self.argument(call, index)?)],
            Named::Behind(offset) => {
                vec![Handle::Stream(self.argument(call, 0)?.wrapping_add(offset))]
            }
            Named::Input => {
                let stream = self.argument(call, 0)?;
                BEHIND_INPUT.map(|offset| Handle::Stream(stream.wrapping_add(offset))).to_vec()
            }
        })
    }
}

fn address(file: usize) -> u64 {
    FILES + file as u64 * WIDTH
}

/// What a call gave; none where it failed.
fn given_handle(name: &str, given: u64) -> Option<Handle> {
    match name {
        "fopen" | "fopen64" | "fdopen" => (given != 0).then_some(Handle::Stream(given)),
        _ => (given as i32 >= 0).then_some(Handle::Descriptor(u64::from(given as u32))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(thread: usize, number: usize, at: u64, step: Step) -> Call {
        let clock = VectorClock::default();
        Call { step, thread, number, earliest: at, latest: at + 2, stamps: 0, clock }
    }

    fn open(path: &str, stream: u64, empties: bool) -> Step {
        Step::Open { path: path.into(), handle: Handle::Stream(stream), empties }
    }

    fn decided(calls: Vec<Call>) -> Vec<Deed> {
        let mut contents = Contents { calls, ..Contents::default() };
        contents.decide();
        contents.told.into_values().map(|(_, deed)| deed).collect()
    }

    #[test]
    fn a_stream_writes_when_it_is_closed_and_reads_once() {
        let stream = Handle::Stream(7);
        let calls = vec![
            call(1, 0, 10, open("count", 7, true)),
            call(1, 1, 20, Step::Put(stream)),
            call(1, 2, 30, Step::Put(stream)),
            call(1, 3, 40, Step::Close(stream)),
            call(2, 0, 50, open("count", 7, false)),
            call(2, 1, 60, Step::Read(vec![stream], None)),
            call(2, 2, 70, Step::Read(vec![stream], None)),
        ];
        assert_eq!(decided(calls), [Deed::Writes(1), Deed::Writes(2), Deed::Reads(Some(2))]);
    }

    #[test]
    fn what_a_read_found_is_only_told_where_the_clock_tells() {
        let file = Handle::Descriptor(3);
        let open = |thread, at| {
            let step = Step::Open { path: b"log".to_vec(), handle: file, empties: false };
            call(thread, 0, at, step)
        };
        let calls = |read: u64| {
            vec![
                open(1, 1),
                open(2, 1),
                call(1, 1, 10, Step::Write(file, Some(false))),
                call(2, 1, read, Step::Read(vec![file], None)),
            ]
        };
        assert_eq!(decided(calls(20)), [Deed::Writes(1), Deed::Reads(Some(1))]);
        assert_eq!(decided(calls(5)), [Deed::Writes(1), Deed::Reads(Some(0))]);
        assert_eq!(decided(calls(11)), [Deed::Writes(1), Deed::Reads(None)]);
    }

    /// A writer that the run ended in, or that is at work while the file is read.
    #[test]
    fn that_a_read_found_nothing_tells_what_the_clock_leaves_open() {
        let stream = Handle::Stream(7);
        let found = |nothing| {
            let mut open_late = call(2, 0, 40, open("count", 8, true));
            open_late.latest = u64::MAX;
            let calls = vec![
                call(1, 0, 10, open("count", 7, false)),
                call(1, 1, 20, Step::Put(stream)),
                call(1, 2, 30, Step::Close(stream)),
                open_late,
                call(3, 0, 50, open("count", 9, false)),
                call(3, 1, 60, Step::Read(vec![Handle::Stream(9)], nothing)),
            ];
            decided(calls).pop()
        };
        assert_eq!(found(Some(true)), Some(Deed::Reads(Some(2))));
        assert_eq!(found(Some(false)), Some(Deed::Reads(Some(1))));
        assert_eq!(found(None), Some(Deed::Reads(None)));
    }

    #[test]
    fn what_one_thread_has_or_nobody_reads_does_not_count() {
        let file = Handle::Descriptor(3);
        let path = |thread, step| call(thread, 0, 1, step);
        let open = Step::Open { path: b"log".to_vec(), handle: file, empties: false };
        let own = vec![
            path(1, open.clone()),
            call(1, 1, 5, Step::Write(file, Some(false))),
            call(1, 2, 10, Step::Read(vec![file], None)),
        ];
        assert_eq!(decided(own), []);
        let written = vec![
            path(1, open),
            call(1, 1, 5, Step::Write(file, Some(false))),
            call(2, 0, 10, Step::Write(file, Some(false))),
        ];
        assert_eq!(decided(written), []);
    }
}
