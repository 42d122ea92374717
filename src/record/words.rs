//! How a run ended, in words.

use trace_format::{FailureKind, Manifest, Outcome};

/// One line about how the run ended.
#[must_use]
pub fn ending(manifest: &Manifest) -> String {
    let Some(failure) = &manifest.failure else {
        return match manifest.outcome {
            // It may have become another program, or have been killed.
            None if manifest.process.is_some() => "how the process ended was not seen".to_owned(),
            _ => "the run passed".to_owned(),
        };
    };
    let what = match failure.kind {
        FailureKind::Assertion => format!("assertion failed: {}", failure.message),
        FailureKind::Abort if failure.message.is_empty() => "aborted".to_owned(),
        FailureKind::Abort => format!("aborted: {}", failure.message),
        FailureKind::Signal => format!("ended by {}", signal_name(failure.code)),
        FailureKind::Exit => format!("exit status {}", failure.code),
        FailureKind::Hang if manifest.timed_out => {
            let how = match manifest.still_running {
                Some(true) => {
                    ": it was still running, and may only have been slow; `symbiosis solve` says where its threads \
                     were"
                }
                Some(false) => ", with all its threads waiting",
                None => "",
            };
            format!("ended by the time-out{how}")
        }
        FailureKind::Hang if failure.code != 0 && failure.message.is_empty() => format!(
            "ended by {} before it came to its end; `symbiosis solve` says what its threads waited \
             for, if they did",
            signal_name(failure.code)
        ),
        FailureKind::Hang if manifest.outcome == Some(Outcome::Ended) => {
            "ended by another process before it came to its end; `symbiosis solve` says what its threads waited for, if \
             they did"
                .to_owned()
        }
        // The scheduler saw that no thread could go on, and said so.
        FailureKind::Hang if failure.message.starts_with("deadlock") => failure.message.clone(),
        FailureKind::Hang => format!("deadlock: {}", failure.message),
        FailureKind::UseAfterFree => format!("use after free: {}", failure.message),
        FailureKind::DoubleFree => format!("double free: {}", failure.message),
        FailureKind::HeapCorruption => format!("heap corruption: {}", failure.message),
        FailureKind::StackOverflow => "stack overflow".to_owned(),
        FailureKind::Exception => format!("uncaught exception: {}", failure.message),
        FailureKind::Panic => failure.message.clone(),
        FailureKind::User => format!("symbiosis_fail_if: {}", failure.message),
        FailureKind::Reached => format!("reached {}", failure.message),
        FailureKind::Output => "wrong output".to_owned(),
    };
    match &failure.thread {
        Some(thread) => format!("{what} (in thread {thread})"),
        None => what,
    }
}

/// Was the run ended by a signal that people and programs end others by?
pub(super) fn is_interrupt(code: i64) -> bool {
    let signals = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
    signals.into_iter().any(|signal| i64::from(signal) == code)
}

fn signal_name(number: i64) -> String {
    let name = match i32::try_from(number).unwrap_or(0) {
        libc::SIGSEGV => "a segmentation fault (SIGSEGV)",
        libc::SIGBUS => "a bus error (SIGBUS)",
        libc::SIGFPE => "an arithmetic fault (SIGFPE)",
        libc::SIGILL => "an illegal instruction (SIGILL)",
        libc::SIGTRAP => "a trap (SIGTRAP)",
        other => return model::names::signal(other.cast_unsigned()),
    };
    name.to_owned()
}
