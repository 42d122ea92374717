//! A connection is made by whoever finds none, and set then: two threads may find none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

struct Connection {
    id: usize,
}
static NEXT: AtomicUsize = AtomicUsize::new(0);
static CONNECTION: OnceLock<Connection> = OnceLock::new();

fn connect() -> Connection {
    Connection { id: NEXT.fetch_add(1, Ordering::SeqCst) }
}

fn connection() -> &'static Connection {
    if let Some(c) = CONNECTION.get() {
        return c;
    }
    let c = connect();
    if CONNECTION.set(c).is_err() {
        panic!("connected twice");
    }
    CONNECTION.get().unwrap()
}

pub fn main() {
    let total = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let total = total.clone();
            thread::spawn(move || {
                total.fetch_add(connection().id, Ordering::SeqCst);
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
    println!("{}", total.load(Ordering::SeqCst));
}
