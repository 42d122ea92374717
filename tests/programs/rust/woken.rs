//! Both wait for something in a queue. All are woken for the first one, and who finds it taken does not look.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

struct Queue {
    items: Mutex<VecDeque<u32>>,
    filled: Condvar,
}

impl Queue {
    fn push(&self, item: u32) {
        let mut items = self.items.lock().unwrap();
        items.push_back(item);
        self.filled.notify_all();
    }

    fn pop(&self) -> u32 {
        let mut items = self.items.lock().unwrap();
        if items.is_empty() {
            items = self.filled.wait(items).unwrap();
        }
        items.pop_front().expect("woken for nothing")
    }
}

pub fn main() {
    let queue = Arc::new(Queue { items: Mutex::new(VecDeque::new()), filled: Condvar::new() });
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.pop())
        })
        .collect();
    for item in 1..3 {
        thread::sleep(Duration::from_millis(30));
        queue.push(item);
    }
    let sum: u32 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    assert_eq!(sum, 3);
}
