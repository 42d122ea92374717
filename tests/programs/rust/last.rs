//! A reader asks how many items there are in one section and takes the last one in another; in between the initial
//! thread takes some.

use std::sync::{Arc, Mutex};
use std::thread;

struct Queue {
    items: Mutex<Vec<i64>>,
}

impl Queue {
    fn len(&self) -> usize {
        self.items.lock().unwrap().len()
    }

    fn get(&self, index: usize) -> i64 {
        self.items.lock().unwrap()[index]
    }

    fn pop(&self) -> Option<i64> {
        self.items.lock().unwrap().pop()
    }
}

fn last(queue: &Queue) -> i64 {
    match queue.len() {
        0 => 0,
        length => queue.get(length - 1),
    }
}

pub fn main() {
    let queue = Arc::new(Queue { items: Mutex::new((0..4).map(|i| -i).collect()) });
    let reader = {
        let queue = queue.clone();
        thread::spawn(move || (0..4).map(|_| last(&queue)).sum::<i64>())
    };
    while queue.pop().is_some() {}
    println!("{}", reader.join().unwrap());
}
