//! An account that is looked at and changed under its lock, but not in one go.

use std::sync::{Arc, Mutex};
use std::thread;

struct Account {
    balance: Mutex<i64>,
}

impl Account {
    fn withdraw(&self, amount: i64) {
        if *self.balance.lock().unwrap() >= amount {
            *self.balance.lock().unwrap() -= amount;
        }
    }
}

pub fn main() {
    let account = Arc::new(Account { balance: Mutex::new(100) });
    let customers: Vec<_> = (0..2)
        .map(|_| {
            let account = account.clone();
            thread::spawn(move || (throw(), account.withdraw(80)))
        })
        .collect();
    for customer in customers {
        customer.join().unwrap();
    }
    let left = *account.balance.lock().unwrap();
    assert!(left >= 0, "overdrawn: {left}");
}

/// What is thrown and caught is no panic.
fn throw() {
    let _ = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(())));
}
