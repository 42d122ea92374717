//! The first test fails, and those behind it begin when it has.

use std::thread;

#[test]
fn a_count_of_two() {
    let counts = [1, 2].map(|count| thread::spawn(move || count));
    let sum: u32 = counts.into_iter().map(|count| count.join().unwrap()).sum();
    assert_eq!(sum, 2);
}

fn text(number: usize) {
    assert_eq!("ab".repeat(number).len(), 2 * number);
}

#[test]
fn b_one() {
    text(1);
}

#[test]
fn c_two() {
    text(2);
}

#[test]
fn d_three() {
    text(3);
}

#[test]
fn e_four() {
    text(4);
}

#[test]
fn f_five() {
    text(5);
}

#[test]
fn g_six() {
    text(6);
}
