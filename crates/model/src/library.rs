//! What the libraries of C++ and Rust, and packages, do for themselves: which events are steps of that, told by the
//! functions and files of their call stacks.

use crate::event::{ChannelStep, Event, EventKind, LockMode, PackageLock, Site};

impl Event {
    /// Is it an operation of an atomic variable, as the libraries of C++ and Rust have them?
    #[must_use]
    pub fn is_atomic_operation(&self) -> bool {
        self.library().iter().any(|site| {
            let file = site.file.rsplit('/').next().unwrap_or_default();
            ["atomic.rs", "atomic_base.h", "atomic"].contains(&file)
        })
    }

    /// The function of Rust's library that the program called at [`site`](Self::site), without the types that it is for;
    /// `None` for an event of the program's own code.
    #[must_use]
    pub fn called_of_rusts_library(&self) -> Option<&str> {
        let called = self.library().last().filter(|site| rust_file(site).is_some())?;
        let plain = called.function.split('<').next().unwrap_or_default();
        (!plain.is_empty()).then_some(plain)
    }

    /// Does Rust's library put something there that it makes for the program, as `Arc::new` and `Box::new` do?
    #[must_use]
    pub fn is_in_constructor_of_library(&self) -> bool {
        matches!(self.kind, EventKind::Write { .. })
            && self.called_of_rusts_library() == Some("new")
    }

    /// The function of a channel, of Rust's library or a package, that it is a step of. The program may have called it by way of
    /// another one, such as `sum` of what an iterator receives, or the end of a variable.
    #[must_use]
    pub fn called_of_channel(&self) -> Option<&str> {
        let channels = ["std/src/sync/mpmc/", "std/src/sync/mpsc"];
        let inside = |site: &&Site| {
            rust_file(site).is_some_and(|file| channels.iter().any(|part| file.starts_with(part)))
                || package_file(site).is_some_and(|place| is_of_packages(place, &CHANNELS))
        };
        let called = self.library().iter().rev().find(inside)?;
        Some(plain_name(&called.function))
    }

    /// What the program had a channel do.
    #[must_use]
    pub fn channel_step(&self) -> Option<ChannelStep> {
        match self.called_of_channel()? {
            "send" | "try_send" | "send_timeout" => Some(ChannelStep::Send),
            "recv" | "try_recv" | "recv_timeout" | "recv_deadline" | "next" => {
                Some(ChannelStep::Receive)
            }
            "drop" | "drop_in_place" => Some(ChannelStep::Drop),
            _ => None,
        }
    }

    /// Is it a step of what takes something from a channel, and waits until there is something?
    #[must_use]
    pub fn waits_for_channel(&self) -> bool {
        matches!(self.called_of_channel(), Some("recv" | "next"))
    }

    /// Is it a step of a barrier, a latch, a semaphore or a wait of the C++ library, or of how a thread of Rust's
    /// library, or of a package of locks, sleeps and is woken? What such an object keeps is no variable of the program,
    /// and that it looks again before it sleeps is its own affair.
    #[must_use]
    pub fn is_in_synchronisation(&self) -> bool {
        self.library().iter().any(|site| {
            let file = site.file.rsplit('/').next().unwrap_or_default();
            SYNCHRONISATION.contains(&file)
                || (file == ATOMIC_POINTERS && POINTER_LOCKS.contains(&site.function.as_str()))
                || rust_file(site).is_some_and(is_waiting)
                || package_file(site).is_some_and(is_waiting_of_package)
        }) || self.is_in_once()
            || self.keeps_stop_state()
    }

    /// Is it how a stop state of the C++ library is locked and counted, or whom it tells? Whether it was asked to stop is the
    /// program's affair, but for whoever asks it again.
    fn keeps_stop_state(&self) -> bool {
        let of_state = |site: &&Site| site.file.rsplit('/').next() == Some(STOP_STATE);
        let mut inside = self.library().iter().filter(of_state).peekable();
        let is_access = self.kind.is_access() && inside.peek().is_some();
        let is_read = matches!(self.kind, EventKind::Read { .. });
        let counts = |site: &Site| match site.function.as_str() {
            "_M_stop_requested" => true,
            "_M_try_lock_and_stop" => !is_read,
            _ => false,
        };
        is_access && !inside.any(counts)
    }

    /// Is it how Rust's library has a routine run once, and others wait for that? Who asks whether it has run, or sets what it
    /// would have made, goes by that.
    fn is_in_once(&self) -> bool {
        self.is_of_rusts_once()
            && self.runs_in_rust(&[
                "call_once",
                "call_once_force",
                "get_or_init",
                "get_or_try_init",
                "force",
            ])
            && !self.sets_once()
    }

    /// Is it a step of setting what Rust's library sets once, as `OnceLock::set` does? How it goes on from one step to the next is its
    /// own affair.
    #[must_use]
    pub fn sets_once(&self) -> bool {
        self.is_of_rusts_once() && self.runs_in_rust(&["set", "try_insert"])
    }

    /// Does the program ask whether something is set that Rust's library sets once, as `OnceLock::get` does?
    #[must_use]
    pub fn asks_whether_it_is_set(&self) -> bool {
        matches!(self.kind, EventKind::Read { .. })
            && self.is_of_rusts_once()
            && self.called_of_rusts_library() == Some("get")
    }

    /// Does the program look something up in a map of Rust's library (`false`), or insert it (`true`)?
    #[must_use]
    pub fn inserts_into_map(&self) -> Option<bool> {
        let of_map = |site: &Site| {
            rust_file(site).is_some_and(|file| RUST_MAPS.iter().any(|map| file.starts_with(map)))
        };
        match self.called_of_rusts_library()? {
            "get" | "get_mut" | "contains_key" => Some(false),
            "insert" => Some(true),
            _ => None,
        }
        .filter(|_| self.library().last().is_some_and(of_map))
    }

    fn is_of_rusts_once(&self) -> bool {
        let once = |site: &Site| rust_file(site).is_some_and(|file| file.starts_with(RUST_ONCE));
        self.library().iter().any(once)
    }

    /// Is it in one of Rust's library's functions of these names?
    fn runs_in_rust(&self, names: &[&str]) -> bool {
        self.library().iter().any(|site| {
            let name = site.function.split('<').next().unwrap_or_default();
            rust_file(site).is_some() && names.contains(&name)
        })
    }

    /// What it does with the word that a package of locks keeps for a lock, and the call of the package, from its outermost
    /// place on: asking for the lock, or giving it back. Calls that only try are none.
    #[must_use]
    pub fn package_lock(&self) -> Option<(PackageLock, &[Site])> {
        let library = self.library();
        let of_locks = |site: &&Site| package_file(site).is_some_and(is_lock_of_package);
        let word = library.iter().find(|site| package_file(site).is_some())?;
        let outermost = library.iter().rposition(|site| of_locks(&site))?;
        of_locks(&word).then_some(())?;
        let mut inside = library.iter().filter(of_locks).map(|site| plain_name(&site.function));
        let step = match plain_name(&library.get(outermost)?.function) {
            name if name.starts_with("try_") => return None,
            _ if inside.clone().any(|name| name.starts_with("unlock")) => PackageLock::GivesBack,
            _ => inside.find_map(asked_mode).map(PackageLock::Asks)?,
        };
        Some((step, self.stack.get(outermost..)?))
    }

    /// Is it what a package of locks, or of channels, or Rust's library for its channels, keeps so that threads can wait?
    /// Nothing of the program's goes through that.
    #[must_use]
    pub fn only_lets_threads_wait(&self) -> bool {
        let of_channels = |file: &str| CHANNELS_WAITING.iter().any(|part| file.starts_with(part));
        // Whom a package wakes it has a reason of its own for.
        let parks = |site: &Site| rust_file(site).is_some_and(|file| file.starts_with(PARKING));
        let library = self.library();
        if library.iter().any(parks) && library.iter().any(|site| package_file(site).is_some()) {
            return true;
        }
        library.iter().any(|site| {
            package_file(site).is_some_and(is_waiting_of_package)
                || rust_file(site).is_some_and(of_channels)
        })
    }

    /// Is it what OpenMP's runtime does for itself? Whose order that is says less than the order of what the
    /// program does, in which it shows as well. Critical sections are the program's.
    #[must_use]
    pub fn is_of_openmp(&self) -> bool {
        let mut inside = self.stack.iter().take_while(|site| site.file.is_empty());
        inside.any(|site| {
            let entry = site.function.strip_prefix("__kmpc_");
            entry.is_some_and(|entry| !entry.contains("critical"))
                || site.function.starts_with("symbiosis_omp_")
        })
    }

    /// Is it how a package that runs tasks hands them to its threads, or how one that frees objects later knows who reads? In which
    /// order its threads came to that decides nothing but where and when a task runs, and what is freed.
    #[must_use]
    pub fn runs_tasks(&self) -> bool {
        self.library().iter().any(|site| package_file(site).is_some_and(is_running_tasks))
    }

    /// Is it nothing that the program does or goes by: a step of how the library, or OpenMP's runtime, lets threads wait,
    /// or runs tasks, or counts pointers, or what Rust's library, or a package, does where no line of the program called it, as a harness
    /// of tests does or the threads of a pool?
    #[must_use]
    pub fn is_affair_of_library(&self) -> bool {
        let site = self.site();
        self.is_in_synchronisation()
            || (self.counts_references() && !self.asks_whether_it_is_there())
            || self.asks_who_is_left()
            || self.is_of_openmp()
            || self.runs_tasks()
            || rust_file(site).is_some()
            || package_file(site).is_some()
            || self
                .name
                .as_deref()
                .is_some_and(|name| RUST_OWN.iter().any(|own| name.starts_with(own)))
    }

    /// Is it part of how a library takes several locks at once, as `std::lock` and `std::scoped_lock` do? Such a library tries
    /// all locks but one, and who does not get one gives the others back and waits: it has all of them behind the call.
    #[must_use]
    pub fn takes_several_locks(&self) -> bool {
        self.library().iter().any(|site| {
            let name = site.function.split('<').next().unwrap_or_default();
            SEVERAL_LOCKS.contains(&name)
        })
    }

    /// Does a shared pointer give up its part of the object? It has no use of that behind it.
    #[must_use]
    pub fn gives_up_reference(&self) -> bool {
        self.library().iter().any(|site| {
            RELEASES.contains(&site.function.as_str()) || counts(site, &["drop", "release"])
        })
    }

    /// Does a weak pointer look whether the object is still there? What the program does next goes by that.
    #[must_use]
    pub fn asks_whether_it_is_there(&self) -> bool {
        let asks = |site: &Site| site.function == LOCKS_WEAK || counts(site, &["upgrade"]);
        matches!(self.kind, EventKind::Read { .. }) && self.library().iter().any(asks)
    }

    /// Does a library that destroys an object of its own look whether anybody else still has a part of that, as a
    /// `packaged_task` does for its future?
    #[must_use]
    pub fn asks_who_is_left(&self) -> bool {
        let library = self.library();
        library.iter().any(|site| site.function == "_M_get_use_count")
            && library.last().is_some_and(|site| site.function.starts_with('~'))
    }

    /// Does it change how many shared pointers an object has? In which order such changes come matters to who
    /// reads the number alone.
    #[must_use]
    pub fn counts_references(&self) -> bool {
        let takes = |site: &Site| {
            TAKES.contains(&site.function.as_str())
                || counts(site, &["clone", "acquire", "upgrade", "downgrade"])
        };
        self.gives_up_reference() || self.library().iter().any(takes)
    }

    /// The places of the stack that are inside of libraries: all of them where the program has no part in it.
    fn library(&self) -> &[Site] {
        match self.site().is_in_library() {
            true => &self.stack,
            false => self.stack.get(..self.depth()).unwrap_or_default(),
        }
    }
}

/// The place's file in the sources of Rust's library, such as `std/src/thread/scoped.rs`.
fn rust_file(site: &Site) -> Option<&str> {
    let path = site.file.strip_prefix("/rustc/")?;
    path.split_once("/library/").map(|(_, file)| file)
}

/// The package, with its version, and the file in it, for a place in what cargo got: `lock_api-0.4.14`, `src/mutex.rs`.
fn package_file(site: &Site) -> Option<(&str, &str)> {
    let (_, path) = site.file.split_once("/.cargo/registry/src/")?;
    path.split_once('/')?.1.split_once('/')
}

/// Is the package, with its version, the one of this name?
fn is_package(package: &str, name: &str) -> bool {
    let version = package.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
}

/// Is the file in one of these folders, or one of these files, of the packages?
fn is_of_packages((package, file): (&str, &str), all: &[(&str, &[&str])]) -> bool {
    all.iter().any(|(name, parts)| {
        is_package(package, name) && parts.iter().any(|part| file.starts_with(part))
    })
}

/// Is the file of a package of locks, or about how threads or tasks wait for locks, barriers and channels?
fn is_waiting_of_package(place: (&str, &str)) -> bool {
    is_of_packages(place, &PACKAGES_WAITING)
}

/// Is it the file of a lock of a package, such as `parking_lot`'s, apart from how its threads are parked?
fn is_lock_of_package(place: (&str, &str)) -> bool {
    is_of_packages(place, &PACKAGES_OF_LOCKS)
}

/// How a lock is asked for by a function of its package.
fn asked_mode(name: &str) -> Option<LockMode> {
    match name.split('_').next()? {
        "read" => Some(LockMode::Shared),
        "lock" if name.contains("shared") => Some(LockMode::Shared),
        "lock" | "write" | "upgradable" | "upgrade" => Some(LockMode::Exclusive),
        _ => None,
    }
}

/// A function's name without the types that it is for.
fn plain_name(function: &str) -> &str {
    function.split('<').next().unwrap_or_default()
}

/// Is the file about how a package runs tasks, or knows who reads?
fn is_running_tasks(place: (&str, &str)) -> bool {
    is_of_packages(place, &PACKAGES_RUNNING)
}

/// Is the file of Rust's library about how threads sleep, are woken, and end?
fn is_waiting(file: &str) -> bool {
    RUST_SYNCHRONISATION.iter().any(|part| file.starts_with(part))
}

/// Is it one of these functions (their names without parameters) of Rust's `Arc` or `Weak`, or of the ends of a
/// channel?
fn counts(site: &Site, functions: &[&str]) -> bool {
    let name = site.function.split('<').next().unwrap_or_default();
    let counting = ["alloc/src/sync.rs", "std/src/sync/mpmc/counter.rs"];
    let of_package = |(package, file): (&str, &str)| {
        package.starts_with("crossbeam-channel-") && file == "src/counter.rs"
    };
    functions.contains(&name)
        && (rust_file(site).is_some_and(|file| counting.contains(&file))
            || package_file(site).is_some_and(of_package))
}

/// How the names of variables begin in which Rust's library keeps what the system can do, such as whether there is `statx`,
/// and how many panics there are, which each guard asks.
const RUST_OWN: [&str; 2] = ["std::sys::", "std::panicking::"];

/// The files of Rust's library that the maps with an `entry` are in.
const RUST_MAPS: [&str; 2] =
    ["std/src/collections/hash/map.rs", "alloc/src/collections/btree/map.rs"];

/// The headers of the C++ library's synchronisation that is instrumented with the program.
const SYNCHRONISATION: [&str; 8] = [
    "barrier",
    "latch",
    "semaphore",
    "semaphore_base.h",
    "atomic_wait.h",
    "atomic_timed_wait.h",
    "atomic_futex.h",
    "atomic_sync.h",
];

/// The header of the C++ library's atomic shared pointers, and the functions in it that have to do with the lock which each
/// pointer has in a bit.
const ATOMIC_POINTERS: &str = "shared_ptr_atomic.h";
const POINTER_LOCKS: [&str; 4] = ["lock", "unlock", "_M_swap_unlock", "_M_wait_unlock"];

/// The header of the C++ library's stop tokens.
const STOP_STATE: &str = "stop_token";

/// The files, or folders of files, of Rust's library about how threads sleep, are woken, and end. What channels do
/// with their messages is not among them: in which order two are sent says something about the program.
const RUST_SYNCHRONISATION: [&str; 7] = [
    "std/src/sync/mpmc/context.rs",
    "std/src/sync/mpmc/waker.rs",
    "std/src/sync/barrier.rs",
    "std/src/sys/sync/thread_parking/",
    "std/src/sys/thread_local/",
    "std/src/thread/scoped.rs",
    "std/src/thread/spawnhook.rs",
];

/// The files of Rust's library about how a thread sleeps until it is woken by its handle.
const PARKING: &str = "std/src/sys/sync/thread_parking/";

/// The files of Rust's library about how threads wait for channels.
const CHANNELS_WAITING: [&str; 2] = ["std/src/sync/mpmc/context.rs", "std/src/sync/mpmc/waker.rs"];

/// The files of packages about how threads and tasks wait for locks, barriers and channels. What is sent or told by them is not
/// among them.
const PACKAGES_WAITING: [(&str, &[&str]); 6] = [
    ("parking_lot", &["src/"]),
    ("parking_lot_core", &["src/"]),
    ("lock_api", &["src/"]),
    ("crossbeam-channel", &["src/context.rs", "src/waker.rs"]),
    ("dashmap", &["src/lock.rs"]),
    ("tokio", &["src/sync/mutex.rs", "src/sync/rwlock", "src/sync/barrier.rs"]),
];

/// The files of packages of channels.
const CHANNELS: [(&str, &[&str]); 2] = [("crossbeam-channel", &["src/"]), ("flume", &["src/"])];

/// The files of packages that have the words of their locks.
const PACKAGES_OF_LOCKS: [(&str, &[&str]); 3] = [
    ("parking_lot", &["src/raw_mutex.rs", "src/raw_rwlock.rs"]),
    ("lock_api", &["src/mutex.rs", "src/rwlock.rs"]),
    ("dashmap", &["src/lock.rs"]),
];

/// The files of packages about how tasks come to threads, and about who may still read what is freed later. What a package calls
/// with a closure of its own, as `arc-swap` does for the pointer itself, is none of it.
const PACKAGES_RUNNING: [(&str, &[&str]); 5] = [
    ("tokio", &["src/runtime/", "src/task/", "src/util/"]),
    ("rayon-core", &["src/"]),
    (
        "crossbeam-epoch",
        &[
            "src/collector.rs",
            "src/default.rs",
            "src/epoch.rs",
            "src/guard.rs",
            "src/internal.rs",
            "src/sync/",
        ],
    ),
    ("async-task", &["src/"]),
    ("async-executor", &["src/"]),
];

/// The files of Rust's library about what is done once.
const RUST_ONCE: &str = "std/src/sys/sync/once/";

/// What takes several locks in the C++ libraries and in Boost.
const SEVERAL_LOCKS: [&str; 6] =
    ["lock", "scoped_lock", "__lock_impl", "__lock_first", "lock_impl", "lock_range"];

/// What shared pointers of the C++ library call when they are copied.
const TAKES: [&str; 3] = ["_M_add_ref_copy", LOCKS_WEAK, "__add_shared"];

/// What a weak pointer of the C++ library calls when a shared one is made of it.
const LOCKS_WEAK: &str = "_M_add_ref_lock_nothrow";

/// What its shared pointers call when they are destroyed or take another object.
const RELEASES: [&str; 3] = ["_M_release", "_M_weak_release", "__release_shared"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{EventId, ObjectId, ThreadId};
    use std::sync::Arc;

    fn site(file: &str, line: u32) -> Site {
        Site { file: file.to_owned(), line, ..Site::default() }
    }

    #[test]
    fn what_no_line_of_the_program_called_is_the_librarys_affair() {
        let harness = ("/rustc/0a1b/library/test/src/lib.rs", "run_test");
        let atomic = ("/rustc/0a1b/library/core/src/sync/atomic.rs", "atomic_load<u8>");
        let pool =
            ("/home/me/.cargo/registry/src/index-0a1b/rayon-core-1.12.1/src/sleep/mod.rs", "sleep");
        let own = ("src/lib.rs", "lines");
        assert!(event(&[atomic, harness]).is_affair_of_library());
        assert!(event(&[atomic, pool]).is_affair_of_library());
        assert!(!event(&[atomic, own, harness]).is_affair_of_library());
        let count = ("/usr/include/c++/12/bits/shared_ptr_base.h", "_M_get_use_count");
        let task = ("/usr/include/c++/12/future", "~packaged_task");
        assert!(event(&[count, task, own]).is_affair_of_library());
        let asked = ("/usr/include/c++/12/bits/shared_ptr_base.h", "use_count");
        assert!(!event(&[count, asked, own]).is_affair_of_library());
        let counted = [("/rustc/0a1b/library/alloc/src/sync.rs", "drop<App>"), own];
        assert!(event(&counted).is_affair_of_library());
        for asks in [(count.0, "_M_add_ref_lock_nothrow"), (counted[0].0, "upgrade<App>")] {
            let mut asked = event(&[asks, own]);
            assert!(asked.is_affair_of_library(), "it takes a part");
            asked.kind = EventKind::Read { parts: Vec::new() };
            assert!(!asked.is_affair_of_library(), "it looks whether there is one");
        }
        let pointers = "/usr/include/c++/12/bits/shared_ptr_atomic.h";
        for locks in ["lock", "unlock", "_M_swap_unlock"] {
            assert!(event(&[(pointers, locks), (pointers, "load"), own]).is_affair_of_library());
        }
        assert!(!event(&[(pointers, "swap"), (pointers, "store"), own]).is_affair_of_library());
        let found = ("/usr/include/c++/12/bits/shared_ptr.h", "get");
        assert!(!event(&[found]).is_affair_of_library());
        for runtime in ["__kmpc_omp_task", "__kmpc_barrier", "symbiosis_omp_worker"] {
            assert!(event(&[("", runtime), own]).is_affair_of_library(), "{runtime}");
        }
        assert!(!event(&[("", "__kmpc_critical"), own]).is_affair_of_library());
    }

    #[test]
    fn what_is_done_with_a_channel_is_told_by_what_the_program_called() {
        let list = ("/rustc/0a1b/library/std/src/sync/mpmc/list.rs", "start_recv<u32>");
        let own = ("src/main.rs", "main");
        let step = |function: &str| {
            event(&[list, ("/rustc/0a1b/library/std/src/sync/mpsc.rs", function), own])
                .channel_step()
        };
        assert_eq!(step("recv<u32>"), Some(ChannelStep::Receive));
        assert_eq!(step("send<u32>"), Some(ChannelStep::Send));
        assert_eq!(step("drop_in_place<std::sync::mpsc::Receiver<u32>>"), Some(ChannelStep::Drop));
        assert_eq!(step("clone"), None);
        // An iterator is the library's, too, and so is the end of what has an end of a channel.
        let called = |inner: (&str, &str), by: (&str, &str)| event(&[list, inner, by, own]);
        let mpsc = "/rustc/0a1b/library/std/src/sync/mpsc.rs";
        let summed =
            called((mpsc, "next<u32>"), ("/rustc/0a1b/library/core/src/iter/traits.rs", "sum"));
        assert!(summed.waits_for_channel());
        let ended = called(
            (mpsc, "drop<u32>"),
            ("/rustc/0a1b/library/core/src/ptr/mod.rs", "drop_in_place<Pool>"),
        );
        assert_eq!(ended.channel_step(), Some(ChannelStep::Drop));
        let package =
            "/home/me/.cargo/registry/src/index-0a1b/crossbeam-channel-0.5.1/src/channel.rs";
        assert!(event(&[(package, "recv<u32>"), own]).waits_for_channel());
        assert_eq!(event(&[own]).channel_step(), None);
        let wait = ("/rustc/0a1b/library/std/src/sync/barrier.rs", "wait");
        assert_eq!(event(&[wait, own]).called_of_rusts_library(), Some("wait"));
        assert_eq!(event(&[wait, own]).channel_step(), None);
    }

    #[test]
    fn who_sets_what_is_set_once_is_told_by_what_the_program_called() {
        let once = ("/rustc/0a1b/library/std/src/sys/sync/once/futex.rs", "call");
        let init = ("/rustc/0a1b/library/std/src/sync/once_lock.rs", "get_or_init<u32>");
        let set = ("/rustc/0a1b/library/std/src/sync/once_lock.rs", "set<u32>");
        let own = ("src/main.rs", "main");
        let (setting, made) = (event(&[once, init, set, own]), event(&[once, init, own]));
        assert!(setting.sets_once() && !setting.is_in_synchronisation());
        assert!(!made.sets_once() && made.is_in_synchronisation());
        assert!(!event(&[set, own]).sets_once(), "it writes what was given");
    }

    #[test]
    fn what_is_done_with_a_lock_of_a_package_is_told_by_its_functions() {
        let store = "/home/me/.cargo/registry/src/index.crates.io-1949/";
        let told = |stack: &[(&str, &str)]| {
            let files: Vec<String> =
                stack.iter().map(|(file, _)| format!("{store}{file}")).collect();
            let inside = files.iter().zip(stack).map(|(file, (_, name))| (file.as_str(), *name));
            let atomic = ("/rustc/0123/library/core/src/sync/atomic.rs", "compare_exchange");
            let all: Vec<_> =
                [atomic].into_iter().chain(inside).chain([("main.rs", "main")]).collect();
            let event = event(&all);
            event.package_lock().map(|(step, call)| (step, call[0].function.clone()))
        };
        let (raw, core) =
            ("dashmap-6.1.0/src/lock.rs", "parking_lot_core-0.9.3/src/parking_lot.rs");
        let api = "lock_api-0.4.14/src/rwlock.rs";
        let asks = |mode, call: &str| Some((PackageLock::Asks(mode), call.to_owned()));
        assert_eq!(
            told(&[(raw, "lock_exclusive"), (api, "write<u32>")]),
            asks(LockMode::Exclusive, "write<u32>")
        );
        assert_eq!(
            told(&[(raw, "{closure#0}"), (core, "park"), (raw, "lock_shared_slow"), (api, "read")]),
            asks(LockMode::Shared, "read")
        );
        let given = told(&[(raw, "unlock_exclusive"), (api, "drop<u32>")]);
        assert_eq!(given, Some((PackageLock::GivesBack, "drop<u32>".to_owned())));
        assert_eq!(told(&[(raw, "try_lock_shared"), (api, "try_read")]), None);
        assert_eq!(told(&[(core, "park"), (raw, "lock_shared_slow"), (api, "read")]), None);
    }

    fn event(stack: &[(&str, &str)]) -> Event {
        let place = |(file, function): &(&str, &str)| Site {
            function: (*function).to_owned(),
            ..site(file, 1)
        };
        let stack: Vec<Site> = stack.iter().map(place).collect();
        let (id, thread, kind) =
            (EventId::from_index(0), ThreadId::from_index(0), EventKind::Fence);
        Event {
            id,
            thread,
            index: 0,
            stack: stack.into(),
            continued: Event::ALL_CONTINUED,
            name: None,
            words: Arc::new([]),
            pieces: Arc::new([]),
            drains: false,
            kind,
        }
    }

    #[test]
    fn what_synchronisation_of_the_library_does_inside_is_known() {
        let base = ("/usr/include/c++/12/bits/atomic_base.h", "compare_exchange_strong");
        let arrive = ("/usr/include/c++/12/barrier", "_M_arrive");
        assert!(event(&[base, arrive, ("heat.cpp", "part")]).is_in_synchronisation());
        assert!(!event(&[base, ("heat.cpp", "part")]).is_in_synchronisation());
        // A barrier of the program's own is its own.
        assert!(
            !event(&[base, ("src/barrier", "arrive"), ("heat.cpp", "part")])
                .is_in_synchronisation()
        );
        let stops = |function, kind| {
            let stop = ("/usr/include/c++/12/stop_token", function);
            Event { kind, ..event(&[base, stop, ("pool.cpp", "run")]) }.is_in_synchronisation()
        };
        let (read, write) = (EventKind::Read { parts: vec![] }, EventKind::Write { parts: vec![] });
        assert!(stops("_M_unlock", write.clone()) && stops("_M_register_callback", read.clone()));
        assert!(!stops("_M_stop_requested", read.clone()));
        assert!(!stops("_M_try_lock_and_stop", write) && stops("_M_try_lock_and_stop", read));
        let told = EventKind::Broadcast { condition: ObjectId::from_index(0) };
        assert!(!stops("_M_request_stop", told), "who is told is woken");
        let release = ("/usr/include/c++/12/bits/shared_ptr_base.h", "_M_release");
        assert!(event(&[release, ("pool.cpp", "get")]).gives_up_reference());
        assert!(!event(&[("pool.cpp", "_M_release")]).gives_up_reference());
    }

    #[test]
    fn what_the_library_of_rust_does_inside_is_known() {
        let atomic = ("/rustc/0123/library/core/src/sync/atomic.rs", "fetch_sub");
        let parks = ("/rustc/0123/library/std/src/sys/sync/thread_parking/futex.rs", "park");
        assert!(event(&[atomic, parks, ("main.rs", "main")]).is_in_synchronisation());
        let sends = ("/rustc/0123/library/std/src/sync/mpmc/list.rs", "send<u32>");
        assert!(!event(&[atomic, sends, ("main.rs", "main")]).is_in_synchronisation());
        let once = ("/rustc/0123/library/std/src/sys/sync/once/futex.rs", "call");
        let asks = ("/rustc/0123/library/std/src/sys/sync/once/futex.rs", "is_completed");
        let cell = "/rustc/0123/library/std/src/sync/once_lock.rs";
        let made = (cell, "get_or_init<u32, catalog::prices::{closure_env#0}>");
        let (got, set) = ((cell, "get<u32>"), (cell, "try_insert<u32>"));
        assert!(event(&[atomic, once, made, ("main.rs", "main")]).is_in_synchronisation());
        assert!(event(&[atomic, asks, made, ("main.rs", "main")]).is_in_synchronisation());
        assert!(!event(&[atomic, asks, got, ("main.rs", "main")]).is_in_synchronisation());
        assert!(!event(&[atomic, once, made, set, ("main.rs", "main")]).is_in_synchronisation());
        let arc = "/rustc/0123/library/alloc/src/sync.rs";
        let dropped = event(&[atomic, (arc, "drop<cache::Cache>"), ("main.rs", "main")]);
        assert!(dropped.gives_up_reference() && dropped.counts_references());
        let cloned = event(&[atomic, (arc, "clone<cache::Cache>"), ("main.rs", "main")]);
        assert!(!cloned.gives_up_reference() && cloned.counts_references());
        let hooks = event(&[atomic, (arc, "drop<std::thread::spawnhook::SpawnHook>")]);
        assert!(
            hooks.counts_references(),
            "what a thread does before and behind the program's part"
        );
        let read = event(&[(arc, "deref<cache::Cache>"), ("main.rs", "main")]);
        assert!(!read.counts_references());
        assert!(!event(&[atomic, ("src/sync.rs", "drop")]).gives_up_reference());
        let store = "/home/me/.cargo/registry/src/index.crates.io-1949/";
        let of = |file: &str, function| {
            event(&[(&format!("{store}{file}"), function), ("main.rs", "main")])
        };
        let park = of("parking_lot_core-0.9.3/src/parking_lot.rs", "park");
        assert!(
            park.only_lets_threads_wait()
                && !of("bus-2.4.1/src/lib.rs", "send").only_lets_threads_wait()
        );
        let parker = ("/rustc/0123/library/std/src/sys/sync/thread_parking/futex.rs", "unpark");
        let sent = format!("{store}flume-0.11.1/src/signal.rs");
        let woken = event(&[parker, (&sent, "fire"), ("main.rs", "main")]);
        assert!(woken.only_lets_threads_wait(), "the package wakes a thread");
        assert!(!event(&[parker, ("main.rs", "main")]).only_lets_threads_wait());
        let grow = ("/rustc/0123/library/alloc/src/raw_vec/mod.rs", "grow_one");
        let channel = |file: &str, function| {
            let file = format!("/rustc/0123/library/std/src/sync/mpmc/{file}");
            event(&[grow, (&file, function), ("main.rs", "main")])
        };
        assert!(channel("waker.rs", "register_with_packet").only_lets_threads_wait());
        assert!(!channel("list.rs", "send<u32>").only_lets_threads_wait());
        assert!(of("lock_api-0.4.14/src/mutex.rs", "lock").is_in_synchronisation());
        assert!(of("crossbeam-channel-0.5.17/src/waker.rs", "notify").is_in_synchronisation());
        assert!(
            !of("crossbeam-channel-0.5.17/src/flavors/list.rs", "send").is_in_synchronisation()
        );
        assert!(of("crossbeam-channel-0.5.17/src/counter.rs", "release<u32>").counts_references());
        assert!(!of("dashmap-6.1.0/src/lib.rs", "get").is_in_synchronisation());
        assert!(of("dashmap-6.1.0/src/lock.rs", "lock_exclusive").is_in_synchronisation());
        assert!(of("tokio-1.54.1/src/sync/rwlock/read_guard.rs", "drop").is_in_synchronisation());
        assert!(!of("tokio-1.54.1/src/sync/notify.rs", "notify_one").is_in_synchronisation());
        assert!(!of("tokio-util-0.7.1/src/sync/mutex.rs", "lock").is_in_synchronisation());
        let queue = of("tokio-1.54.1/src/runtime/scheduler/inject/shared.rs", "push");
        assert!(queue.runs_tasks() && queue.is_affair_of_library());
        assert!(!of("tokio-1.54.1/src/sync/mpsc/list.rs", "push<u32>").is_affair_of_library());
    }
}
