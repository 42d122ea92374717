//! Pipes, socket pairs, connections and event counters: a byte can be read when it has been written. And signals
//! that are waited for: one can be taken when it has been sent.
//!
//! The survey notes who wrote how much to which descriptor, and who read; behind it a plan is made of what
//! each call waits for and gives, as units of semaphores, and the symbolic pass makes events of that. No
//! schedule with the same results is excluded:
//!
//! * Where one thread writes and one reads, a read that ends with the k-th byte needs the write of the k-th
//!   byte. Otherwise a write gives one unit, and a read of n bytes takes as many as the largest write would
//!   need to fill it: so many writes there were at least. Where one thread reads, all that it has read so far needs as
//!   many as would the largest writes of all.
//! * Reads that nobody sees do no harm, writes would. So a channel counts only while all writes are seen: its
//!   descriptors are known from one creation, no other call gave their numbers, and nobody duplicated the
//!   writing end, passed it on, or made a process that has it, too.
//! * That a wait ended because the thread was cancelled needs the `pthread_cancel`.
//! * Of a signal, the k-th wait that takes it, by `sigwait` or a descriptor of `signalfd`, needs k that were sent:
//!   several may have become one. Signals count only while the program sends them to itself alone; one from
//!   another process is noticed only where there are more waits than the program sent.

mod sockets;

use crate::engine::Engine;
use crate::externals::plain_name;
use crate::sync::file_name;
use crate::thread::{ExternalCall, Frame};
use crate::value::Value;
use ir::effects::effect;
use model::{EventKind, ObjectKind, Site};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A channel with more pairs of writes and reads by several threads is left out: each pair may become a
/// question for the solver.
const MOST_PAIRS: usize = 1 << 12;
/// Where a `struct msghdr` has `msg_controllen`.
const CONTROL_LENGTH: u64 = 40;
/// Descriptors are below.
const MOST: u64 = 1 << 20;
/// Signals are channels with these numbers, which no descriptor has. Those of connections have the highest bit.
const SIGNALS: u64 = 1 << 32;
/// What threads are asked by `pthread_cancel` goes through channels with these numbers and the thread's `pthread_t`.
const CANCELLATIONS: u64 = 1 << 62;
/// The largest signal, and how much of one is read from a descriptor.
const MOST_SIGNALS: u64 = 64;
const SIGNAL_SIZE: usize = 128;
const SIGNALS_AT_ONCE: usize = 64;
/// Calls that give 0 in the process that they make, in which the calling thread goes on alone.
const FORKS: [&str; 4] = ["fork", "_Fork", "daemon", "forkpty"];

/// System calls that make processes or rings: `clone`, `fork`, `vfork`, `io_uring_setup`, `clone3`.
const UNSEEN_WRITERS: [u64; 5] = [56, 57, 58, 425, 435];
/// `O_DIRECT` of `pipe2`: a read takes one write.
const PACKETS: u64 = 0o40000;
/// `EFD_SEMAPHORE`: a write may serve several reads.
const SERVES_SEVERAL: u64 = 1;
const UNIX: u64 = 1;
const SOCKET_KIND: u64 = 0xff;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
const PACKET: u64 = 5;
/// `MSG_DONTWAIT`, `MSG_WAITALL` and `MSG_NOSIGNAL`: flags that leave a read what it is.
const PLAIN_FLAGS: u64 = 0x40 | 0x100 | 0x4000;
/// `F_DUPFD` and `F_DUPFD_CLOEXEC`.
const DUPLICATES: [u64; 2] = [0, 1030];

/// A channel in one direction.
#[derive(Clone)]
struct Channel {
    name: String,
    /// Reads take bytes, however they were written; otherwise each read takes something of a write of
    /// its own.
    bytes: bool,
    /// Reads that need no write.
    initial: u32,
}

/// The channels that a descriptor reads from and writes to.
#[derive(Clone, Copy, Default)]
struct End {
    reads: Option<usize>,
    writes: Option<usize>,
}

/// A call that moved something.
#[derive(Clone)]
struct Use {
    thread: usize,
    /// Its number among those of its thread.
    ordinal: u64,
    descriptor: u64,
    writes: bool,
    size: u64,
    /// It is a signal if it was read from this one, and that is such a descriptor.
    through: Option<u64>,
}

/// What a call does to a semaphore that stands for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    channel: usize,
    /// The semaphore's number among the channel's.
    number: usize,
    posts: bool,
    units: usize,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Channels {
    channels: Vec<Channel>,
    /// What each descriptor was made to be, once or more often.
    ends: BTreeMap<u64, Vec<End>>,
    uses: Vec<Use>,
    /// Numbers of descriptors that something else had, too, or whose writes may not all be seen.
    doubtful: BTreeSet<u64>,
    /// All of them are.
    unknown: bool,
    /// Signals that were sent or waited for, with their channels.
    signals: BTreeMap<u64, usize>,
    /// Descriptors that signals are read from.
    signal_descriptors: BTreeSet<u64>,
    /// The process's own numbers, as it asked for them, and those that it sent signals to.
    processes: BTreeSet<u64>,
    targets: BTreeSet<u64>,
    /// Thread and ordinal of a call to its steps.
    plan: FxHashMap<(usize, u64), Vec<Step>>,
}

impl Channels {
    fn add(&mut self, name: &str, bytes: bool, initial: u32) -> usize {
        self.channels.push(Channel { name: name.to_owned(), bytes, initial });
        self.channels.len() - 1
    }

    fn made(&mut self, descriptor: u64, end: End) {
        self.ends.entry(descriptor).or_default().push(end);
    }

    /// Decides what calls wait for and give. `complete`: every thread was walked to the end of its log.
    pub fn decide(&mut self, complete: bool) {
        if self.unknown || !complete {
            return;
        }
        let abroad = !self.targets.is_subset(&self.processes);
        let mut moved: FxHashMap<(u64, bool), Vec<&Use>> = FxHashMap::default();
        for used in &self.uses {
            if used.through.is_none_or(|one| self.signal_descriptors.contains(&one)) {
                moved.entry((used.descriptor, used.writes)).or_default().push(used);
            }
        }
        let signals: BTreeSet<usize> = self.signals.values().copied().collect();
        let (writers, readers) = (self.descriptors(true), self.descriptors(false));
        let mut planned = Vec::new();
        for channel in (0..self.channels.len()).filter(|one| !(abroad && signals.contains(one))) {
            let uses = |descriptors: &FxHashMap<usize, u64>, writes| {
                let descriptor = *descriptors.get(&channel)?;
                Some(moved.get(&(descriptor, writes)).map_or(&[][..], Vec::as_slice))
            };
            if let (Some(writes), Some(reads)) = (uses(&writers, true), uses(&readers, false)) {
                planned.extend(self.plan_channel(channel, writes, reads));
            }
        }
        for (call, step) in planned {
            self.plan.entry(call).or_default().push(step);
        }
    }

    /// Makes the channel of a signal, which stands among the descriptors.
    fn signal(&mut self, signal: u64) {
        if !self.signals.contains_key(&signal) {
            let channel = self.add(&format!("signal {signal}"), false, 0);
            self.signals.insert(signal, channel);
            self.made(SIGNALS | signal, End { reads: Some(channel), writes: Some(channel) });
        }
    }

    /// The descriptors through which channels are written or read, without those that may be another's.
    fn descriptors(&self, writes: bool) -> FxHashMap<usize, u64> {
        let mut first = FxHashMap::default();
        for (&descriptor, ends) in &self.ends {
            let sure = ends.len() == 1 && !self.doubtful.contains(&descriptor);
            for channel in ends.iter().filter_map(|end| if writes { end.writes } else { end.reads })
            {
                first.entry(channel).or_insert((descriptor, sure));
            }
        }
        let sure = first.into_iter().filter(|(_, (_, sure))| *sure);
        sure.map(|(channel, (descriptor, _))| (channel, descriptor)).collect()
    }

    fn plan_channel(&self, channel: usize, writes: &[&Use], reads: &[&Use]) -> Planned {
        let threads = |uses: &[&Use]| uses.iter().map(|one| one.thread).collect::<BTreeSet<_>>();
        let (writers, readers) = (threads(writes), threads(reads));
        let sum = |uses: &[&Use]| uses.iter().fold(0u64, |sum, one| sum.saturating_add(one.size));
        let Some(Channel { bytes, initial, .. }) = self.channels.get(channel) else {
            return Planned::new();
        };
        let (bytes, initial) = (*bytes, *initial as usize);
        // What was read was written, all of it seen: otherwise nothing is certain.
        let covered = match bytes {
            true => sum(reads) <= sum(writes),
            false => reads.len() <= writes.len() + initial,
        };
        let alone = writers == readers && writers.len() == 1;
        if !covered || alone || reads.is_empty() {
            Planned::new()
        } else if writers.len() == 1 && readers.len() == 1 {
            in_order(channel, (writes, reads), bytes, initial)
        } else if writes.len().saturating_mul(reads.len()) <= MOST_PAIRS {
            in_any_order(channel, (writes, reads), bytes, readers.len() == 1)
        } else {
            Planned::new()
        }
    }
}

type Planned = Vec<((usize, u64), Step)>;

fn call(used: &Use) -> (usize, u64) {
    (used.thread, used.ordinal)
}

/// One thread writes and one reads: which write each read needs.
fn in_order(
    channel: usize,
    (writes, reads): (&[&Use], &[&Use]),
    bytes: bool,
    initial: usize,
) -> Planned {
    let mut planned = Vec::new();
    let (mut written, mut next) = (0u64, 0);
    let mut wanted = 0u64;
    for (index, read) in reads.iter().enumerate() {
        wanted = wanted.saturating_add(read.size);
        let before = next;
        while let Some(write) = writes.get(next) {
            let enough = match bytes {
                true => written >= wanted,
                false => next + initial > index,
            };
            if enough {
                break;
            }
            written = written.saturating_add(write.size);
            next += 1;
        }
        if next > before {
            let step = |posts| Step { channel, number: next, posts, units: 1 };
            planned.push((call(writes[next - 1]), step(true)));
            planned.push((call(read), step(false)));
        }
    }
    planned
}

/// Several threads write or read: how many writes there were at least.
fn in_any_order(
    channel: usize,
    (writes, reads): (&[&Use], &[&Use]),
    bytes: bool,
    one_reader: bool,
) -> Planned {
    let mut sizes: Vec<u64> = writes.iter().map(|write| write.size.max(1)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let largest = sizes.first().copied().unwrap_or(1);
    // All that the one reader has read so far, what so many of the largest writes give, and how many these are.
    let (mut read_so_far, mut given, mut needed) = (0u64, 0u64, 0usize);
    let mut units = |read: &&Use| match (bytes, one_reader) {
        (false, _) => 1,
        (true, false) => (read.size / largest) as usize,
        (true, true) => {
            let before = needed;
            read_so_far = read_so_far.saturating_add(read.size);
            while given < read_so_far && needed < sizes.len() {
                given = given.saturating_add(sizes[needed]);
                needed += 1;
            }
            needed - before
        }
    };
    let step = |posts, units| Step { channel, number: 0, posts, units };
    let given = writes.iter().map(|write| (call(write), step(true, 1)));
    let taken: Planned = reads.iter().map(|read| (call(read), step(false, units(read)))).collect();
    given.chain(taken).filter(|(_, step)| step.units > 0).collect()
}

/// What a call of a function does with descriptors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Writes,
    /// The descriptors among its arguments may be written to elsewhere, or become others.
    Doubt,
    /// All of them.
    DoubtAll,
    /// Gives a descriptor.
    Gives,
    None,
}

fn effect_of(name: &str) -> Effect {
    match name {
        "read" | "readv" | "recv" | "recvfrom" | "eventfd_read" => Effect::Reads,
        "write" | "writev" | "send" | "sendto" | "eventfd_write" => Effect::Writes,
        "dup" | "dup2" | "dup3" | "fdopen" | "dprintf" | "vdprintf" | "sendfile" | "sendfile64"
        | "splice" | "tee" | "vmsplice" | "copy_file_range" | "syscall" | "close_range" => {
            Effect::Doubt
        }
        // They pass descriptors on to other processes, or make such as have them, too.
        "sendmsg" | "sendmmsg" | "fork" | "vfork" | "_Fork" | "clone" | "posix_spawn"
        | "posix_spawnp" | "system" | "popen" | "daemon" | "forkpty" | "wordexp" => {
            Effect::DoubtAll
        }
        "open" | "open64" | "openat" | "openat64" | "creat" | "creat64" | "socket" | "accept"
        | "accept4" | "epoll_create" | "epoll_create1" | "timerfd_create" | "signalfd"
        | "inotify_init" | "inotify_init1" | "memfd_create" | "mkstemp" | "mkstemp64"
        | "mkostemp" | "mkostemp64" | "shm_open" | "posix_openpt" | "fileno"
        | "fileno_unlocked" | "dirfd" | "pidfd_open" | "userfaultfd" | "fanotify_init" => {
            Effect::Gives
        }
        name if ["aio_", "lio_", "io_uring_"].iter().any(|p| name.starts_with(p)) => {
            Effect::DoubtAll
        }
        _ => Effect::None,
    }
}

impl<'r> Engine<'r> {
    /// A call of uninstrumented code has returned: what it did with channels.
    pub fn use_channels(&mut self, t: usize, call: &ExternalCall<'r>, result: &Value) {
        if call.assembly.is_some() {
            return;
        }
        let result = result.scalar().and_then(|scalar| self.in_recording(scalar));
        let name = plain_name(call.name);
        let number = |engine: &mut Self, index: usize| {
            let scalar = call.arguments.get(index).and_then(Value::scalar)?;
            engine.in_recording(scalar)
        };
        let given = result.filter(|&result| (result as i64) >= 0);
        self.use_signals(t, call, result);
        let effect_here = self.effect_of_call(t, call);
        match (effect_here, given) {
            (Effect::Reads | Effect::Writes, Some(moved)) => {
                let flags = match name {
                    "recv" | "recvfrom" => number(self, 3),
                    _ => Some(0),
                };
                let plain = flags.is_some_and(|flags| flags & !PLAIN_FLAGS == 0);
                let size = if name.starts_with("eventfd") { 1 } else { moved };
                let writes = effect_here == Effect::Writes;
                if let Some(descriptor) = number(self, 0).filter(|_| size > 0 && plain) {
                    self.move_through(t, descriptor, (writes, size), None);
                }
            }
            (Effect::Gives, Some(descriptor)) => self.doubt_descriptor(descriptor),
            (Effect::DoubtAll, _) => {
                self.learned.channels.unknown |= !self.symbolic();
                if self.recording.forked && FORKS.contains(&name) && given == Some(0) {
                    self.learned.kept_by_fork = vec![t];
                }
            }
            (Effect::Doubt, _) => {
                let made = number(self, 0).filter(|_| name == "syscall");
                if made.is_some_and(|made| UNSEEN_WRITERS.contains(&made)) && !self.symbolic() {
                    self.learned.channels.unknown = true;
                }
                self.doubt_arguments(call);
            }
            _ => match name {
                "fcntl" | "fcntl64" => {
                    let command = number(self, 1);
                    let harmless = command.is_some_and(|command| !DUPLICATES.contains(&command));
                    let given = given.filter(|_| !harmless);
                    given.into_iter().for_each(|given| self.doubt_descriptor(given));
                    if !harmless {
                        self.doubt_arguments(call);
                    }
                }
                "pipe" | "pipe2" | "socketpair" | "eventfd" if !self.symbolic() => {
                    let arguments = [0, 1].map(|index| number(self, index).unwrap_or(u64::MAX));
                    self.make_channel(t, name, arguments, given, call);
                }
                name if effect(name).is_none() && effect(call.name).is_none() => {
                    self.doubt_arguments(call);
                }
                _ => {}
            },
        }
    }

    /// What a call did with signals.
    fn use_signals(&mut self, t: usize, call: &ExternalCall<'r>, result: Option<u64>) {
        let number = |engine: &mut Self, index: usize| {
            let scalar = call.arguments.get(index).and_then(Value::scalar)?;
            engine.in_recording(scalar)
        };
        let done = result.is_some_and(|result| result as u32 == 0);
        let words = call.written.as_ref().map(|(_, bytes)| bytes.as_ref());
        let word = |at: usize| {
            let bytes = words?.get(at..at + 4)?.try_into().ok()?;
            Some(u64::from(u32::from_le_bytes(bytes)))
        };
        let mut sent = None;
        let mut taken = Vec::new();
        let mut through = None;
        match plain_name(call.name) {
            "getpid" if !self.symbolic() => self.learned.channels.processes.extend(result),
            "kill" | "sigqueue" if done => {
                sent = number(self, 1);
                let target = number(self, 0).unwrap_or(u64::MAX);
                if !self.symbolic() && sent != Some(0) {
                    self.learned.channels.targets.insert(target);
                }
            }
            "pthread_kill" | "pthread_sigqueue" if done => sent = number(self, 1),
            "raise" | "gsignal" if done => sent = number(self, 0),
            "pthread_cancel" if done => {
                if let Some(handle) = number(self, 0) {
                    self.move_through(t, CANCELLATIONS | handle, (true, 1), None);
                }
            }
            "signalfd" if !self.symbolic() => {
                let made = result.filter(|made| *made < MOST);
                self.learned.channels.signal_descriptors.extend(made);
            }
            "sigwait" if done => taken.extend(word(0)),
            "sigwaitinfo" | "sigtimedwait" => taken.extend(result),
            "read" => {
                // Which descriptors are such is known when all threads have been walked.
                let size = result.map_or(0, |result| result as usize);
                if size.is_multiple_of(SIGNAL_SIZE) && size <= SIGNALS_AT_ONCE * SIGNAL_SIZE {
                    through = number(self, 0);
                    let signals = 0..size / SIGNAL_SIZE;
                    taken.extend(signals.map_while(|index| word(index * SIGNAL_SIZE)));
                }
            }
            _ => {}
        }
        let moved = sent.into_iter().map(|one| (one, true));
        for (signal, writes) in moved.chain(taken.into_iter().map(|one| (one, false))) {
            if (1..=MOST_SIGNALS).contains(&signal) {
                if !self.symbolic() {
                    self.learned.channels.signal(signal);
                }
                let descriptor = SIGNALS | signal;
                self.move_through(t, descriptor, (writes, 1), through.filter(|_| !writes));
            }
        }
    }

    /// A thread's wait was ended because somebody had cancelled the thread.
    pub fn was_cancelled(&mut self, t: usize) {
        let Some(&handle) = self.learned.thread_pointers.get(&t) else { return };
        let descriptor = CANCELLATIONS | handle;
        if !self.symbolic() && !self.learned.channels.ends.contains_key(&descriptor) {
            let name = format!("cancellation of {}", self.threads[t].log.name);
            let channel = self.learned.channels.add(&name, false, 0);
            self.learned
                .channels
                .made(descriptor, End { reads: Some(channel), writes: Some(channel) });
        }
        self.move_through(t, descriptor, (false, 1), None);
    }

    /// A message that passes no descriptor on is bytes like others. Of one that does the survey has
    /// said that no channel counts, and so that all messages are as numbered as writes are later.
    fn effect_of_call(&mut self, t: usize, call: &ExternalCall<'r>) -> Effect {
        let name = plain_name(call.name);
        let message = call.arguments.get(1).and_then(Value::scalar).filter(|_| name == "sendmsg");
        let message = message.and_then(|scalar| self.in_recording(scalar));
        let control = message.and_then(|at| self.word(t, at.checked_add(CONTROL_LENGTH)?));
        match control {
            _ if name == "sendmsg" && self.symbolic() => Effect::Writes,
            Some(0) => Effect::Writes,
            _ => effect_of(name),
        }
    }

    fn doubt_descriptor(&mut self, descriptor: u64) {
        if !self.symbolic() {
            self.learned.channels.doubtful.insert(descriptor);
        }
    }

    /// Whatever of the arguments is a descriptor.
    fn doubt_arguments(&mut self, call: &ExternalCall<'r>) {
        for scalar in call.arguments.iter().filter_map(Value::scalar) {
            if let Some(number) = self.in_recording(scalar).filter(|&number| number < MOST) {
                self.doubt_descriptor(number);
            }
        }
    }

    fn make_channel(
        &mut self,
        t: usize,
        name: &str,
        [first, second]: [u64; 2],
        result: Option<u64>,
        call: &ExternalCall<'r>,
    ) {
        let Some(result) = result else { return };
        let site = self.site_of_program(t);
        let what = match name {
            "socketpair" => "socket pair",
            "eventfd" => "event counter",
            _ => "pipe",
        };
        let called = called(what, &site);
        let channels = &mut self.learned.channels;
        if name == "eventfd" {
            let counts = second & SERVES_SEVERAL == 0;
            let channel = counts.then(|| channels.add(&called, false, u32::from(first != 0)));
            channels.made(result, End { reads: channel, writes: channel });
            return;
        }
        let words = call.written.as_ref().map(|(_, bytes)| bytes.as_ref());
        let word = |at: usize| {
            let bytes = words?.get(at..at + 4)?.try_into().ok()?;
            u64::try_from(i32::from_le_bytes(bytes)).ok()
        };
        let (Some(a), Some(b)) = (word(0), word(4)) else {
            channels.unknown = true;
            return;
        };
        if name != "socketpair" {
            let bytes = name == "pipe" || second & PACKETS == 0;
            let channel = Some(channels.add(&called, bytes, 0));
            channels.made(a, End { reads: channel, writes: None });
            channels.made(b, End { reads: None, writes: channel });
            return;
        }
        let bytes = match (first, second & SOCKET_KIND) {
            (UNIX, STREAM) => Some(true),
            (UNIX, DATAGRAM | PACKET) => Some(false),
            _ => None,
        };
        let mut way = || bytes.map(|bytes| channels.add(&called, bytes, 0));
        let (there, back) = (way(), way());
        channels.made(a, End { reads: back, writes: there });
        channels.made(b, End { reads: there, writes: back });
    }

    /// Bytes went through a descriptor.
    fn move_through(
        &mut self,
        t: usize,
        descriptor: u64,
        (writes, size): (bool, u64),
        through: Option<u64>,
    ) {
        let ordinal = self.threads[t].moves;
        self.threads[t].moves += 1;
        if !self.symbolic() {
            let used = Use { thread: t, ordinal, descriptor, writes, size, through };
            self.learned.channels.uses.push(used);
            return;
        }
        let steps = self.learned.channels.plan.get(&(t, ordinal)).cloned().unwrap_or_default();
        for Step { channel, number, posts, units } in steps {
            let Some(known) = self.learned.channels.channels.get(channel) else { continue };
            let (name, initial) = (known.name.clone(), known.initial);
            // The reads that need no write have no steps where each read has its own.
            let initial = if number == 0 { initial } else { 0 };
            let known = self.channel_objects.get(&(channel, number)).copied();
            let object = known.unwrap_or_else(|| {
                self.out.object(ObjectKind::Semaphore { initial }, name.clone())
            });
            self.channel_objects.insert((channel, number), object);
            for _ in 0..units {
                let kind = match posts {
                    true => EventKind::SemaphorePost { object },
                    false => EventKind::SemaphoreWait { object },
                };
                self.event(t, kind, Some(name.clone()));
            }
        }
    }

    /// A log ends in a call: if that writes, it may have done so.
    pub fn end_in_write(&mut self, t: usize) {
        self.end_in_socket(t);
        if !matches!(self.threads[t].frames.last(), Some(Frame::External(_))) {
            return;
        }
        let Some(Frame::External(frame)) = self.threads[t].frames.pop() else { return };
        if let Some(call) = &frame.call
            && call.assembly.is_none()
            && !call.walked
            && self.effect_of_call(t, call) == Effect::Writes
        {
            let mut number = |index: usize| {
                let scalar = call.arguments.get(index).and_then(Value::scalar)?;
                self.in_recording(scalar)
            };
            let descriptor = number(0);
            let size = match plain_name(call.name) {
                "write" | "send" | "sendto" => number(2).unwrap_or(u64::MAX),
                _ => u64::MAX,
            };
            if let Some(descriptor) = descriptor {
                self.move_through(t, descriptor, (true, size), None);
            }
        }
        self.threads[t].frames.push(Frame::External(frame));
    }
}

/// What a channel that was made there is called. No variable's name has several words: see
/// [`model::names::is_channel`].
fn called(what: &str, site: &Site) -> String {
    match site.line {
        0 => format!("{what} of the program"),
        line => format!("{what} of {}:{line}", file_name(&site.file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::layout::SocketUse;

    #[test]
    fn channels_are_called_by_where_they_were_made() {
        let site = Site { file: "/src/server.c".to_owned(), line: 22, ..Site::default() };
        assert_eq!(called("pipe", &site), "pipe of server.c:22");
        let named = ["pipe", "socket pair", "connection"].map(|what| (what, &site));
        for (what, site) in named.into_iter().chain([("event counter", &Site::default())]) {
            assert!(model::names::is_channel(&called(what, site)), "{what}");
        }
        assert!(!model::names::is_channel("pipe"));
    }

    const READS: u64 = 3;
    const WRITES: u64 = 4;

    /// A pipe through which these threads moved so many bytes, writes and then reads.
    fn pipe(writes: &[(usize, u64)], reads: &[(usize, u64)]) -> Channels {
        let mut channels = Channels::default();
        let channel = Some(channels.add("pipe", true, 0));
        channels.made(READS, End { reads: channel, writes: None });
        channels.made(WRITES, End { reads: None, writes: channel });
        let mut ordinals = [0; 4];
        let all = writes.iter().map(|one| (one, true)).chain(reads.iter().map(|one| (one, false)));
        for (&(thread, size), writes) in all {
            let descriptor = if writes { WRITES } else { READS };
            let ordinal = ordinals[thread];
            ordinals[thread] += 1;
            channels.uses.push(Use { thread, ordinal, descriptor, writes, size, through: None });
        }
        channels
    }

    /// The planned calls: thread, ordinal, the semaphore's number, whether it gives, how many.
    fn plan(channels: &Channels) -> Vec<(usize, u64, usize, bool, usize)> {
        let steps = channels.plan.iter().flat_map(|(&(thread, ordinal), steps)| {
            steps.iter().map(move |s| (thread, ordinal, s.number, s.posts, s.units))
        });
        let mut steps: Vec<_> = steps.collect();
        steps.sort_unstable();
        steps
    }

    #[test]
    fn a_read_needs_the_write_of_its_last_byte() {
        let mut channels = pipe(&[(0, 10), (0, 10), (0, 10), (0, 5)], &[(1, 4), (1, 6), (1, 15)]);
        channels.decide(true);
        // The first two reads lie in the first write; the third one ends in the third.
        let first = [(0, 0, 1, true, 1), (0, 2, 3, true, 1)];
        let second = [(1, 0, 1, false, 1), (1, 2, 3, false, 1)];
        assert_eq!(plan(&channels), [first, second].concat());
    }

    #[test]
    fn several_writers_leave_open_which_write_it_was() {
        let mut channels = pipe(&[(0, 1), (2, 4)], &[(1, 1), (1, 4)]);
        channels.decide(true);
        // One byte may be a part of the larger write, and so may be four; five are of both.
        let given = [(0, 0, 0, true, 1), (2, 0, 0, true, 1)];
        let taken = [(1, 0, 0, false, 1), (1, 1, 0, false, 1)];
        let mut planned = [given, taken].concat();
        planned.sort_unstable();
        assert_eq!(plan(&channels), planned);
        // Of several readers' nobody knows which came first.
        let mut channels = pipe(&[(0, 1), (2, 4)], &[(1, 1), (3, 4)]);
        channels.decide(true);
        assert_eq!(plan(&channels), [(0, 0, 0, true, 1), (2, 0, 0, true, 1), (3, 0, 0, false, 1)]);
    }

    #[test]
    fn what_is_not_certain_is_left_out() {
        let decided = |change: &dyn Fn(&mut Channels)| {
            let mut channels = pipe(&[(0, 1)], &[(1, 1)]);
            change(&mut channels);
            channels.decide(true);
            plan(&channels).len()
        };
        assert_eq!(decided(&|_| {}), 2);
        assert_eq!(decided(&|channels| channels.unknown = true), 0);
        let doubt = |channels: &mut Channels| channels.doubtful.extend([WRITES]);
        assert_eq!(decided(&doubt), 0);
        // The number was given twice.
        assert_eq!(decided(&|channels| channels.made(READS, End::default())), 0);
        let mut unfinished = pipe(&[(0, 1)], &[(1, 1)]);
        unfinished.decide(false);
        assert_eq!(plan(&unfinished), []);
        // More was read than anybody was seen to write; and a thread that writes to itself.
        for mut other in [pipe(&[(0, 1)], &[(1, 2)]), pipe(&[(0, 1)], &[(0, 1)])] {
            other.decide(true);
            assert_eq!(plan(&other), []);
        }
    }

    #[test]
    fn a_signal_needs_as_many_that_were_sent() {
        let planned = |through: Option<u64>, target: u64| {
            let mut channels = Channels::default();
            channels.signal(10);
            channels.signal_descriptors.insert(5);
            channels.processes.insert(100);
            channels.targets.insert(target);
            for (thread, ordinal, writes) in
                [(0, 0, true), (0, 1, true), (1, 0, false), (1, 1, false)]
            {
                let descriptor = SIGNALS | 10;
                let through = through.filter(|_| !writes);
                channels.uses.push(Use { thread, ordinal, descriptor, writes, size: 1, through });
            }
            channels.decide(true);
            plan(&channels)
        };
        let first = [(0, 0, 1, true, 1), (0, 1, 2, true, 1)];
        let second = [(1, 0, 1, false, 1), (1, 1, 2, false, 1)];
        assert_eq!(planned(None, 100), [first, second].concat());
        assert_eq!(planned(Some(5), 100), [first, second].concat());
        // Read from something else, or sent to another process.
        assert_eq!(planned(Some(6), 100), []);
        assert_eq!(planned(None, 200), []);
    }

    #[test]
    fn what_is_read_from_a_connection_was_written_to_it() {
        let mut channels = Channels::default();
        let numbers = [SocketUse::Connection, SocketUse::Bytes, SocketUse::End]
            .map(|what| what.number(&[1; 18], &[2; 18]));
        let back = SocketUse::Bytes.number(&[2; 18], &[1; 18]);
        for number in numbers.into_iter().chain([back]) {
            assert!(number >> 62 == 2, "no number of anything else");
            channels.socket(number, "connection of a.c:1", number != numbers[0]);
        }
        for (ordinal, descriptor) in numbers.into_iter().enumerate() {
            for (thread, writes) in [(0, true), (1, false)] {
                let ordinal = ordinal as u64;
                let used = Use { thread, ordinal, descriptor, writes, size: 1, through: None };
                channels.uses.push(used);
            }
        }
        // The other way nobody has written what was read.
        let used =
            Use { thread: 0, ordinal: 3, descriptor: back, writes: false, size: 1, through: None };
        channels.uses.push(used);
        channels.decide(true);
        let planned = plan(&channels);
        let expected = |thread, posts| (0..3).map(move |ordinal| (thread, ordinal, 1, posts, 1));
        assert_eq!(planned, expected(0, true).chain(expected(1, false)).collect::<Vec<_>>());
    }

    #[test]
    fn event_counters_may_begin_with_something() {
        for (initial, planned) in [(0, 4), (1, 2)] {
            let mut channels = Channels::default();
            let channel = Some(channels.add("event counter", false, initial));
            channels.made(READS, End { reads: channel, writes: channel });
            for (thread, ordinal, writes) in
                [(0, 0, true), (0, 1, true), (1, 0, false), (1, 1, false)]
            {
                let used =
                    Use { thread, ordinal, descriptor: READS, writes, size: 8, through: None };
                channels.uses.push(used);
            }
            channels.decide(true);
            assert_eq!(plan(&channels).len(), planned);
        }
    }
}
