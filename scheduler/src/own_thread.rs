//! A thread with a runtime of its own: what its tasks hand to each other wakes no other thread.

use std::io;
use std::panic::resume_unwind;
use std::thread;

use driver::ReplyCoalescing;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

pub struct OwnThread {
    /// As `top -H` shows it: at most 15 bytes.
    name: &'static str,
    /// Gone once it runs.
    runtime: Option<Runtime>,
}

impl OwnThread {
    /// Before it waits for something to happen, it rests as long as that is allowed.
    pub fn new(name: &'static str, coalescing: &ReplyCoalescing) -> io::Result<Self> {
        let coalescing = coalescing.clone();
        let before_waiting = move || {
            let allowed = coalescing.allowed();
            if !allowed.is_zero() {
                thread::sleep(allowed);
            }
        };
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_all().on_thread_park(before_waiting).build()?;
        Ok(Self { name, runtime: Some(runtime) })
    }

    /// For tasks that are to run there, while it runs.
    pub fn handle(&self) -> Option<Handle> {
        self.runtime.as_ref().map(|runtime| runtime.handle().clone())
    }

    /// What is made inside lives there: the connections of a client, for instance.
    pub fn inside<T>(&self, make: impl FnOnce() -> T) -> T {
        let _entered = self.runtime.as_ref().map(Runtime::enter);
        make()
    }

    /// Runs the work there. Dropping the future ends it; a panic is resumed here.
    pub async fn run<F>(mut self, work: F) -> Option<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let runtime = self.runtime.take()?;
        let (_awaited, unawaited) = oneshot::channel::<()>();
        let work = async {
            tokio::select! {
                output = work => Some(output),
                _ = unawaited => None,
            }
        };
        let (ended, end) = oneshot::channel();
        // Not one of the other runtime's own threads, for which it would wait when it ends: this one may be stuck.
        let thread = thread::Builder::new().name(self.name.to_owned());
        let thread = thread.spawn(move || {
            let output = runtime.block_on(work);
            // What is left of its tasks ends before their end is reported.
            runtime.shutdown_background();
            // Where the work is not awaited any more, neither is its outcome.
            let _ = ended.send(output);
        });
        match (end.await, thread) {
            (Ok(output), _) => output,
            (Err(_), Ok(thread)) => match thread.join() {
                Ok(()) => None,
                Err(panic) => resume_unwind(panic),
            },
            (Err(_), Err(error)) => {
                tracing::error!(%error, thread = self.name, "cannot start a thread");
                None
            }
        }
    }
}

/// Tasks that are not awaited any more may be left where they are.
impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn at_ease() -> OwnThread {
        OwnThread::new("own", &ReplyCoalescing::default()).unwrap()
    }

    #[tokio::test]
    async fn the_work_is_done_on_another_thread_and_its_outcome_comes_back() {
        let here = thread::current().id();
        let own = at_ease();
        let there =
            own.run(async { tokio::spawn(async { thread::current().id() }).await.unwrap() });
        assert_ne!(there.await, Some(here));
    }

    #[tokio::test]
    async fn dropping_the_future_ends_it() {
        let (sender, receiver) = oneshot::channel::<()>();
        let own = at_ease();
        let work = own.run(async move {
            let _held = sender;
            std::future::pending::<()>().await;
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), work).await.is_err());
        assert!(receiver.await.is_err(), "the work was dropped");
    }

    #[tokio::test]
    #[should_panic(expected = "as said")]
    async fn a_panic_is_not_lost() {
        at_ease().run(async { panic!("as said") }).await;
    }

    #[tokio::test]
    async fn unused_it_goes_without_a_word() {
        drop(at_ease());
    }

    #[tokio::test]
    async fn it_rests_before_it_waits_as_long_as_that_is_allowed() {
        const ALLOWED: Duration = Duration::from_millis(3);
        let coalescing = ReplyCoalescing::default();
        coalescing.allow(ALLOWED);
        let own = OwnThread::new("own", &coalescing).unwrap();
        let began = Instant::now();
        own.run(async { tokio::time::sleep(Duration::from_nanos(1)).await }).await;
        assert!(began.elapsed() >= ALLOWED);
    }
}
