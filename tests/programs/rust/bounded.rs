//! A producer sends into a channel that holds two jobs while it has the lock that the consumer needs for each job.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;

struct Stats {
    sent: u32,
    handled: u32,
}

fn produce(stats: &Mutex<Stats>, sender: &SyncSender<u32>) {
    for job in 0..6 {
        let mut stats = stats.lock().unwrap();
        stats.sent += 1;
        sender.send(job).unwrap();
    }
}

fn consume(stats: &Mutex<Stats>, receiver: &Receiver<u32>) {
    for _job in receiver.iter() {
        let mut stats = stats.lock().unwrap();
        stats.handled += 1;
    }
}

pub fn main() {
    let stats = Arc::new(Mutex::new(Stats { sent: 0, handled: 0 }));
    let (sender, receiver) = sync_channel(2);
    let shared = stats.clone();
    let consumer = thread::spawn(move || consume(&shared, &receiver));
    produce(&stats, &sender);
    drop(sender);
    consumer.join().unwrap();
    let stats = stats.lock().unwrap();
    assert_eq!(stats.sent, stats.handled);
}
