//! Names in the source's words, as far as they tell the program from its libraries.

use crate::event::{Event, EventKind};
use crate::ids::ObjectId;
use std::collections::BTreeSet;

/// What callers of a class's functions call the lock that these have as `this->m_`, such as `orders.m_`: the first word
/// that no acquisition of another lock among the events has. `None` where nobody has a word of its own.
#[must_use]
pub fn lock_from_outside<'e>(
    object: ObjectId,
    events: impl Iterator<Item = &'e Event>,
) -> Option<&'e str> {
    let (mut own, mut others) = (Vec::new(), BTreeSet::new());
    for event in events {
        let EventKind::Lock { object: taken, .. } = event.kind else { continue };
        let words = event.words.iter().flatten().map(|word| &**word);
        let words = words.filter(|word| !word.contains("this->"));
        match taken == object {
            true => own.extend(words),
            false => others.extend(words),
        }
    }
    own.into_iter().find(|word| !others.contains(word) && outside_of_library(word) == *word)
}

/// Is it a variable or member of the language's library: `_M_impl`, `__x`, `_IO_read_ptr`? Programs have
/// names such as `_PP`, too, although the language reserves them; libraries' begin with one of these. What the
/// compiler calls a class's table of virtual functions, `_vptr$Base`, is one where the class's name is;
/// several members, `{_M_left,_M_right}`, where the first one's is.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let name = name.strip_prefix('{').unwrap_or(name);
    if let Some(class) = name.strip_prefix("_vptr$").or_else(|| name.strip_prefix("_vptr.")) {
        return class.starts_with('_')
            && class[1..].starts_with(|c: char| c == '_' || c.is_ascii_uppercase());
    }
    ["__", "_M_", "_S_", "_IO_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Is it the variable that says whether a descriptor is open, `descriptor 3`? A read of it is a use, a write makes
/// the descriptor, an update closes it.
#[must_use]
pub fn is_descriptor(name: &str) -> bool {
    let number = name.strip_prefix("descriptor ");
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What the variable that says whether there is a file or directory is called, before its path.
pub const FILE: &str = "file ";

/// Is it the variable that says whether there is a file or directory, `file cache/index`? A read of it looks for the file, a
/// write makes it, an update makes it where there was none or removes it.
#[must_use]
pub fn is_file(name: &str) -> bool {
    name.starts_with(FILE)
}

/// What the variable that stands for what is in a file is called, before the file's path.
pub const CONTENTS: &str = "contents of ";

/// Is it the variable that stands for what is in a file, `contents of cache/index`?
#[must_use]
pub fn is_contents(name: &str) -> bool {
    name.starts_with(CONTENTS)
}

/// What the variable that counts a condition variable's initialisations is called, before the condition's name.
pub const INITIALISATION: &str = "initialisation of ";

/// Whose initialisations does this variable count? A write of it is one, and a read is a wait for the condition.
#[must_use]
pub fn initialised(name: &str) -> Option<&str> {
    name.strip_prefix(INITIALISATION)
}

/// Is it what bytes or counts go through between threads, `pipe of server.c:12`? A post of it is a write, and a wait
/// for its units a read.
#[must_use]
pub fn is_channel(name: &str) -> bool {
    let kinds = ["pipe of ", "socket pair of ", "connection of ", "event counter of "];
    kinds.iter().any(|kind| name.starts_with(kind))
}

/// Is it a file of an installed library, by where headers are installed? Those of C++'s library lie in
/// `include/c++` wherever the compiler is. So are Rust's library and the packages that cargo got.
#[must_use]
pub fn is_installed(file: &str) -> bool {
    // Rust's library has the paths of where it was built, its packages those of cargo's store.
    let of_rust = ["/rustc/", "/rust/deps/"].iter().any(|at| file.starts_with(at));
    if of_rust || file.contains("/include/c++/") || file.contains("/.cargo/registry/src/") {
        return true;
    }
    let installed = file.starts_with("/usr/") && file.contains("/include/");
    installed && !["/usr/src/", "/usr/local/src/"].iter().any(|at| file.starts_with(at))
}

/// A path up to the first member whose name the language reserves for its library:
/// `cache.entries_` of `cache.entries_._M_t._M_impl._M_header._M_parent`.
#[must_use]
pub fn outside_of_library(path: &str) -> &str {
    let mut depth = 0u32;
    for (at, character) in path.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '.' | '-' if depth == 0 => {
                let rest = &path[at..];
                let member = rest.strip_prefix("->").or_else(|| rest.strip_prefix('.'));
                if member.is_some_and(is_reserved) {
                    return &path[..at];
                }
            }
            _ => {}
        }
    }
    path
}

/// Is the path that of a global variable of the language's own library, such as `std::io::stdio::OUTPUT_CAPTURE_USED.0`?
#[must_use]
pub fn is_of_language(path: &str) -> bool {
    let root = path.trim_start_matches(['*', '(', '&']);
    ["std::", "core::", "alloc::"].into_iter().any(|library| root.starts_with(library))
}

/// The signals of Linux, from 1 on.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// `SIGUSR1`, or `signal 40` where it has no name of its own.
#[must_use]
pub fn signal(number: u32) -> String {
    let at = (number as usize).checked_sub(1);
    match at.and_then(|at| SIGNALS.get(at)) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_insides_of_library_types_are_left_out() {
        let path = "cache.entries_._M_t._M_impl._M_header._M_parent";
        assert_eq!(outside_of_library(path), "cache.entries_");
        assert_eq!(outside_of_library("this->_M_impl._M_start"), "this");
        assert_eq!(outside_of_library("held->{_M_use_count,_M_weak_count}"), "held");
        assert_eq!(outside_of_library("q->{low,high}"), "q->{low,high}");
        assert_eq!(outside_of_library("q->items[p->_Mine].key_"), "q->items[p->_Mine].key_");
        assert_eq!(outside_of_library("q->low_"), "q->low_");
        assert_eq!(outside_of_library("(*this)->_vptr$_Sp_counted_base"), "(*this)");
        assert_eq!(outside_of_library("ticker._vptr$Service"), "ticker._vptr$Service");
        assert_eq!(outside_of_library("handle->_PP"), "handle->_PP", "the program's all the same");
    }
}
