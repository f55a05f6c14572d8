//! Sampling at the edges of windows, and nothing while the gate is closed.

use super::{Ask, Latest, Running, Sampled, Sampler};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl Sampler {
    /// Samples in a thread whenever [`Running::sample_edge`] asks for it, and says so to `sampled`. What has tables instead of a series
    /// is looked after by the clock, too, between the two edges of a window.
    pub(crate) fn start_at_edges(self, sampled: impl FnMut() + Send + 'static) -> io::Result<Running> {
        let (asks, asked) = channel();
        let latest: Arc<Mutex<Latest>> = Arc::default();
        let shared = Arc::clone(&latest);
        let thread = std::thread::Builder::new()
            .name("sample".to_owned())
            .spawn(move || self.run_at_edges(&asked, &shared, sampled))?;
        Ok(Running { thread, asks, latest })
    }

    fn run_at_edges(
        mut self,
        asked: &Receiver<Ask>,
        shared: &Mutex<Latest>,
        mut tell: impl FnMut(),
    ) -> io::Result<Sampled> {
        let interval = Duration::from_nanos(self.interval_ns as u64);
        let mut sampled = Sampled::default();
        loop {
            let is_open = sampled.samples % 2 == 1;
            let ask = if is_open { asked.recv_timeout(interval) } else { asked.recv().map_err(RecvTimeoutError::from) };
            match ask {
                Ok(Ask::Edge) => {
                    self.sample(shared)?;
                    sampled.samples += 1;
                    tell();
                }
                Err(RecvTimeoutError::Timeout) => self.look_after_tables()?,
                Ok(Ask::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.look_after_tables()?;
        self.close(sampled)
    }

    fn look_after_tables(&mut self) -> io::Result<()> {
        let mut without_series = self.series.iter_mut().filter(|series| series.writer.is_none());
        without_series.try_for_each(|series| series.sample(&mut Latest::default()))
    }
}
