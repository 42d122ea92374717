//! A session is looked for, and then taken from the map, which another thread may have removed it from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Default)]
struct Sessions {
    open: Mutex<HashMap<u32, u32>>,
}

impl Sessions {
    fn close(&self, id: u32) {
        self.open.lock().unwrap().remove(&id);
    }

    fn touch(&self, id: u32) -> bool {
        if !self.open.lock().unwrap().contains_key(&id) {
            return false;
        }
        *self.open.lock().unwrap().get_mut(&id).expect("it was there") += 1;
        true
    }
}

pub fn main() {
    let sessions = Arc::new(Sessions::default());
    for id in 0..4 {
        sessions.open.lock().unwrap().insert(id, 0);
    }
    let reaper = {
        let sessions = Arc::clone(&sessions);
        thread::spawn(move || (0..4).for_each(|id| sessions.close(id)))
    };
    while (0..4).any(|id| sessions.touch(id)) {}
    reaper.join().unwrap();
}
