//! The pool keeps a sender of its own, so that who collects what its workers send waits for ever.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;

struct Pool {
    results: Sender<u32>,
}

impl Pool {
    fn start(&self, job: u32) {
        let results = self.results.clone();
        thread::spawn(move || results.send(3 * job).unwrap());
    }
}

fn collect(results: Receiver<u32>) -> u32 {
    results.iter().sum()
}

pub fn main() {
    let (results, collected) = channel();
    let pool = Pool { results };
    for job in 0..2 {
        pool.start(job);
    }
    let sum = collect(collected);
    drop(pool);
    assert_eq!(sum, 3);
}
