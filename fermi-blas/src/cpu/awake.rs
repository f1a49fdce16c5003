//! Keeps the pool's threads awake during a pass.
//!
//! A pass of one token is some hundred small pieces of parallel work with short serial ones between. A thread of the pool
//! that finds nothing to do goes to sleep within microseconds, and waking it takes longer than its share of such a piece.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::Yield;

/// Idle time after which a thread may sleep after all: longer than any serial part of a pass that is short itself.
const PATIENCE: Duration = Duration::from_millis(1);

/// Looks for work so many times before it lets other processes have the core.
const POLLS: u32 = 64;

struct Watch {
    done: AtomicBool,
    started: AtomicUsize,
    owner: Option<usize>,
}

/// Tells the watchers that the pass is over, also when it panics.
struct Finish<'a>(&'a AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `pass` on the present thread of a pool while the others look for work without sleeping. Nothing is allocated.
pub(super) fn keep_awake<R: Send>(pass: impl FnOnce() -> R + Send) -> R {
    let others = rayon::current_num_threads() - 1;
    if others == 0 {
        return pass();
    }
    let watch = Watch {
        done: AtomicBool::new(false),
        started: AtomicUsize::new(0),
        owner: rayon::current_thread_index(),
    };
    let run = || {
        let _finish = Finish(&watch.done);
        pass()
    };
    rayon::join(run, || watchers(&watch, others)).0
}

/// Lets this thread watch, and the `count - 1` next ones.
fn watchers(watch: &Watch, count: usize) {
    // The owner may take this up itself while it waits for others: then it must go on with the pass.
    if watch.done.load(Ordering::Acquire) || rayon::current_thread_index() == watch.owner {
        return;
    }
    let place = watch.started.fetch_add(1, Ordering::AcqRel) + 1;
    if count == 1 {
        look_for_work(watch);
    } else {
        let look = || {
            // The next watcher's job lies on this thread's own stack of jobs, where looking for work would find it first.
            let begin = Instant::now();
            while watch.started.load(Ordering::Acquire) == place && begin.elapsed() < PATIENCE / 4 {
                std::hint::spin_loop();
            }
            look_for_work(watch);
        };
        rayon::join(look, || watchers(watch, count - 1));
    }
}

fn look_for_work(watch: &Watch) {
    let mut idle_since = Instant::now();
    while !watch.done.load(Ordering::Acquire) {
        let worked = (0..POLLS).any(|_| {
            std::hint::spin_loop();
            watch.done.load(Ordering::Acquire) || matches!(rayon::yield_now(), Some(Yield::Executed))
        });
        if worked {
            idle_since = Instant::now();
        } else if idle_since.elapsed() > PATIENCE {
            return;
        } else {
            std::thread::yield_now();
        }
    }
}
