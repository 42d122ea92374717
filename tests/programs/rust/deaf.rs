//! The supervisor stops to listen at the first error, and what a worker sends then is a panic.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

struct Supervisor {
    events: Receiver<u32>,
}

impl Supervisor {
    fn run(self) -> u32 {
        let progress = self.events.iter().take_while(|event| *event != 0);
        progress.sum()
    }
}

fn work(events: SyncSender<u32>, last: u32) {
    for event in (last..last + 3).rev() {
        events.send(event).expect("nobody listens");
    }
}

pub fn main() {
    let (events, seen) = sync_channel(2);
    let supervisor = thread::spawn(move || Supervisor { events: seen }.run());
    let workers = [0, 7].map(|last| {
        let events = events.clone();
        thread::spawn(move || work(events, last))
    });
    drop(events);
    for worker in workers {
        worker.join().unwrap();
    }
    assert!(supervisor.join().unwrap() > 0);
}
