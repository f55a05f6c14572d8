//! What sessions have in common of which a thread carries many, however it waits for them.

use plimsoll_session::{Begun, CompletionSession, Ending, Pause, Session, SessionReport};

/// A session, but for how it goes on.
pub(crate) trait Conversation: Send {
    fn server_process(&self) -> u32;
    fn pause(&mut self, after: u64) -> Pause;
    fn begin(&mut self, index: u64) -> Begun;
    fn abandon(&mut self) -> Ending;
    fn close(self: Box<Self>) -> SessionReport;
}

macro_rules! conversation {
    ($session:ident) => {
        impl Conversation for dyn $session {
            fn server_process(&self) -> u32 {
                $session::server_process(self)
            }

            fn pause(&mut self, after: u64) -> Pause {
                $session::pause(self, after)
            }

            fn begin(&mut self, index: u64) -> Begun {
                $session::begin(self, index)
            }

            fn abandon(&mut self) -> Ending {
                $session::abandon(self)
            }

            fn close(self: Box<Self>) -> SessionReport {
                $session::close(self)
            }
        }
    };
}

conversation!(Session);
conversation!(CompletionSession);
