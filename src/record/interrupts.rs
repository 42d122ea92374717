//! Signals to the recorder itself: the run is over, but what was recorded is kept.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static RECEIVED: AtomicI32 = AtomicI32::new(0);
static SENT_BY_PROCESS: AtomicBool = AtomicBool::new(false);

const CAUGHT: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// While this lives, an interrupt does not end the recorder but is noted.
#[derive(Debug)]
pub struct Interrupts {
    old: Vec<(libc::c_int, OldAction)>,
}

struct OldAction(libc::sigaction);

impl std::fmt::Debug for OldAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OldAction")
    }
}

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives the structure to a handler with SA_SIGINFO.
    let by_process = unsafe { !info.is_null() && (*info).si_code <= 0 };
    SENT_BY_PROCESS.store(by_process, Ordering::Relaxed);
    RECEIVED.store(signal, Ordering::Relaxed);
}

impl Interrupts {
    /// Starts to catch interrupts. Ignored ones stay ignored.
    #[must_use]
    pub fn catch() -> Self {
        RECEIVED.store(0, Ordering::Relaxed);
        let mut old = Vec::new();
        for signal in CAUGHT {
            // SAFETY: zeros are a valid action, the handler only stores to atomics, and the
            // pointers are to live objects.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                let mut before: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as *const () as libc::sighandler_t;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                if libc::sigaction(signal, std::ptr::null(), &mut before) == 0
                    && before.sa_sigaction != libc::SIG_IGN
                    && libc::sigaction(signal, &action, std::ptr::null_mut()) == 0
                {
                    old.push((signal, OldAction(before)));
                }
            }
        }
        Self { old }
    }

    /// The last signal, if there was one.
    #[must_use]
    pub fn received(&self) -> Option<i32> {
        Some(RECEIVED.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// The last signal, once, if the program has not got it as well: what a terminal sends goes to
    /// both, what a process sends goes to the recorder alone.
    #[must_use]
    pub fn to_forward(&self) -> Option<i32> {
        let forward = SENT_BY_PROCESS.swap(false, Ordering::Relaxed);
        self.received().filter(|_| forward)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for (signal, old) in &self.old {
            // SAFETY: the action is the one that was in place before.
            unsafe { libc::sigaction(*signal, &old.0, std::ptr::null_mut()) };
        }
    }
}
