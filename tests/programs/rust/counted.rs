//! A thread looks at an atomic count while it has a mutex that stands before it, and writes it without.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

#[repr(C)]
struct Orders {
    paid: Mutex<u64>,
    count: AtomicUsize,
}

impl Orders {
    fn pay(&self) {
        let mut paid = self.paid.lock().unwrap();
        *paid += 1;
        let seen = self.count.load(SeqCst);
        drop(paid);
        self.count.store(seen + 1, SeqCst);
    }

    fn cancel(&self) {
        let _paid = self.paid.lock().unwrap();
        self.count.fetch_add(1, SeqCst);
    }
}

pub fn main() {
    let orders = Orders { paid: Mutex::new(0), count: AtomicUsize::new(0) };
    thread::scope(|scope| {
        scope.spawn(|| orders.pay());
        scope.spawn(|| orders.cancel());
    });
    assert_eq!(orders.count.into_inner(), 2);
}
