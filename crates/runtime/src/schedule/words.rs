//! What the scheduler says to people.

use super::core::Core;
use super::slots::{NONE, State, WaitKind};
use crate::layout::LeftReason;
use crate::script::{Target, Turn};
use crate::text::Text;

fn thread<const N: usize>(core: &Core, text: &mut Text<N>, index: u32) {
    text.push(core.slots.get(index).name.as_bytes());
}

fn site<const N: usize>(core: &Core, text: &mut Text<N>, hash: u64) {
    match (core.plan.site)(hash) {
        [] => text.push(b"site 0x").push_hex(hash),
        name => text.push(name),
    };
}

/// What a thread does, or waits for and from whom: `t0.1 waits for a mutex that t0.2 holds`.
pub fn waiting<const N: usize>(core: &Core, text: &mut Text<N>, index: u32) {
    thread(core, text, index);
    let slot = core.slots.get(index);
    let sleeps = slot.state == State::Blocked && slot.wait.kind == WaitKind::Sleep;
    if core.plan.polls.contains(&slot.hash) && (sleeps || slot.state == State::Ready) {
        text.push(b" polls a variable");
        return;
    }
    match slot.state {
        State::Ready => text.push(b" can run"),
        State::Away => text.push(b" waits or runs outside of what the scheduler controls"),
        State::Ended => text.push(b" has ended"),
        State::Blocked => text.push(match slot.wait.kind {
            WaitKind::None => b" waits",
            WaitKind::Mutex => b" waits for a mutex",
            WaitKind::RwLock | WaitKind::RwWrite => b" waits for a reader-writer lock",
            WaitKind::Spin => b" waits for a spin lock",
            WaitKind::Semaphore => b" waits for a semaphore",
            WaitKind::Condition => b" waits for a signal of a condition variable",
            WaitKind::Barrier => b" waits for other threads at a barrier",
            WaitKind::Join => b" waits for the end of ",
            WaitKind::Once => b" waits for another thread's run of a once routine",
            WaitKind::Futex => b" waits for a wake-up of a futex",
            WaitKind::Sleep => b" sleeps",
        }),
    };
    let blocker = core.blocker(index);
    if blocker == NONE {
        return;
    }
    if slot.wait.kind == WaitKind::Join {
        thread(core, text, blocker);
    } else if blocker == index {
        text.push(b" that it holds itself");
    } else {
        text.push(b" that ");
        thread(core, text, blocker);
        text.push(b" holds");
    }
}

/// Why the schedule is left at a line.
pub fn left<const N: usize>(
    core: &Core,
    text: &mut Text<N>,
    turn: &Turn,
    index: Option<u32>,
    reason: LeftReason,
) {
    let name = match index {
        Some(index) => core.slots.get(index).name.as_bytes(),
        None => (core.plan.name)(turn.thread),
    };
    match (reason, index) {
        (LeftReason::Blocked, Some(index)) => {
            waiting(core, text, index);
            text.push(b" on the way to ");
        }
        (LeftReason::Absent, _) => {
            text.push(name).push(b" was never created to get to ");
        }
        (LeftReason::Late, _) => {
            text.push(name).push(b" took too long to get to ");
        }
        (LeftReason::Ended, _) => {
            text.push(name).push(b" ended before it got to ");
        }
        _ => {
            text.push(b"the process ended before ").push(name).push(b" got to ");
        }
    }
    match turn.target {
        Target::Site { hash, occurrence } => {
            site(core, text, hash);
            if occurrence > 1 {
                text.push(b" @").push_decimal(occurrence);
            }
            if turn.past {
                text.push(b" +");
            }
        }
        Target::End => {
            text.push(b"its end");
        }
        Target::Failure => {
            text.push(b"the failure");
        }
    }
}

/// What every thread waits for, when nobody can ever go on.
pub fn deadlock<const N: usize>(core: &Core, text: &mut Text<N>) {
    text.push(b"deadlock: ");
    let mut first = true;
    for index in core.slots.living() {
        if !first {
            text.push(b"; ");
        }
        first = false;
        waiting(core, text, index);
    }
}
