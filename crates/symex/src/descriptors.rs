//! Descriptors that are used, or closed again, behind their `close`. Such a call fails, and whether it does
//! hangs on the order of the two.
//!
//! A descriptor of which that happened is a variable that is 1 while it is open: to make it writes 1, to close
//! it needs 1 and writes 0, other calls read it. The result of a call that failed follows from what it read. Other
//! descriptors are no events. The survey notes the calls; behind it is decided which descriptors count:
//!
//! * A call of theirs failed, and each of those that failed may have come behind a `close`, and before another
//!   call that gave the same number, as far as the clock tells and what its thread could do with it afterwards.
//!   So one that failed for another reason (`EAGAIN`, say) while the descriptor was open leaves its descriptor out.
//! * No call that did not fail certainly came while the descriptor was closed: then something unseen
//!   made it, such as `fopen`.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::externals::plain_name;
use crate::memory::{self, MemoryByte};
use crate::thread::ExternalCall;
use crate::value::{self, Scalar, Value};
use model::{BinOp, CmpOp, PathConditionKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Internal addresses of the variables.
const DESCRIPTORS: u64 = 0xe000_0000_0000_0000;
/// Descriptors are below.
const MOST: u64 = 1 << 20;
/// Whoever uses more of them is not looked at.
const MOST_CALLS: usize = 1 << 16;
/// `F_DUPFD` and `F_DUPFD_CLOEXEC`.
const DUPLICATES: [u64; 2] = [0, 1030];

/// What a call did with a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Made,
    Closed,
    Used,
    Failed,
}

/// A call, and the time in which it was made.
#[derive(Clone, Copy, Debug)]
struct Use {
    deed: Deed,
    thread: usize,
    /// Which call of the thread it was.
    number: usize,
    earliest: u64,
    latest: u64,
}

impl Use {
    fn may_precede(&self, other: &Self) -> bool {
        self.earliest <= other.latest
    }

    fn precedes(&self, other: &Self) -> bool {
        self.latest < other.earliest
    }

    fn is_followed_by(&self, other: &Self) -> bool {
        self.thread == other.thread && self.number < other.number
    }
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Descriptors {
    calls: BTreeMap<u64, Vec<Use>>,
    count: usize,
    doubtful: BTreeSet<u64>,
    /// Those that count, and whether they were open at first.
    told: BTreeMap<u64, bool>,
}

impl Descriptors {
    fn note(&mut self, descriptor: u64, call: Use) {
        self.count += 1;
        if self.count <= MOST_CALLS {
            self.calls.entry(descriptor).or_default().push(call);
        }
    }

    /// Decides which descriptors count. `complete`: every thread was walked to the end of its log.
    pub fn decide(&mut self, complete: bool) {
        if !complete || self.count > MOST_CALLS {
            return;
        }
        for (&descriptor, calls) in &self.calls {
            if !self.doubtful.contains(&descriptor) && is_used_closed(calls) {
                let made = calls.iter().any(|call| call.deed == Deed::Made);
                self.told.insert(descriptor, !made);
            }
        }
    }
}

fn is_used_closed(calls: &[Use]) -> bool {
    let of = |deed: Deed| calls.iter().filter(move |call| call.deed == deed);
    let works = || of(Deed::Used).chain(of(Deed::Closed));
    // Who can use it behind a call that failed has found it open there, too, unless it was made anew.
    let works_later = |failed: &Use| {
        works().any(|used| {
            let between = |made: &Use| failed.may_precede(made) && made.may_precede(used);
            failed.is_followed_by(used) && !of(Deed::Made).any(between)
        })
    };
    let may_be_closed = |failed: &Use| {
        let closed = of(Deed::Closed).any(|close| {
            let between = |made: &Use| close.precedes(made) && made.precedes(failed);
            close.may_precede(failed) && !of(Deed::Made).any(between)
        });
        closed && !works_later(failed)
    };
    let is_closed = |used: &Use| {
        of(Deed::Closed).any(|close| {
            let between = |made: &Use| close.may_precede(made) && made.may_precede(used);
            close.precedes(used) && !of(Deed::Made).any(between)
        })
    };
    let closes = of(Deed::Closed).count();
    closes > 0
        && closes <= of(Deed::Made).count().max(1)
        && of(Deed::Failed).next().is_some()
        && of(Deed::Failed).all(may_be_closed)
        && !works().any(is_closed)
}

/// The variable of a descriptor, by an internal address in it.
pub(crate) fn name(internal: u64) -> Option<String> {
    let descriptor = internal.checked_sub(DESCRIPTORS).filter(|number| *number < MOST)?;
    Some(format!("descriptor {descriptor}"))
}

/// Which argument a function moves as many bytes as, when it does not fail; `None` where it gives 0.
/// Nothing of functions that are not looked at.
fn moved(name: &str) -> Option<Option<usize>> {
    Some(match name {
        "read" | "write" | "pread" | "pread64" | "pwrite" | "pwrite64" | "send" | "recv"
        | "sendto" | "recvfrom" => Some(2),
        "close" | "fsync" | "fdatasync" | "ftruncate" | "ftruncate64" | "fchmod" | "fstat"
        | "fstat64" | "flock" | "listen" | "shutdown" | "setsockopt" | "getsockopt" => None,
        _ => return None,
    })
}

fn makes(name: &str) -> bool {
    matches!(
        name,
        "open"
            | "open64"
            | "openat"
            | "openat64"
            | "creat"
            | "creat64"
            | "socket"
            | "accept"
            | "accept4"
            | "dup"
            | "eventfd"
            | "epoll_create"
            | "epoll_create1"
            | "timerfd_create"
            | "inotify_init"
            | "inotify_init1"
            | "memfd_create"
            | "mkstemp"
            | "mkstemp64"
            | "mkostemp"
            | "mkostemp64"
            | "shm_open"
            | "posix_openpt"
    )
}

impl<'r> Engine<'r> {
    /// A call of uninstrumented code has returned `result`: what it did with descriptors. Gives the result as
    /// it follows from that.
    pub fn use_descriptors(&mut self, t: usize, call: &ExternalCall<'r>, result: Value) -> Value {
        if call.assembly.is_some() {
            return result;
        }
        let name = plain_name(call.name);
        let given = result.scalar().and_then(|scalar| self.in_recording(scalar));
        let Some(given) = given else { return result };
        let failed = (given as i64) < 0;
        if let Some(length) = moved(name) {
            let deed = match name {
                _ if failed => Deed::Failed,
                "close" => Deed::Closed,
                _ => Deed::Used,
            };
            let length = length.and_then(|index| self.descriptor_in(call, index)).unwrap_or(0);
            if let Some(descriptor) = self.descriptor_in(call, 0)
                && let Some(open) = self.touch_descriptor(t, descriptor, deed)
            {
                return self.judge(t, (call, descriptor), open, failed.then_some(length), result);
            }
            return result;
        }
        let duplicates = matches!(name, "fcntl" | "fcntl64")
            && self.descriptor_in(call, 1).is_some_and(|command| DUPLICATES.contains(&command));
        match name {
            _ if failed => {}
            _ if makes(name) || duplicates => {
                self.touch_descriptor(t, given, Deed::Made);
            }
            "pipe" | "pipe2" | "socketpair" => {
                let words = call.written.as_ref().map(|(_, bytes)| bytes.as_ref());
                let word = |range: Range<usize>| {
                    let bytes = words?.get(range)?.try_into().ok()?;
                    u64::try_from(i32::from_le_bytes(bytes)).ok()
                };
                for descriptor in [word(0..4), word(4..8)].into_iter().flatten() {
                    self.touch_descriptor(t, descriptor, Deed::Made);
                }
            }
            "dup2" | "dup3" | "fdopen" | "fdopendir" | "close_range" | "syscall" => {
                let arguments = [0, 1].map(|index| self.descriptor_in(call, index));
                if !self.symbolic() {
                    self.learned.descriptors.doubtful.extend(arguments.into_iter().flatten());
                }
            }
            _ => {}
        }
        result
    }

    fn descriptor_in(&mut self, call: &ExternalCall<'r>, index: usize) -> Option<u64> {
        let scalar = call.arguments.get(index).and_then(Value::scalar)?;
        self.in_recording(scalar)
    }

    /// The event of a call; whether the descriptor was open before, where it counts.
    fn touch_descriptor(&mut self, t: usize, descriptor: u64, deed: Deed) -> Option<Scalar> {
        if descriptor >= MOST {
            return None;
        }
        let place = Place::new(DESCRIPTORS + descriptor, 1, None);
        if !self.symbolic() {
            let time = self.happened(t);
            let number = self.learned.descriptors.count;
            let (earliest, latest) = (time.earliest, time.latest);
            let call = Use { deed, thread: t, number, earliest, latest };
            self.learned.descriptors.note(descriptor, call);
        } else {
            let &open = self.learned.descriptors.told.get(&descriptor)?;
            if self.memory.get(place.address) == MemoryByte::Unknown {
                self.memory.set(place.address, MemoryByte::Const(u8::from(open)));
            }
        }
        match deed {
            Deed::Made => {
                self.write(t, place, &[MemoryByte::Const(1)], Grain::Access);
                None
            }
            Deed::Closed => {
                let closed = Scalar::constant(8, 0);
                Some(self.read_modify_write(t, place, 8, &mut |_, _| closed))
            }
            Deed::Used | Deed::Failed => {
                let bytes = self.read(t, place, Grain::Access);
                Some(memory::compose(&mut self.pool, &bytes))
            }
        }
    }

    /// A call on an open descriptor did what it should; one that `failed` would have given so much.
    fn judge(
        &mut self,
        t: usize,
        (call, descriptor): (&ExternalCall<'r>, u64),
        open: Scalar,
        failed: Option<u64>,
        result: Value,
    ) -> Value {
        if !self.symbolic() {
            return result;
        }
        for read in std::mem::take(&mut self.pending_reads) {
            self.out.set_recorded(read.var, u128::from(failed.is_none()));
        }
        if let Some(number) = call.arguments.first().and_then(Value::scalar)
            && self.concretise(t, number, PathConditionKind::Address) != Some(descriptor)
        {
            return result;
        }
        let (Some(success), Value::Scalar(scalar)) = (failed, &result) else {
            let is_open = value::cmp(&mut self.pool, CmpOp::Eq, open, Scalar::constant(8, 1));
            if let Some(expr) = is_open.as_expr() {
                let site = self.site(t);
                self.add_condition(t, expr, PathConditionKind::Branch, site);
            }
            return result;
        };
        // No other thread could close it, and the failure had another reason (`EAGAIN`, say).
        if open.as_const().is_some() {
            return result;
        }
        // -1 when it is closed.
        let width = scalar.width;
        let open = value::resize(&mut self.pool, open, width, false);
        let more = Scalar::constant(width, u128::from(success) + 1);
        let given = value::bin(&mut self.pool, BinOp::Mul, open, more);
        let given = value::bin(&mut self.pool, BinOp::Sub, given, Scalar::constant(width, 1));
        self.merge(t, &given.into(), &result, "call")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of threads of their own.
    fn calls(deeds: &[(Deed, u64, u64)]) -> bool {
        let deeds: Vec<_> = deeds.iter().enumerate().map(|(t, deed)| (t, *deed)).collect();
        by_threads(&deeds)
    }

    fn by_threads(deeds: &[(usize, (Deed, u64, u64))]) -> bool {
        let calls =
            deeds.iter().enumerate().map(|(number, &(thread, (deed, earliest, latest)))| Use {
                deed,
                thread,
                number,
                earliest,
                latest,
            });
        is_used_closed(&calls.collect::<Vec<_>>())
    }

    /// A thread that had nothing to read, and then waits for it in a call that another thread's `shutdown` ends.
    #[test]
    fn a_descriptor_that_works_afterwards_was_not_closed() {
        use Deed::{Closed, Failed, Made, Used};
        let (made, close) = ((0, (Made, 0, 9)), (0, (Closed, 20, 29)));
        let reader = |used: usize| [made, close, (1, (Failed, 10, 39)), (used, (Used, 10, 39))];
        assert!(!by_threads(&reader(1)));
        assert!(by_threads(&reader(2)), "another thread's call may have come before");
        let anew = [made, close, (1, (Failed, 10, 49)), (0, (Made, 30, 39)), (1, (Used, 10, 49))];
        assert!(by_threads(&anew));
    }

    #[test]
    fn a_descriptor_counts_when_it_failed_because_it_was_closed() {
        use Deed::{Closed, Failed, Made, Used};
        let made = (Made, 0, 9);
        assert!(calls(&[made, (Used, 10, 19), (Closed, 20, 29), (Failed, 25, 39)]));
        assert!(!calls(&[made, (Failed, 10, 19), (Closed, 20, 29)]), "it was open");
        assert!(!calls(&[made, (Used, 10, 19), (Closed, 20, 29)]), "none failed");
        let again = [made, (Closed, 20, 29), (Made, 30, 39), (Failed, 40, 49)];
        assert!(!calls(&again), "it was open again");
        assert!(!calls(&[made, (Closed, 20, 29), (Failed, 30, 39), (Used, 40, 49)]), "unseen");
        let other = [made, (Closed, 20, 29), (Made, 30, 39), (Closed, 40, 49), (Failed, 50, 59)];
        assert!(calls(&other), "closed for somebody else");
    }
}
