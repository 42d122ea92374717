//! Listeners behind a `RefCell` that is said to be `Sync`: one is added while the worker calls the others.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Default)]
struct Hub {
    entries: RefCell<Vec<String>>,
    queue: Mutex<Vec<String>>,
}

// SAFETY: it is not.
unsafe impl Sync for Hub {}

impl Hub {
    fn add(&self, name: &str) {
        self.entries.borrow_mut().push(name.to_string());
    }

    fn publish(&self, event: &str) {
        self.queue.lock().unwrap().push(event.to_string());
    }

    fn deliver(&self) -> usize {
        let events = std::mem::take(&mut *self.queue.lock().unwrap());
        let names = self.entries.borrow();
        names.iter().map(|name| name.len() * events.len()).sum()
    }
}

pub fn main() {
    let hub = Arc::new(Hub::default());
    hub.add("bytes");
    hub.publish("login");
    let other = hub.clone();
    let worker = thread::spawn(move || (0..3).map(|_| other.deliver()).sum::<usize>());
    hub.add("clicks");
    hub.publish("click");
    println!("{}", worker.join().unwrap());
}
