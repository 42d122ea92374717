//! What a step of the program is called in the words of a repair.

use super::quoted;
use crate::source::frames;
use model::names::{initialised, is_channel, is_descriptor, is_file};
use model::{EventId, EventKind, EventTrace, Site};

/// What an event does, in words for a sentence about the program: the call, where the event is
/// inside of one. `ing` for what follows "before".
pub(super) fn act(trace: &EventTrace, id: EventId, function: &Site, ing: bool) -> String {
    let event = trace.event(id);
    let frames = frames(event);
    let depth = frames
        .iter()
        .position(|site| site.function == function.function && site.file == function.file);
    let form = |plain: &'static str, going: &'static str| if ing { going } else { plain };
    if let Some(callee) = depth.and_then(|depth| frames.get(depth + 1)) {
        return format!("{} {}", form("call", "calling"), called(callee));
    }
    // What a library does inside is a call of the library.
    let inside = event.depth().checked_sub(1).and_then(|depth| event.stack.get(depth));
    let hidden = trace.subject(event).is_none_or(is_internal);
    let accesses = !event.kind.reads().is_empty() || !event.kind.writes().is_empty();
    let named = inside.filter(|callee| {
        let is_step = is_step_of_library(callee) && (!hidden || callee.file.ends_with(".rs"));
        !callee.function.contains("operator") && !is_step
    });
    if let Some(callee) = named.filter(|_| accesses || hidden) {
        return format!("{} {}", form("call", "calling"), called(callee));
    }
    if trace.ends_local(event) {
        let variable = trace.subject(event).map_or_else(|| "a variable".to_owned(), quoted);
        return format!("{} the scope of {variable}", form("leave", "leaving"));
    }
    let what = trace.subject(event).map(quoted).unwrap_or_default();
    let descriptor = trace.subject(event).is_some_and(is_descriptor);
    let channel = trace.subject(event).is_some_and(is_channel);
    let file = trace.subject(event).is_some_and(is_file);
    let counts = trace.subject(event).is_some_and(|name| initialised(name).is_some());
    let does = match event.kind {
        EventKind::SemaphorePost { .. } if channel => form("write to", "writing to"),
        EventKind::SemaphoreWait { .. } if channel => form("read from", "reading from"),
        EventKind::Read { .. } if descriptor => form("use", "using"),
        EventKind::Write { .. } if descriptor => form("make", "making"),
        EventKind::ReadModifyWrite { .. } if descriptor => form("close", "closing"),
        EventKind::Read { .. } if file => form("look for", "looking for"),
        EventKind::Write { .. } if file => form("make", "making"),
        EventKind::ReadModifyWrite { .. } if file => form("make or remove", "making or removing"),
        EventKind::Read { .. } if counts => form("wait for", "waiting for"),
        EventKind::Write { .. } if counts => form("initialise", "initialising"),
        EventKind::Read { .. } => form("read", "reading"),
        EventKind::Write { .. } => form("write", "writing"),
        EventKind::ReadModifyWrite { .. } => form("update", "updating"),
        EventKind::Lock { .. } | EventKind::TryLockFailed { .. } => form("take", "taking"),
        EventKind::Unlock { .. } => form("give back", "giving back"),
        EventKind::Wake { .. }
        | EventKind::WaitTimedOut { .. }
        | EventKind::SemaphoreWait { .. }
        | EventKind::SemaphoreWaitFailed { .. } => form("wait for", "waiting for"),
        EventKind::Signal { .. } => form("signal", "signalling"),
        EventKind::Broadcast { .. } => form("broadcast", "broadcasting"),
        EventKind::SemaphorePost { .. } => form("post", "posting"),
        EventKind::BarrierArrive { .. } | EventKind::BarrierLeave { .. } => {
            form("wait at", "waiting at")
        }
        EventKind::Fork { .. } => form("create", "creating"),
        EventKind::Join { .. } => form("join", "joining"),
        EventKind::Allocate { .. } => form("allocate", "allocating"),
        EventKind::Free { .. } => form("free", "freeing"),
        _ => return form("go on", "going on").to_owned(),
    };
    format!("{does} {what}").trim_end().to_owned()
}

/// A name that only a library's own code uses.
fn is_internal(name: &str) -> bool {
    // Variables of Rust's library, and of C++'s, such as the lock of the environment.
    if ["std::", "core::", "alloc::"].iter().any(|space| name.starts_with(space)) {
        return true;
    }
    let last = explain::outside_of_library(name).rsplit(['.', '>']).next().unwrap_or(name);
    last == "this" || last.starts_with("__")
}

/// A function's name in a sentence: of one of Rust without the types that it is for, which no call of it names.
fn called(callee: &Site) -> &str {
    let name = callee.function.as_str();
    let plain = name.split_once('<').map_or(name, |(plain, _)| plain);
    if callee.file.ends_with(".rs") && !plain.is_empty() { plain } else { name }
}

/// Does the function of a library nothing but the step itself: an operation of an atomic variable, or in Rust what the end of
/// a variable's scope does?
fn is_step_of_library(callee: &Site) -> bool {
    let file = callee.file.rsplit('/').next().unwrap_or_default();
    let of_cpp = callee.is_in_library() && ["atomic", "atomic_base.h"].contains(&file);
    let atomic = of_cpp || callee.file.ends_with("/core/src/sync/atomic.rs");
    atomic || (callee.file.ends_with(".rs") && matches!(called(callee), "drop" | "drop_in_place"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn what_a_library_does_in_one_step_is_that_step() {
        let parsed = parse("a: [event] W ready 1").expect("the text is a trace");
        let words = |file: &str, function: &str| {
            let site = |file: &str, line: u32, function: &str| Site {
                file: file.to_owned(),
                line,
                column: 1,
                function: function.to_owned(),
            };
            let mut trace = parsed.trace.clone();
            let whole = match file.starts_with('/') {
                true => file.to_owned(),
                false => format!("/rustc/0a1b/library/{file}"),
            };
            let library = site(&whole, 7, function);
            trace.events[parsed.event("event").index()].stack =
                [library, site("a.rs", 3, "main")].into();
            act(&trace, parsed.event("event"), &site("a.rs", 3, "main"), true)
        };
        assert_eq!(words("core/src/sync/atomic.rs", "store"), "writing `ready`");
        assert_eq!(words("core/src/mem/mod.rs", "drop_in_place<..>"), "writing `ready`");
        assert_eq!(words("std/src/sync/once_lock.rs", "set<app::Config>"), "calling set");
        assert_eq!(words("/usr/include/c++/12/bits/atomic_base.h", "store"), "writing `ready`");
        assert_eq!(words("/usr/include/c++/12/latch", "count_down"), "calling count_down");
    }

    #[test]
    fn a_lock_of_the_library_is_told_by_the_call_that_takes_it() {
        let words = |lock: &str| {
            let mut parsed =
                parse(&format!("a: [event] lock {lock}")).expect("the text is a trace");
            let event = parsed.event("event");
            let site = |file: &str, function: &str| Site {
                file: file.to_owned(),
                line: 3,
                column: 1,
                function: function.to_owned(),
            };
            let library = site("/rustc/0a1b/library/std/src/thread/functions.rs", "spawn<..>");
            parsed.trace.events[event.index()].stack = [library, site("a.rs", "main")].into();
            act(&parsed.trace, event, &site("a.rs", "main"), true)
        };
        assert_eq!(words("own"), "taking `own`");
        assert_eq!(words("std::sys::env::unix::ENV_LOCK"), "calling spawn");
    }
}
