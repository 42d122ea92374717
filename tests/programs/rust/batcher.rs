//! What is collected is handed on four at a time; between the count that says so and the look at what there is another thread
//! adds something.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

struct Batcher {
    items: Mutex<Vec<u32>>,
    count: AtomicUsize,
    batches: Mutex<Vec<Vec<u32>>>,
}

impl Batcher {
    fn add(&self, item: u32) {
        self.items.lock().unwrap().push(item);
        if (self.count.fetch_add(1, SeqCst) + 1) % 4 == 0 {
            let batch: Vec<u32> = self.items.lock().unwrap().drain(..).collect();
            self.batches.lock().unwrap().push(batch);
        }
    }
}

pub fn main() {
    let (items, batches) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let batcher = Arc::new(Batcher { items, count: AtomicUsize::new(0), batches });
    let workers = [0, 10].map(|first| {
        let batcher = Arc::clone(&batcher);
        thread::spawn(move || (first..first + 4).for_each(|item| batcher.add(item)))
    });
    for worker in workers {
        worker.join().unwrap();
    }
    let batches = batcher.batches.lock().unwrap();
    assert!(batches.iter().all(|batch| batch.len() == 4), "{batches:?}");
}
