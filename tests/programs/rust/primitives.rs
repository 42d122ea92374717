//! What the standard library has to synchronise threads with, once each, and a panic that is caught.

use std::sync::atomic::*;
use std::sync::*;
use std::thread;
use std::time::Duration;
pub fn main() {
    let m = Arc::new((
        Mutex::new(0i64),
        Condvar::new(),
        RwLock::new(3),
        Barrier::new(2),
        Once::new(),
        AtomicUsize::new(0),
    ));
    let (tx, rx) = mpsc::channel::<i64>();
    let (tx2, rx2) = mpsc::sync_channel::<i64>(1);
    let n = m.clone();
    let h = thread::spawn(move || {
        let mut g = n.0.lock().unwrap();
        while *g == 0 {
            g = n.1.wait(g).unwrap();
        }
        drop(g);
        let g = n.0.lock().unwrap();
        let _ = n.1.wait_timeout(g, Duration::from_millis(1)).unwrap();
        *n.2.write().unwrap() += 1;
        n.3.wait();
        n.4.call_once(|| {
            n.5.fetch_add(1, Ordering::SeqCst);
        });
        tx.send(5).unwrap();
        tx2.send(6).unwrap();
        if let Ok(mut g) = n.0.try_lock() {
            *g += 1;
        };
        if let Ok(mut g) = n.2.try_write() {
            *g += 1;
        };
        if let Ok(g) = n.2.try_read() {
            assert!(*g > 3);
        };
        thread::park();
    });
    *m.0.lock().unwrap() = 1;
    m.1.notify_one();
    m.1.notify_all();
    println!("{}", *m.2.read().unwrap());
    m.3.wait();
    m.4.call_once(|| {
        m.5.fetch_add(1, Ordering::SeqCst);
    });
    println!("{:?}", rx.recv());
    println!("{:?}", rx2.recv());
    println!("{:?}", rx2.try_recv());
    h.thread().unpark();
    thread::scope(|s| {
        s.spawn(|| m.5.fetch_add(1, Ordering::SeqCst));
        s.spawn(|| m.5.fetch_add(1, Ordering::SeqCst));
    });
    h.join().unwrap();
    static L: OnceLock<i32> = OnceLock::new();
    println!("{}", L.get_or_init(|| 4));
    static Z: LazyLock<Mutex<Vec<i32>>> = LazyLock::new(|| Mutex::new(vec![1]));
    println!("{:?}", Z.lock());
    assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
}
