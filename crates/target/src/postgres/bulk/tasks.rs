//! Shares tasks out over several connections: each takes the first task in the list that has nothing left to wait for.
//!
//! The fact that constrains it: the longest chain of tasks decides when all have ended, so whoever makes the list puts what others
//! wait for first; a connection with nothing to begin waits until a task of another has ended.

use crate::postgres::{Address, Client, Error};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whether the first of two tasks, by their places in the list, begins only when the second has ended.
pub type WaitsFor<'a> = dyn Fn(usize, usize) -> bool + Sync + 'a;

/// Which tasks may begin.
struct Board<'a> {
    waits_for: &'a WaitsFor<'a>,
    /// How many tasks each still waits for; of those that were begun, or never will be, none.
    ahead: Vec<Option<usize>>,
    under_way: usize,
    failure: Option<Error>,
}

impl<'a> Board<'a> {
    fn new(tasks: usize, waits_for: &'a WaitsFor<'a>) -> Self {
        let ahead = |task: usize| Some((0..tasks).filter(|&other| waits_for(task, other)).count());
        Self { waits_for, ahead: (0..tasks).map(ahead).collect(), under_way: 0, failure: None }
    }

    /// Begins the first task that waits for nothing, if there is one.
    fn begin(&mut self) -> Option<usize> {
        let task = self.ahead.iter().position(|&ahead| ahead == Some(0))?;
        self.ahead[task] = None;
        self.under_way += 1;
        Some(task)
    }

    /// Whether a task may yet come up for a connection that has none to begin.
    fn may_come(&self) -> bool {
        self.under_way > 0 && self.ahead.iter().any(Option::is_some)
    }

    fn end(&mut self, task: usize) {
        self.under_way -= 1;
        for (other, ahead) in self.ahead.iter_mut().enumerate() {
            if let Some(ahead) = ahead
                && (self.waits_for)(other, task)
            {
                *ahead -= 1;
            }
        }
    }

    /// Nothing is begun any more; the first failure is kept.
    fn fail(&mut self, error: Error) {
        self.ahead.fill(None);
        self.failure.get_or_insert(error);
    }

    /// What all of it came to.
    fn outcome(self) -> Result<(), Error> {
        match self.failure {
            Some(failure) => Err(failure),
            None if self.ahead.iter().any(Option::is_some) => {
                Err(Error::Protocol("tasks of the loading wait for each other".to_owned()))
            }
            None => Ok(()),
        }
    }
}

/// Does tasks 0 to `tasks` - 1, each by `each` on one of the connections.
///
/// # Errors
/// The first failure of any connection; the others finish the task they are at.
pub fn share_out(
    address: &Address,
    parallel: usize,
    tasks: usize,
    waits_for: &WaitsFor<'_>,
    each: impl Fn(&mut Client, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let (board, changed) = (Mutex::new(Board::new(tasks, waits_for)), Condvar::new());
    let held = || -> MutexGuard<'_, Board<'_>> { board.lock().unwrap_or_else(PoisonError::into_inner) };
    let begin = || {
        let mut board = held();
        loop {
            let begun = board.begin();
            if begun.is_some() || !board.may_come() {
                return begun;
            }
            board = changed.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
    };
    let work = || -> Result<(), Error> {
        let mut client = Client::open(address)?;
        while let Some(task) = begin() {
            each(&mut client, task)?;
            held().end(task);
            changed.notify_all();
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..parallel.clamp(1, tasks.max(1)) {
            scope.spawn(|| {
                let fail = |error| {
                    held().fail(error);
                    changed.notify_all();
                };
                match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(done) => done.unwrap_or_else(fail),
                    // Else whoever waits for its task would wait for ever.
                    Err(panic) => {
                        fail(Error::Protocol("a thread that loads has panicked".to_owned()));
                        resume_unwind(panic);
                    }
                }
            });
        }
    });
    board.into_inner().unwrap_or_else(PoisonError::into_inner).outcome()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_task_that_waits_for_nothing_is_begun() {
        // 1 waits for 0, 3 for both 0 and 2; 4 for nothing.
        let waits_for = |task: usize, other: usize| matches!((task, other), (1, 0) | (3, 0 | 2));
        let mut board = Board::new(5, &waits_for);
        assert_eq!([board.begin(), board.begin(), board.begin(), board.begin()], [Some(0), Some(2), Some(4), None]);
        assert!(board.may_come());
        board.end(2);
        assert_eq!(board.begin(), None);
        board.end(0);
        assert_eq!([board.begin(), board.begin()], [Some(1), Some(3)]);
        assert!(!board.may_come(), "all are begun");
        [4, 1, 3].into_iter().for_each(|task| board.end(task));
        assert!(board.outcome().is_ok());
    }

    #[test]
    fn after_a_failure_nothing_is_begun_and_the_first_one_is_told() {
        let waits_for = |task: usize, other: usize| task == 2 && other == 0;
        let mut board = Board::new(3, &waits_for);
        assert_eq!(board.begin(), Some(0));
        board.fail(Error::Protocol("first".to_owned()));
        board.fail(Error::Protocol("second".to_owned()));
        assert_eq!((board.begin(), board.may_come()), (None, false));
        assert!(board.outcome().unwrap_err().to_string().ends_with("first"));
    }

    #[test]
    fn tasks_in_a_circle_are_a_failure_and_no_wait() {
        let waits_for = |task: usize, other: usize| task != other;
        let mut board = Board::new(2, &waits_for);
        assert_eq!((board.begin(), board.may_come()), (None, false));
        assert!(board.outcome().is_err());
    }
}
