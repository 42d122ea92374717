//! Files and directories that one thread makes or removes, and another one looks for: whether a call finds
//! something there hangs on the order of the two.
//!
//! A path of which that may be so is a variable that is 1 while there is something: to make it writes 1, to remove it
//! needs 1 and writes 0, to look for it reads. The result of a call that found another state than it
//! wanted follows from what it read. Other paths are no events. The survey notes the calls; behind it is decided which
//! paths count: those that more than one thread has to do with, one of which changes it, and whose calls are
//! explained by some order that the clock allows. A path that a call failed for another reason (no permission, say)
//! is left out by that, in most cases.
//!
//! Known are the calls in instrumented code that name the path: those of `<stdio.h>`, `<unistd.h>`,
//! `<sys/stat.h>` and the like, and the functions of `std::filesystem` in libstdc++. Paths are compared as texts.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::externals::plain_name;
use crate::memory::{self, MemoryByte};
use crate::thread::ExternalCall;
use crate::value::{self, Scalar, Value};
use model::names::FILE;
use model::{BinOp, CmpOp, PathConditionKind};
use std::collections::{BTreeMap, BTreeSet};

/// Internal addresses of the variables.
const FILES: u64 = 0xe200_0000_0000_0000;
/// Whoever makes more such calls is not looked at.
const MOST_CALLS: usize = 1 << 14;
/// So many states are looked at to explain the calls on one path.
const MOST_STATES: usize = 1 << 14;
const AT_FDCWD: i32 = -100;
const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
const O_TRUNC: u64 = 0o1000;

/// What a call wants with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// To find something there.
    Find,
    /// That something is there, from before or not.
    Make,
    /// That something is there, which was not.
    MakeNew,
    /// That something goes away, which was there.
    Remove,
}

/// What a call did with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deed {
    wish: Wish,
    failed: bool,
}

impl Deed {
    /// What was there before, as far as the call says so.
    fn before(self) -> Option<bool> {
        match self.wish {
            Wish::Find | Wish::Remove => Some(!self.failed),
            Wish::MakeNew => Some(self.failed),
            Wish::Make => None,
        }
    }

    /// What is there behind it, if that may be something else.
    fn behind(self) -> Option<bool> {
        match self.wish {
            Wish::Find => None,
            Wish::Make | Wish::MakeNew => Some(true),
            Wish::Remove => Some(false),
        }
    }

    fn changes(self) -> bool {
        !self.failed && self.wish != Wish::Find
    }
}

/// A call, and the time in which it was made.
#[derive(Clone, Copy, Debug)]
struct Use {
    deed: Deed,
    thread: usize,
    earliest: u64,
    latest: u64,
}

/// A path, and what a call wants with it.
type Wanted = (Vec<u8>, Wish);

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Files {
    /// By path, in the order in which they were met: the variable's number.
    uses: BTreeMap<Vec<u8>, (u64, Vec<Use>)>,
    /// What each thread's calls wanted, in order: a text that threads share is no constant later.
    wanted: BTreeMap<usize, Vec<Vec<Wanted>>>,
    count: usize,
    /// Those that count, with the variable's number, and whether there was something at first.
    told: BTreeMap<Vec<u8>, (u64, bool)>,
}

impl Files {
    /// Decides which paths count. `complete`: every thread was walked to the end of its log.
    pub fn decide(&mut self, complete: bool) {
        if !complete || self.count > MOST_CALLS {
            return;
        }
        for (path, (number, uses)) in &self.uses {
            if let Some(first) = state_at_first(uses) {
                self.told.insert(path.clone(), (*number, first));
            }
        }
    }

    /// The variable of a path, by an internal address in it.
    pub fn name(&self, internal: u64) -> Option<String> {
        let number = internal.checked_sub(FILES)?;
        let (path, _) = self.told.iter().find(|(_, (told, _))| *told == number)?;
        Some(format!("{FILE}{}", String::from_utf8_lossy(path)))
    }
}

/// Whether there was something at first, where the path counts.
fn state_at_first(uses: &[Use]) -> Option<bool> {
    let changes = || uses.iter().filter(|used| used.deed.changes());
    let meets = |used: &Use| changes().any(|change| change.thread != used.thread);
    if !uses.iter().any(|used| used.deed.before().is_some() && meets(used)) {
        return None;
    }
    // It was made and never missed.
    if uses.iter().all(|used| !used.deed.failed && used.deed.wish != Wish::Remove) {
        return None;
    }
    [false, true].into_iter().find(|first| is_explained(uses, *first))
}

/// Is there an order that the threads and the clock allow, in which each call finds what it found, with `first` there at first?
fn is_explained(uses: &[Use], first: bool) -> bool {
    let mut threads: BTreeMap<usize, Vec<&Use>> = BTreeMap::new();
    for used in uses {
        threads.entry(used.thread).or_default().push(used);
    }
    let threads: Vec<Vec<&Use>> = threads.into_values().collect();
    let mut seen = BTreeSet::new();
    let mut open = vec![(vec![0; threads.len()], first)];
    while let Some((at, there)) = open.pop() {
        let next = |thread: usize| threads[thread].get(at[thread]).copied();
        if (0..threads.len()).all(|thread| next(thread).is_none()) {
            return true;
        }
        if seen.len() == MOST_STATES {
            return false;
        }
        let may_come = |used: &Use| {
            let mut others = (0..threads.len()).filter_map(next);
            !others.any(|other| other.latest < used.earliest)
        };
        let may_come = |thread: usize| {
            next(thread).filter(|used| {
                used.deed.before().is_none_or(|before| before == there) && may_come(used)
            })
        };
        let after = |thread: usize, there: bool| {
            let mut at = at.clone();
            at[thread] += 1;
            (at, there)
        };
        let comes: Vec<(usize, &Use)> =
            (0..threads.len()).filter_map(|thread| Some((thread, may_come(thread)?))).collect();
        // What changes nothing may as well come at once.
        let silent = comes.iter().find(|(_, used)| !used.deed.changes());
        let comes = silent.map_or(comes.as_slice(), std::slice::from_ref);
        for (thread, used) in comes {
            let behind = used.deed.behind().filter(|_| used.deed.changes());
            let state = after(*thread, behind.unwrap_or(there));
            if seen.insert(state.clone()) {
                open.push(state);
            }
        }
    }
    false
}

/// How a call says that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// By -1.
    Negative,
    /// By a null pointer, or `false`.
    Zero,
    /// By the type of a file that is not there, in the lowest byte.
    Type,
}

impl Verdict {
    fn is_failure(self, result: u64) -> bool {
        match self {
            Self::Negative => (result as i64) < 0,
            Self::Zero => result == 0,
            Self::Type => result as i8 == -1,
        }
    }

    /// What it might have given else.
    fn success(self) -> u64 {
        match self {
            Self::Negative => 0,
            Self::Zero | Self::Type => 1,
        }
    }
}

/// Where a call has its path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    /// A text.
    Text(usize),
    /// A text, which is relative to the descriptor before it.
    At(usize),
    /// A `std::filesystem::path`, which begins with a `std::string`.
    Path(usize),
}

/// What a function does with paths, in order, and how it says that it failed.
type Role = (Verdict, &'static [(Named, Wish)]);

fn verdict(name: &str) -> Option<Verdict> {
    match name {
        "open" | "open64" | "__open_2" | "__open64_2" | "openat" | "openat64" | "creat"
        | "creat64" => Some(Verdict::Negative),
        "fopen" | "fopen64" => Some(Verdict::Zero),
        _ => role(name).map(|(verdict, _)| verdict),
    }
}

/// Does the runtime read the clock before and behind what a function does?
pub(crate) fn is_timed(name: &str) -> bool {
    verdict(name).is_some()
}

/// How a file is opened, by the flags of `open` or the mode of `fopen`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opened {
    Flags(u64),
    Mode([u8; 4]),
}

impl Opened {
    fn wish(self) -> Wish {
        match self {
            Self::Flags(flags) if flags & O_CREAT == 0 => Wish::Find,
            Self::Flags(flags) if flags & O_EXCL != 0 => Wish::MakeNew,
            Self::Flags(_) => Wish::Make,
            Self::Mode([b'r', ..]) => Wish::Find,
            Self::Mode(mode) if mode.contains(&b'x') => Wish::MakeNew,
            Self::Mode(_) => Wish::Make,
        }
    }

    /// Is what stands in the file gone then?
    pub fn empties(self) -> bool {
        match self {
            Self::Flags(flags) => flags & O_TRUNC != 0,
            Self::Mode(mode) => mode[0] == b'w',
        }
    }
}

/// Functions that do the same whatever their other arguments are.
fn role(name: &str) -> Option<Role> {
    use Named::{At, Path, Text};
    use Verdict::{Negative, Type, Zero};
    let role: Role = match name {
        "stat" | "stat64" | "lstat" | "lstat64" | "access" | "chmod" | "truncate" | "readlink"
        | "chdir" | "statfs" | "utimes" => (Negative, &[(Text(0), Wish::Find)]),
        "__xstat" | "__lxstat" | "__xstat64" | "__lxstat64" => (Negative, &[(Text(1), Wish::Find)]),
        "fstatat" | "fstatat64" | "faccessat" | "fchmodat" | "readlinkat" => {
            (Negative, &[(At(1), Wish::Find)])
        }
        "opendir" => (Zero, &[(Text(0), Wish::Find)]),
        "mkdir" | "mkfifo" | "mknod" => (Negative, &[(Text(0), Wish::MakeNew)]),
        "mkdirat" => (Negative, &[(At(1), Wish::MakeNew)]),
        "symlink" => (Negative, &[(Text(1), Wish::MakeNew)]),
        "link" => (Negative, &[(Text(1), Wish::MakeNew)]),
        "unlink" | "rmdir" | "remove" => (Negative, &[(Text(0), Wish::Remove)]),
        "unlinkat" => (Negative, &[(At(1), Wish::Remove)]),
        "rename" => (Negative, &[(Text(0), Wish::Remove), (Text(1), Wish::Make)]),
        "renameat" => (Negative, &[(At(1), Wish::Remove), (At(3), Wish::Make)]),
        "_ZNSt10filesystem6statusERKNS_7__cxx114pathE"
        | "_ZNSt10filesystem6statusERKNS_7__cxx114pathERSt10error_code" => {
            (Type, &[(Path(0), Wish::Find)])
        }
        "_ZNSt10filesystem16create_directoryERKNS_7__cxx114pathE"
        | "_ZNSt10filesystem16create_directoryERKNS_7__cxx114pathERSt10error_code" => {
            (Zero, &[(Path(0), Wish::MakeNew)])
        }
        "_ZNSt10filesystem6removeERKNS_7__cxx114pathE"
        | "_ZNSt10filesystem6removeERKNS_7__cxx114pathERSt10error_code" => {
            (Zero, &[(Path(0), Wish::Remove)])
        }
        _ => return None,
    };
    Some(role)
}

/// A path as it is compared.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(part, [] | [b'.']));
    let mut plain: Vec<u8> = if path.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
    plain.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        plain.push(b'/');
        plain.extend_from_slice(part);
    }
    plain
}

impl<'r> Engine<'r> {
    /// A call of uninstrumented code has returned `result`: what it did with files. Gives the result as
    /// it follows from that.
    pub fn use_files(&mut self, t: usize, call: &ExternalCall<'r>, result: Value) -> Value {
        if call.assembly.is_some() {
            return result;
        }
        let name = plain_name(call.name);
        let Some(verdict) = verdict(name) else { return result };
        let wanted = self.wanted(t, call);
        let given = result.scalar().and_then(|scalar| self.in_recording(scalar));
        let Some(given) = given else { return result };
        let failed = verdict.is_failure(given);
        let mut value = result;
        for (path, wish) in wanted {
            if failed && wish == Wish::Make {
                continue;
            }
            value = self.touch_file(t, &path, Deed { wish, failed }, (verdict, value));
            // Behind a path that stood in its way it came to no other.
            if failed {
                break;
            }
        }
        value
    }

    /// The paths of a call, and what it wants with them; as the survey found it, later.
    fn wanted(&mut self, t: usize, call: &ExternalCall<'r>) -> Vec<Wanted> {
        let number = self.threads[t].file_calls;
        self.threads[t].file_calls += 1;
        if self.symbolic() {
            let calls = self.learned.files.wanted.get(&t);
            return calls.and_then(|calls| calls.get(number)).cloned().unwrap_or_default();
        }
        self.learned.files.count += 1;
        if self.learned.files.count > MOST_CALLS {
            return Vec::new();
        }
        let roles = self.roles(t, call).unwrap_or_default();
        let of = |(named, wish)| Some((self.path(t, call, named)?, wish));
        let wanted: Vec<_> = roles.into_iter().filter_map(of).collect();
        self.learned.files.wanted.entry(t).or_default().push(wanted.clone());
        wanted
    }

    fn roles(&mut self, t: usize, call: &ExternalCall<'r>) -> Option<Vec<(Named, Wish)>> {
        if let Some((named, opened)) = self.opened(t, call) {
            return Some(vec![(named, opened.wish())]);
        }
        role(plain_name(call.name)).map(|(_, roles)| roles.to_vec())
    }

    /// Where a call that opens a file has its path, and how it is opened.
    pub fn opened(&mut self, t: usize, call: &ExternalCall<'r>) -> Option<(Named, Opened)> {
        Some(match plain_name(call.name) {
            "open" | "open64" | "__open_2" | "__open64_2" => (Named::Text(0), self.flags(call, 1)?),
            "openat" | "openat64" => (Named::At(1), self.flags(call, 2)?),
            "creat" | "creat64" => (Named::Text(0), Opened::Flags(O_CREAT | O_TRUNC)),
            "fopen" | "fopen64" => {
                let mode = call.arguments.get(1).and_then(Value::scalar)?;
                let mode = self.in_recording(mode)?;
                let mode = self.constant_text(t, mode)?;
                let mut first = [0; 4];
                first.iter_mut().zip(mode).for_each(|(to, from)| *to = from);
                (Named::Text(0), Opened::Mode(first))
            }
            _ => return None,
        })
    }

    fn flags(&mut self, call: &ExternalCall<'r>, index: usize) -> Option<Opened> {
        let flags = call.arguments.get(index).and_then(Value::scalar)?;
        Some(Opened::Flags(self.in_recording(flags)?))
    }

    /// The path that a call names, as paths are compared.
    pub fn path(&mut self, t: usize, call: &ExternalCall<'r>, named: Named) -> Option<Vec<u8>> {
        let (Named::Text(index) | Named::At(index) | Named::Path(index)) = named;
        let pointer = call.arguments.get(index).and_then(Value::scalar)?;
        let mut address = self.in_recording(pointer)?;
        if matches!(named, Named::Path(_)) {
            address = self.word(t, address)?;
        }
        let text = self.constant_text(t, address)?;
        if matches!(named, Named::At(_)) && !text.starts_with(b"/") {
            let directory = call.arguments.get(index - 1).and_then(Value::scalar)?;
            if self.in_recording(directory)? as i32 != AT_FDCWD {
                return None;
            }
        }
        let path = plain(&text);
        (!path.is_empty()).then_some(path)
    }

    /// The event of a call, and the call's result as it follows from what was there.
    fn touch_file(
        &mut self,
        t: usize,
        path: &[u8],
        deed: Deed,
        (verdict, result): (Verdict, Value),
    ) -> Value {
        let mut place = Place::new(FILES, 1, None);
        if !self.symbolic() {
            let time = self.happened(t);
            let used = Use { deed, thread: t, earliest: time.earliest, latest: time.latest };
            let files = &mut self.learned.files;
            let next = files.uses.len() as u64;
            let (number, uses) = files.uses.entry(path.to_vec()).or_insert((next, Vec::new()));
            uses.push(used);
            place.address += *number;
        } else {
            let Some(&(number, first)) = self.learned.files.told.get(path) else { return result };
            place.address += number;
            if self.memory.get(place.address) == MemoryByte::Unknown {
                self.memory.set(place.address, MemoryByte::Const(u8::from(first)));
            }
        }
        let there = match deed.behind() {
            Some(state) if deed.before().is_none() => {
                self.write(t, place, &[MemoryByte::Const(u8::from(state))], Grain::Access);
                return result;
            }
            Some(state) => {
                let new = Scalar::constant(8, u128::from(state));
                self.read_modify_write(t, place, 8, &mut |_, _| new)
            }
            None => {
                let bytes = self.read(t, place, Grain::Access);
                memory::compose(&mut self.pool, &bytes)
            }
        };
        self.judge_file(t, (there, deed), (verdict, result))
    }

    /// A call that did what it wanted needs what it found; one that failed would have given another result.
    fn judge_file(
        &mut self,
        t: usize,
        (there, deed): (Scalar, Deed),
        (verdict, result): (Verdict, Value),
    ) -> Value {
        let Some(before) = deed.before().filter(|_| self.symbolic()) else { return result };
        for read in std::mem::take(&mut self.pending_reads) {
            self.out.set_recorded(read.var, u128::from(before));
        }
        let state = Scalar::constant(8, u128::from(before));
        let so = value::cmp(&mut self.pool, CmpOp::Eq, there, state);
        let Some(expr) = so.as_expr() else { return result };
        let Some(scalar) = result.scalar().filter(|_| deed.failed) else {
            let site = self.site(t);
            self.add_condition(t, expr, PathConditionKind::Branch, site);
            return result;
        };
        let Some(given) = self.in_recording(scalar) else { return result };
        let width = scalar.width;
        let constant = |number: u64| Scalar::constant(width, u128::from(number));
        let apart = given.wrapping_sub(verdict.success());
        let so = value::resize(&mut self.pool, so, width, false);
        let more = value::bin(&mut self.pool, BinOp::Mul, so, constant(apart));
        let given = value::bin(&mut self.pool, BinOp::Add, more, constant(verdict.success()));
        self.merge(t, &given.into(), &result, "call")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Deed = Deed { wish: Wish::MakeNew, failed: false };
    const IN_THE_WAY: Deed = Deed { wish: Wish::MakeNew, failed: true };
    const REMOVED: Deed = Deed { wish: Wish::Remove, failed: false };
    const FOUND: Deed = Deed { wish: Wish::Find, failed: false };
    const MISSED: Deed = Deed { wish: Wish::Find, failed: true };

    /// Calls of threads, each within two units of time.
    fn first(calls: &[(usize, Deed, u64)]) -> Option<bool> {
        let uses = calls.iter().map(|&(thread, deed, at)| Use {
            deed,
            thread,
            earliest: at,
            latest: at + 2,
        });
        state_at_first(&uses.collect::<Vec<_>>())
    }

    #[test]
    fn what_two_threads_look_for_and_one_makes_counts() {
        assert_eq!(
            first(&[(1, MISSED, 1), (2, MISSED, 2), (1, MADE, 3), (2, IN_THE_WAY, 4)]),
            Some(false)
        );
        assert_eq!(first(&[(1, FOUND, 1), (2, REMOVED, 2), (1, MISSED, 3)]), Some(true));
    }

    #[test]
    fn what_one_thread_has_or_nobody_changes_does_not_count() {
        assert_eq!(first(&[(1, MISSED, 1), (1, MADE, 2), (1, FOUND, 3)]), None);
        assert_eq!(first(&[(1, MISSED, 1), (2, MISSED, 2)]), None);
        assert_eq!(first(&[(1, MADE, 1), (1, REMOVED, 2)]), None);
    }

    #[test]
    fn what_no_order_within_the_clock_explains_does_not_count() {
        // Another process made it, or there was no permission.
        assert_eq!(first(&[(1, MADE, 1), (2, MISSED, 10)]), None);
        // That of another thread may have come behind.
        assert_eq!(first(&[(2, MADE, 2), (1, MISSED, 2), (1, FOUND, 5)]), Some(false));
    }

    #[test]
    fn paths_are_compared_without_what_changes_nothing() {
        assert_eq!(plain(b"./a//b/./c/"), b"a/b/c");
        assert_eq!(plain(b"/a/b"), b"/a/b");
        assert_eq!(plain(b"."), b"");
    }

    #[test]
    fn how_a_file_is_opened_says_what_is_wanted() {
        assert_eq!(Opened::Flags(0).wish(), Wish::Find);
        assert_eq!(Opened::Flags(O_CREAT | 1).wish(), Wish::Make);
        assert_eq!(Opened::Flags(O_CREAT | O_EXCL | 1).wish(), Wish::MakeNew);
        assert_eq!(Opened::Mode(*b"r+\0\0").wish(), Wish::Find);
        assert_eq!(Opened::Mode(*b"w\0\0\0").wish(), Wish::Make);
        assert_eq!(Opened::Mode(*b"wx\0\0").wish(), Wish::MakeNew);
    }
}
