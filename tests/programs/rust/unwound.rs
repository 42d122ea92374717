//! A worker looks whether there is work before there is, and tells that it is done whatever comes of it: also while it unwinds.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

static READY: AtomicBool = AtomicBool::new(false);
static DONE: AtomicBool = AtomicBool::new(false);

struct Done;

impl Drop for Done {
    fn drop(&mut self) {
        DONE.store(true, SeqCst);
    }
}

fn work() {
    let _done = Done;
    assert!(READY.load(SeqCst), "there is work");
}

pub fn main() {
    let worker = thread::spawn(work);
    READY.store(true, SeqCst);
    while !DONE.load(SeqCst) {
        std::hint::spin_loop();
    }
    worker.join().unwrap();
}
