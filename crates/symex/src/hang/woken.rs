//! How many of those who wait for a futex others have woken: no event tells of that, and where it was fewer than waited,
//! nobody comes for the rest.

use crate::engine::Engine;
use crate::thread::PendingSync;
use model::Site;

/// Who wakes so many wakes all.
const ALL: u64 = 1 << 16;

/// A wake-up of the threads that wait at an address.
#[derive(Clone, Debug)]
pub(crate) struct Woken {
    thread: usize,
    address: u64,
    /// At most so many.
    most: u64,
    site: Site,
}

impl Engine<'_> {
    pub(crate) fn note_woken(&mut self, t: usize, begun: &PendingSync) {
        if !self.hangs() {
            return;
        }
        let address = self.resolve(t, begun.address).unwrap_or(begun.address);
        let stack = self.stack(t);
        let own = stack.iter().find(|site| site.line > 0 && !site.is_in_library());
        let site = own.or(stack.first()).cloned().unwrap_or_default();
        self.waiting.woken.push(Woken { thread: t, address, most: begun.argument, site });
    }
}

/// Where each wake-up at the address was for some of the threads only: how many that were in all, and where the last one was.
pub(super) fn in_words(woken: &[Woken], address: u64, name: &dyn Fn(usize) -> String) -> String {
    let here = || woken.iter().filter(|woken| woken.address == address);
    let Some(last) = here().next_back().filter(|_| here().all(|woken| woken.most < ALL)) else {
        return String::new();
    };
    let most: u64 = here().map(|woken| woken.most).sum();
    let file = last.site.file.rsplit('/').next().unwrap_or_default();
    let threads = if most == 1 { "thread" } else { "threads" };
    format!(
        " (at most {most} {threads} that waited for it {} woken, last by {} at {file}:{})",
        if most == 1 { "was" } else { "were" },
        name(last.thread),
        last.site.line
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_woke_some_are_told() {
        let woken = |address: u64, most: u64, line: u32| {
            let site = Site { file: "/a/gate.cc".to_owned(), line, ..Site::default() };
            Woken { thread: 0, address, most, site }
        };
        let told = |woken: &[Woken]| in_words(woken, 8, &|thread| format!("t{thread}"));
        let one = " (at most 1 thread that waited for it was woken, last by t0 at gate.cc:7)";
        assert_eq!(told(&[woken(8, 1, 7), woken(16, 1, 9)]), one);
        let two = " (at most 2 threads that waited for it were woken, last by t0 at gate.cc:8)";
        assert_eq!(told(&[woken(8, 1, 7), woken(8, 1, 8)]), two);
        assert_eq!(told(&[woken(8, 1, 7), woken(8, i32::MAX as u64, 8)]), "", "all were");
        assert_eq!(told(&[]), "");
    }
}
