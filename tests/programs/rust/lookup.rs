use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;

struct Cache {
    entries: RwLock<HashMap<u32, String>>,
    computed: AtomicUsize,
}

impl Cache {
    fn get(&self, key: u32) -> String {
        let found = self.entries.read().unwrap().get(&key).cloned();
        if let Some(value) = found {
            return value;
        }
        let value = self.compute(key);
        self.entries.write().unwrap().insert(key, value.clone());
        value
    }

    fn compute(&self, key: u32) -> String {
        self.computed.fetch_add(1, Ordering::SeqCst);
        format!("value of {key}")
    }
}

pub fn main() {
    let cache = Arc::new(Cache { entries: RwLock::new(HashMap::new()), computed: AtomicUsize::new(0) });
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                for key in 0..3 {
                    assert!(cache.get(key).ends_with(&key.to_string()));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(cache.computed.load(Ordering::SeqCst), 3);
}
