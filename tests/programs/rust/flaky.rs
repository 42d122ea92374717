//! Two tests share a list: a harness runs them at once. A third one panics before, as it should.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

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

fn first<'a>(notes: &[&'a str]) -> &'a str {
    notes.first().expect("a note")
}

#[test]
#[should_panic(expected = "a note")]
fn a_list_has_a_first_note() {
    first(&[]);
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
    thread::sleep(Duration::from_millis(2));
    assert_eq!(count(), 1);
}
