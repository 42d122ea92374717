//! Numbers are given out by a file, which two threads read and write: both may be given the same one.

use std::fs;
use std::thread;

const PATH: &str = "sequence.txt";

fn next() -> u32 {
    let text = fs::read_to_string(PATH).unwrap();
    let number: u32 = text.trim().parse().unwrap_or(0);
    fs::write(PATH, format!("{}\n", number + 1)).unwrap();
    number
}

pub fn main() {
    fs::write(PATH, "1\n").unwrap();
    let workers: Vec<_> = (0..2).map(|_| thread::spawn(next)).collect();
    let mut given: Vec<u32> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    given.sort();
    assert_eq!(given, [1, 2]);
    fs::remove_file(PATH).unwrap();
}
