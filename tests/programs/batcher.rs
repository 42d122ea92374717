//! What is collected is handed on four at a time; between the look that takes four and the one that leaves none another
//! thread adds something.

use std::sync::Mutex;
use std::thread;

struct Batcher {
    items: Mutex<Vec<u32>>,
    batches: Mutex<Vec<Vec<u32>>>,
}

impl Batcher {
    fn add(&self, item: u32) {
        self.items.lock().unwrap().push(item);
        if self.items.lock().unwrap().len() >= 4 {
            let batch = self.items.lock().unwrap().clone();
            self.items.lock().unwrap().clear();
            self.batches.lock().unwrap().push(batch);
        }
    }
}

fn main() {
    let batcher = Batcher { items: Mutex::new(Vec::new()), batches: Mutex::new(Vec::new()) };
    thread::scope(|scope| {
        for first in [0, 10] {
            let batcher = &batcher;
            scope.spawn(move || (first..first + 4).for_each(|item| batcher.add(item)));
        }
    });
    let batches = batcher.batches.lock().unwrap();
    let lengths: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!(lengths, [4, 4]);
}
