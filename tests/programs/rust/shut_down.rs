//! A pool of threads that is told to stop without the lock under which they look whether they are.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

type Job = Box<dyn FnOnce() + Send + 'static>;

struct Shared {
    queue: Mutex<VecDeque<Job>>,
    available: Condvar,
    stop: AtomicBool,
}

struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    fn new(size: usize) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::new(VecDeque::new()),
            available: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let workers = (0..size)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || run(&shared))
            })
            .collect();
        Pool { shared, workers }
    }

    fn execute(&self, job: impl FnOnce() + Send + 'static) {
        self.shared.queue.lock().unwrap().push_back(Box::new(job));
        self.shared.available.notify_one();
    }
}

fn run(shared: &Shared) {
    loop {
        let job = {
            let mut queue = shared.queue.lock().unwrap();
            while queue.is_empty() {
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                queue = shared.available.wait(queue).unwrap();
            }
            queue.pop_front()
        };
        if let Some(job) = job {
            job();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.available.notify_all();
        for worker in self.workers.drain(..) {
            worker.join().unwrap();
        }
    }
}

pub fn main() {
    let done = Arc::new(AtomicUsize::new(0));
    {
        let pool = Pool::new(2);
        for _ in 0..3 {
            let done = done.clone();
            pool.execute(move || {
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
    }
    assert_eq!(done.load(Ordering::Relaxed), 3);
}
