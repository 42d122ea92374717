//! The scheduler's report: a mapped page that survives any end of the process. Without a file for
//! it the functions do nothing, but for saying on standard error where a schedule was left.

use crate::files::{self, FileName};
use crate::gates;
use crate::layout::{ENDED_DEADLOCK, ENDED_FAR, LeftReason, REPORT_MAGIC, Report};
use crate::sys;
use crate::text::Text;
use core::ffi::c_int;
use core::ptr::{null_mut, read_volatile, write_volatile};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static REPORT: AtomicPtr<Report> = AtomicPtr::new(null_mut());
static LEFT: AtomicU32 = AtomicU32::new(0);

/// Makes the report's file; an older one is overwritten. To be called once.
///
/// # Errors
///
/// The `errno`; then there is no report.
pub fn create(name: &[u8]) -> Result<(), c_int> {
    let mut path = FileName::new();
    path.push(name);
    let page = files::create_mapped(&path, size_of::<Report>(), false)? as *mut Report;
    // SAFETY: the mapping is fresh and large enough, and the file's bytes are zeros.
    unsafe { write_volatile(&raw mut (*page).magic, REPORT_MAGIC) };
    REPORT.store(page, Ordering::Release);
    Ok(())
}

/// Stops writing to the report: it is the parent's.
pub fn forget() {
    REPORT.store(null_mut(), Ordering::Release);
    LEFT.store(1, Ordering::Release);
}

/// Runs `work` on the report, if there is one.
fn with(work: impl FnOnce(*mut Report)) {
    let page = REPORT.load(Ordering::Acquire);
    if !page.is_null() {
        work(page);
    }
}

/// The schedule has so many turns.
pub fn set_lines(lines: u32) {
    // SAFETY: here and below: once made, the page stays mapped; its writers take turns.
    with(|page| unsafe { write_volatile(&raw mut (*page).lines, lines) });
}

/// So many turns were followed to their end, in order, without leaving the schedule.
pub fn followed(lines: u32) {
    with(|page| unsafe { write_volatile(&raw mut (*page).followed, lines) });
}

/// The schedule was left at this line of its text; only the first call counts. `site` is where the
/// line's thread is, 0 for nowhere. Without a report it is said on standard error.
pub fn left(line: u32, reason: LeftReason, site: u64, message: &[u8]) {
    if LEFT.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    let page = REPORT.load(Ordering::Acquire);
    if page.is_null() {
        if gates::script().is_some() {
            let mut text = Text::<2400>::new();
            text.push(b"the schedule was left at line ").push_decimal(u64::from(line));
            complain(text.push(b": ").push(message).as_bytes());
        }
        return;
    }
    // SAFETY: as above; the claim makes this thread the fields' only writer.
    unsafe {
        say(page, message);
        write_volatile(&raw mut (*page).left_site, site);
        write_volatile(&raw mut (*page).left_reason, reason as u32);
        write_volatile(&raw mut (*page).left_line, line);
    }
}

/// Sets how many gates and sync points were passed, over all threads.
pub fn set_steps(steps: u64) {
    with(|page| unsafe { write_volatile(&raw mut (*page).steps, steps) });
}

/// Another thread got the turn. Only the holder of the turn calls it.
pub fn count_switch() {
    with(|page| unsafe {
        let switches = &raw mut (*page).switches;
        write_volatile(switches, read_volatile(switches) + 1);
    });
}

/// All threads wait for each other, and the process is ended for it.
pub fn deadlock(message: &[u8]) {
    let page = REPORT.load(Ordering::Acquire);
    if page.is_null() {
        complain(message);
        return;
    }
    // SAFETY: as above.
    unsafe {
        say(page, message);
        write_volatile(&raw mut (*page).ended, ENDED_DEADLOCK);
    }
}

/// The process is ended since it went on behind the schedule for as long as it may.
pub fn far() {
    // SAFETY: as above.
    with(|page| unsafe { write_volatile(&raw mut (*page).ended, ENDED_FAR) });
}

/// How often avoidance rules held threads back so far, and how often they were let go too early.
pub fn avoided(held_back: u64, gave_up: u64) {
    with(|page| unsafe {
        write_volatile(&raw mut (*page).held_back, held_back);
        write_volatile(&raw mut (*page).gave_up, gave_up);
    });
}

/// Is there a report?
#[must_use]
pub fn is_there() -> bool {
    !REPORT.load(Ordering::Acquire).is_null()
}

/// Something that is wrong with the run: into the report and onto standard error.
pub fn problem(message: &[u8]) {
    complain(message);
    // SAFETY: as above.
    with(|page| unsafe { say(page, message) });
}

/// Appends to the report's message, `; ` in between.
unsafe fn say(page: *mut Report, message: &[u8]) {
    // SAFETY: the caller vouches for the page.
    unsafe {
        let mut length = read_volatile(&raw const (*page).message_length) as usize;
        let room = &mut (*page).message;
        let separator: &[u8] = if length == 0 { b"" } else { b"; " };
        for &byte in separator.iter().chain(message) {
            if let Some(place) = room.get_mut(length) {
                *place = byte;
                length += 1;
            }
        }
        write_volatile(&raw mut (*page).message_length, length as u32);
    }
}

/// Says something on standard error, in a line of its own.
pub fn complain(message: &[u8]) {
    let mut text = Text::<4600>::new();
    text.push(b"symbiosis: ").push(message).push(b"\n");
    // SAFETY: the bytes are there.
    sys::keeping_errno(|| unsafe {
        sys::write(2, text.as_bytes().as_ptr().cast(), text.as_bytes().len())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    // One test, because a process has one report.
    #[test]
    fn the_report_is_in_the_file_at_once_and_keeps_the_first_departure() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("report");
        fs_err::write(&file, [0xffu8; 5000]).expect("an older report");
        create(file.as_os_str().as_encoded_bytes()).expect("made");
        let word = |at: usize| {
            let bytes = fs_err::read(&file).expect("there");
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        assert_eq!(word(offset_of!(Report, magic)), REPORT_MAGIC as u32);
        assert_eq!(word(offset_of!(Report, lines)), 0, "nothing of the older one");
        set_lines(7);
        followed(3);
        count_switch();
        count_switch();
        set_steps(99);
        left(4, LeftReason::Blocked, 5, b"t0 waits");
        left(5, LeftReason::Late, 6, b"too late");
        deadlock(b"all wait");
        let message = b"t0 waits; all wait";
        for (at, value) in [
            (offset_of!(Report, lines), 7),
            (offset_of!(Report, followed), 3),
            (offset_of!(Report, switches), 2),
            (offset_of!(Report, steps), 99),
            (offset_of!(Report, left_line), 4),
            (offset_of!(Report, left_reason), LeftReason::Blocked as u32),
            (offset_of!(Report, left_site), 5),
            (offset_of!(Report, ended), ENDED_DEADLOCK),
            (offset_of!(Report, message_length), message.len() as u32),
        ] {
            assert_eq!(word(at), value, "at {at}");
        }
        let bytes = fs_err::read(&file).expect("there");
        let at = offset_of!(Report, message);
        assert_eq!(bytes[at..at + message.len()], message[..]);
        far();
        assert_eq!(word(offset_of!(Report, ended)), ENDED_FAR);
        forget();
        set_lines(8);
        assert_eq!(word(offset_of!(Report, lines)), 7, "the file is the parent's");
    }
}
