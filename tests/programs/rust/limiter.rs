//! A limiter that looks how many tokens there are and writes one less.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

struct Limiter {
    tokens: AtomicU32,
    granted: AtomicU64,
}

impl Limiter {
    fn new(tokens: u32) -> Self {
        Limiter { tokens: AtomicU32::new(tokens), granted: AtomicU64::new(0) }
    }

    fn try_acquire(&self) -> bool {
        let left = self.tokens.load(Ordering::Acquire);
        if left == 0 {
            return false;
        }
        self.tokens.store(left - 1, Ordering::Release);
        self.granted.fetch_add(1, Ordering::Relaxed);
        true
    }
}

pub fn main() {
    let limiter = Arc::new(Limiter::new(3));
    let handles: Vec<_> = (0..2)
        .map(|_| {
            let limiter = limiter.clone();
            thread::spawn(move || {
                let mut mine = 0;
                for _ in 0..3 {
                    if limiter.try_acquire() {
                        mine += 1;
                    }
                }
                mine
            })
        })
        .collect();
    let total: u64 = handles.into_iter().map(|h| h.join().unwrap()).sum();
    assert_eq!(total, limiter.granted.load(Ordering::Relaxed));
    assert!(total <= 3, "granted {total} of 3");
}
