//! Avoidance rules: threads are held back at gates so that an order of events that made the
//! program fail does not come up. What [`AVOID_VARIABLE`](crate::layout::AVOID_VARIABLE) asks for;
//! the form is in docs/fix.md.
//!
//! Only the gates that the rules name are opened, so that all others cost nothing. No thread is
//! held back longer than the rules' patience: then it goes on as it would have, and that is
//! counted. Under a scheduler a thread that is held back waits as for a mutex, and with a schedule
//! to follow without a limit: the scheduler sees when nobody can go on, and ends the process.

use crate::gates;
use crate::layout::{AVOID_HEAD, SyncPoint, site_hash};
use crate::memory::List;
use crate::report;
use crate::schedule::{self, Request, WaitKind, Wake};
use crate::script::number;
use crate::sys;
use crate::text::Text;
use crate::threads::Thread;
use crate::tls;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// No more rules than this in one file.
const MOST: usize = 16;
/// Milliseconds that a thread is held back at most, unless the file says otherwise.
const PATIENCE: u64 = 1000;

/// What a place is in a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// Behind it only one thread may be at a time.
    Enter,
    /// Whoever comes here is no longer behind an entry, and has done what the first place stands
    /// for.
    Leave,
    /// What others wait for happens right behind it.
    First,
    /// As `First`, of what a call does that has a sync point of its own before it. A wait on a condition
    /// variable has happened when it has begun.
    Call,
    /// Who comes here waits until that has happened once.
    Then,
}

/// A place of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    site: u64,
    rule: usize,
    role: Role,
}

/// What is going on at a rule's places.
struct State {
    /// The kernel's id of the thread that is behind an entry; 0 for none.
    owner: AtomicI32,
    /// The thread that is behind the first place, and may not have done it yet.
    doing: AtomicI32,
    /// The thread that is on its way into a call that does it.
    calling: AtomicI32,
    /// It has happened.
    done: AtomicU32,
    /// Changes with all of these, for waiting threads to sleep on.
    change: AtomicU32,
}

impl State {
    const fn new() -> Self {
        Self {
            owner: AtomicI32::new(0),
            doing: AtomicI32::new(0),
            calling: AtomicI32::new(0),
            done: AtomicU32::new(0),
            change: AtomicU32::new(0),
        }
    }

    /// What a scheduler knows the rule by.
    fn object(&self) -> *const c_void {
        core::ptr::from_ref(self).cast()
    }

    fn changed(&self) {
        self.change.fetch_add(1, Ordering::Release);
        sys::futex_wake(&self.change, u32::from(u16::MAX));
        schedule::released(self.object());
    }

    fn leave(&self, me: i32) {
        if self.doing.load(Ordering::Relaxed) == me {
            self.doing.store(0, Ordering::Relaxed);
            self.done.store(1, Ordering::Release);
            self.changed();
        }
        if self.owner.load(Ordering::Relaxed) == me {
            self.owner.store(0, Ordering::Release);
            self.changed();
        }
    }

    /// May the thread go on behind a place of this role? An entry is the thread's from then on.
    fn admits(&self, role: Role, me: i32) -> bool {
        match role {
            Role::Enter => {
                let taken =
                    self.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
                taken.is_ok() || taken == Err(me)
            }
            Role::Then => self.done.load(Ordering::Acquire) != 0,
            Role::Leave | Role::First | Role::Call => true,
        }
    }
}

/// The rules of a file.
pub struct Rules {
    /// Sorted.
    places: List<Place>,
    /// In nanoseconds.
    patience: u64,
    states: [State; MOST],
}

static RULES: AtomicPtr<Rules> = AtomicPtr::new(null_mut());
static HELD_BACK: AtomicU64 = AtomicU64::new(0);
static GAVE_UP: AtomicU64 = AtomicU64::new(0);

/// Why a text has no rules: the line, and what is wrong with it.
pub type Problem = (u32, &'static str);

const NO_HEAD: Problem = (1, "`symbiosis-avoid 1` expected");
const FORM: &str = "`rule alone`, `rule after`, `patience MILLISECONDS`, or `enter`, `leave`, `first`, \
                    `call` or `then` with a site expected";

impl Rules {
    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// The first line that is wrong, and why.
    pub fn parse(text: &[u8]) -> Result<Self, Problem> {
        let lines = text.split(|&byte| byte == b'\n');
        let no_memory = (1, "there is no memory for the rules");
        let mut rules = Self {
            places: List::with_room(lines.clone().count()).ok_or(no_memory)?,
            patience: PATIENCE * 1_000_000,
            states: [const { State::new() }; MOST],
        };
        let mut count = 0;
        for (line, text) in (1u32..).zip(lines) {
            let text = text.split(|&byte| byte == b'#').next().unwrap_or(&[]).trim_ascii();
            if line == 1 {
                if text != AVOID_HEAD.as_bytes() {
                    return Err(NO_HEAD);
                }
                continue;
            }
            let mut words = text.split(|byte| byte.is_ascii_whitespace()).filter(|w| !w.is_empty());
            let Some(word) = words.next() else { continue };
            let (Some(argument), None) = (words.next(), words.next()) else {
                return Err((line, FORM));
            };
            let role = match word {
                b"rule" if matches!(argument, b"alone" | b"after") => {
                    count += 1;
                    if count > MOST {
                        return Err((line, "more than 16 rules"));
                    }
                    continue;
                }
                b"patience" => {
                    let milliseconds = number(argument).ok_or((line, FORM))?;
                    rules.patience = milliseconds.saturating_mul(1_000_000);
                    continue;
                }
                b"enter" => Role::Enter,
                b"leave" => Role::Leave,
                b"first" => Role::First,
                b"call" => Role::Call,
                b"then" => Role::Then,
                _ => return Err((line, FORM)),
            };
            let rule = count.checked_sub(1).ok_or((line, "a place without a rule"))?;
            rules.places.push(Place { site: site_hash(argument), rule, role });
        }
        rules.places.as_mut_slice().sort_unstable();
        Ok(rules)
    }

    fn at(&self, site: u64) -> &'static [Place] {
        let all = self.places.as_slice();
        let begin = all.partition_point(|place| place.site < site);
        let end = all.partition_point(|place| place.site <= site);
        all.get(begin..end).unwrap_or(&[])
    }
}

/// Follows these rules from here on. To be called once.
pub fn start(rules: &'static Rules) {
    RULES.store(core::ptr::from_ref(rules).cast_mut(), Ordering::Release);
    // SAFETY: the function stays.
    unsafe { sys::on_exit(at_exit, null_mut()) };
}

/// In a child of `fork` there is one thread, which waits for nobody.
pub fn forget() {
    RULES.store(null_mut(), Ordering::Release);
}

/// Are there rules?
#[inline]
#[must_use]
pub fn active() -> bool {
    !RULES.load(Ordering::Relaxed).is_null()
}

fn rules() -> Option<&'static Rules> {
    // SAFETY: null, or what `start` got.
    unsafe { RULES.load(Ordering::Acquire).as_ref() }
}

/// Do the rules name this site?
#[must_use]
pub fn is_named(site: u64) -> bool {
    rules().is_some_and(|rules| !rules.at(site).is_empty())
}

/// The calling thread comes to a place.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn arrive(thread: *mut Thread, site: u64) {
    let Some(rules) = rules() else { return };
    // SAFETY: the caller vouches for the record.
    let me = unsafe { (*thread).tid };
    for place in rules.at(site).iter().filter(|place| place.role == Role::Leave) {
        if let Some(state) = rules.states.get(place.rule) {
            sys::keeping_errno(|| state.leave(me));
        }
    }
}

/// The calling thread goes on behind a place, when the rules let it.
///
/// # Safety
///
/// `thread` is the calling thread's own record.
pub unsafe fn pass(thread: *mut Thread, site: u64) {
    let Some(rules) = rules() else { return };
    // SAFETY: the caller vouches for the record. A signal handler that interrupted the scheduler
    // must not wait.
    let (me, inside) =
        unsafe { ((*thread).tid, core::ptr::read_volatile(&raw const (*thread).gate.inside)) };
    if inside {
        return;
    }
    for place in rules.at(site) {
        let Some(state) = rules.states.get(place.rule) else { continue };
        match place.role {
            Role::First => state.doing.store(me, Ordering::Relaxed),
            Role::Call => state.calling.store(me, Ordering::Relaxed),
            Role::Enter | Role::Then if !state.admits(place.role, me) => {
                sys::keeping_errno(|| hold_back(rules, state, place.role, me));
            }
            Role::Enter | Role::Then | Role::Leave => {}
        }
    }
}

/// The calling thread comes to a sync point.
///
/// # Safety
///
/// `thread` is the calling thread's own record, or null.
#[inline]
pub unsafe fn at_point(thread: *mut Thread, point: SyncPoint, site: impl FnOnce() -> u64) {
    let Some(rules) = rules() else { return };
    if thread.is_null() {
        return;
    }
    // SAFETY: the caller vouches for the record.
    unsafe {
        let me = (*thread).tid;
        for state in &rules.states {
            // What it was about to do is done, and one that ends is nowhere any more. Whom a thread joins may be held
            // back until it has left: no lock is held over a join that could be one.
            let leaves = matches!(point, SyncPoint::Exit | SyncPoint::Join);
            if leaves || state.doing.load(Ordering::Relaxed) == me {
                sys::keeping_errno(|| state.leave(me));
            }
            if state.calling.load(Ordering::Relaxed) == me {
                state.calling.store(0, Ordering::Relaxed);
                state.doing.store(me, Ordering::Relaxed);
            }
        }
        let site = site();
        arrive(thread, site);
        pass(thread, site);
        if point == SyncPoint::Relock {
            resume(rules, thread);
        }
    }
}

/// The calling thread has done a task that a library gave it, and is nowhere any more, as one that ends.
pub fn task_ends() {
    let Some(rules) = rules() else { return };
    // SAFETY: the record is the calling thread's own, here and below.
    let thread = unsafe { *tls::thread_slot() };
    if thread.is_null() {
        return;
    }
    for state in &rules.states {
        // SAFETY: as above.
        sys::keeping_errno(|| state.leave(unsafe { (*thread).tid }));
    }
}

/// The calling thread begins a wait on a condition variable, which gives its mutex back, and with it
/// what stands for the mutex. To be called when the scheduler has let it begin: nobody may come
/// between this and the wait.
pub fn waits() {
    let Some(rules) = rules() else { return };
    // SAFETY: the record is the calling thread's own, here and below.
    let thread = unsafe { *tls::thread_slot() };
    if thread.is_null() {
        return;
    }
    // SAFETY: as above.
    let me = unsafe { (*thread).tid };
    for (number, state) in rules.states.iter().enumerate() {
        if state.doing.load(Ordering::Relaxed) == me && state.owner.load(Ordering::Relaxed) != me {
            sys::keeping_errno(|| state.leave(me));
        }
        if state.owner.load(Ordering::Relaxed) == me {
            // SAFETY: as above.
            unsafe { (*thread).gate.suspended |= 1 << number };
            sys::keeping_errno(|| state.leave(me));
        }
    }
}

/// The calling thread's wait on a condition variable is over, and it has the mutex again: it is
/// behind its entries again unless somebody else is there by now. It must not be held back here,
/// since others may need the mutex.
pub fn woken() {
    let Some(rules) = rules() else { return };
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() {
            return;
        }
        let suspended = core::mem::take(&mut (*thread).gate.suspended);
        for (number, state) in rules.states.iter().enumerate() {
            if suspended & (1 << number) != 0 {
                state.admits(Role::Enter, (*thread).tid);
            }
        }
    }
}

unsafe fn resume(rules: &Rules, thread: *mut Thread) {
    // SAFETY: the caller vouches for the record.
    let (me, suspended) =
        unsafe { ((*thread).tid, core::mem::take(&mut (*thread).gate.suspended)) };
    for (number, state) in rules.states.iter().enumerate() {
        if suspended & (1 << number) != 0 && !state.admits(Role::Enter, me) {
            sys::keeping_errno(|| hold_back(rules, state, Role::Enter, me));
        }
    }
}

fn hold_back(rules: &Rules, state: &State, role: Role, me: i32) {
    HELD_BACK.fetch_add(1, Ordering::Relaxed);
    // With a schedule, a time limit of the line's thread ends at once, and the scheduler sees when
    // nobody can go on.
    let scripted = gates::script().is_some();
    let deadline = if scripted || !schedule::active() {
        schedule::NEVER
    } else {
        schedule::deadline(rules.patience)
    };
    let request = || Request {
        owner: state.owner.as_ptr(),
        deadline,
        ..Request::on(WaitKind::Mutex, state.object())
    };
    let until = sys::clock(sys::CLOCK_MONOTONIC).saturating_add(rules.patience);
    loop {
        let seen = state.change.load(Ordering::Acquire);
        if state.admits(role, me) {
            return;
        }
        let late = if schedule::active() {
            match schedule::wait(request(), None) {
                Some(wake) => wake != Wake::Again,
                // A thread that no scheduler knows: it does not wait.
                None => true,
            }
        } else {
            let left = until.saturating_sub(sys::clock(sys::CLOCK_MONOTONIC));
            if left > 0 {
                sys::futex_wait(&state.change, seen, Some(left));
            }
            left == 0
        };
        if late {
            GAVE_UP.fetch_add(1, Ordering::Relaxed);
            tell();
            return;
        }
    }
}

fn tell() {
    let counts = [&HELD_BACK, &GAVE_UP].map(|count| count.load(Ordering::Relaxed));
    report::avoided(counts[0], counts[1]);
}

/// Says how often threads were held back: in the report, or on standard error when the rules were
/// given up.
unsafe extern "C" fn at_exit(_: c_int, _: *mut c_void) {
    if rules().is_none() {
        return;
    }
    tell();
    let gave_up = GAVE_UP.load(Ordering::Relaxed);
    if gave_up > 0 && !report::is_there() {
        let mut text = Text::<200>::new();
        text.push(b"threads were held back ").push_decimal(HELD_BACK.load(Ordering::Relaxed));
        text.push(b" times to avoid a failure, and let go too early ").push_decimal(gave_up);
        report::complain(text.push(b" times").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_with_their_places() {
        let text = b"symbiosis-avoid 1\n# a comment\npatience 50\nrule alone\n\
                     enter a.c:f:read:x # here\nleave a.c:f:read:y\nrule after\nfirst a.c:f:read:x\n";
        let rules = Rules::parse(text).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!(rules.patience, 50_000_000);
        let places = rules.at(site_hash(b"a.c:f:read:x"));
        let roles: Vec<_> = places.iter().map(|place| (place.rule, place.role)).collect();
        assert_eq!(roles, [(0, Role::Enter), (1, Role::First)]);
        assert!(rules.at(site_hash(b"a.c:g:read:x")).is_empty());
    }

    #[test]
    fn what_is_no_rule_is_refused_by_its_line() {
        let line = |text: &[u8]| Rules::parse(text).err().map(|problem| problem.0);
        assert_eq!(line(b""), Some(1));
        assert_eq!(line(b"symbiosis-avoid 2\n"), Some(1));
        assert_eq!(line(b"symbiosis-avoid 1\nenter a.c:f:read:x\n"), Some(2));
        assert_eq!(line(b"symbiosis-avoid 1\n\nrule never\n"), Some(3));
        assert_eq!(line(b"symbiosis-avoid 1\nrule alone\nenter\n"), Some(3));
        assert_eq!(line(b"symbiosis-avoid 1\npatience soon\n"), Some(2));
    }

    #[test]
    fn one_thread_at_a_time_is_behind_an_entry() {
        let state = State::new();
        assert!(state.admits(Role::Enter, 1) && state.admits(Role::Enter, 1));
        assert!(!state.admits(Role::Enter, 2));
        state.leave(2);
        assert!(!state.admits(Role::Enter, 2), "it was not its own");
        state.leave(1);
        assert!(state.admits(Role::Enter, 2));
        assert!(!state.admits(Role::Then, 1));
        state.doing.store(2, Ordering::Relaxed);
        state.leave(2);
        assert!(state.admits(Role::Then, 1));
    }
}
