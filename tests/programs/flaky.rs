//! Two tests share a list: a harness runs them at once.

use std::sync::Mutex;

static NOTES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

pub fn note(line: &'static str) {
    NOTES.lock().unwrap().push(line);
}

pub fn clear() {
    NOTES.lock().unwrap().clear();
}

pub fn count() -> usize {
    NOTES.lock().unwrap().len()
}

#[test]
fn notes_are_kept() {
    clear();
    note("one");
    note("two");
    assert_eq!(count(), 2);
}

#[test]
fn a_note_is_one_line() {
    clear();
    note("three");
    assert_eq!(count(), 1);
}
