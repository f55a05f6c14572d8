//! Opens conversations, all with the same workload and the same messages.

use super::Conversation;
use crate::workload::Workload;
use plimsoll_session::{Failure, Opener, Session};
use plimsoll_target::postgres::{Address, Error, Mode, Protocol, Statements};
use std::sync::Arc;

/// The standard's sqlclient_unable_to_establish_sqlconnection.
const UNREACHABLE: &str = "08001";
/// The standard's protocol_violation.
const NOT_UNDERSTOOD: &str = "08P01";

/// Opens connections that perform a [`Workload`].
#[derive(Debug)]
pub struct ConversationOpener<W> {
    address: Address,
    workload: Arc<W>,
    statements: Arc<Statements>,
    retries_max: u32,
}

impl<W: Workload> ConversationOpener<W> {
    /// Connections to `address`, with the workload's own settings, that run its statements by `protocol` and try a transaction
    /// up to `retries_max` times more after a serialization failure or a deadlock.
    ///
    /// # Errors
    /// When a statement cannot be sent at all.
    pub fn new(address: &Address, workload: Arc<W>, protocol: Protocol, retries_max: u32) -> Result<Self, Error> {
        let statements = Arc::new(Statements::new(&workload.queries(), protocol)?);
        let mut address = address.with_settings(workload.session_settings().iter().copied());
        if protocol.mode == Mode::Simple {
            // Rows come as text and are compared with the generator's.
            address = address.with_settings([("DateStyle", "ISO")]);
        }
        Ok(Self { address, workload, statements, retries_max })
    }

    /// Among many statements of a script the server's own words do not tell which it means.
    fn refusal(&self, error: Error) -> Failure {
        let name = match &error {
            Error::Statement { place, .. } => self.workload.statements().get(*place).map(|one| one.name.clone()),
            _ => None,
        };
        let failure = failure_of(error);
        match name {
            Some(name) => Failure { message: format!("{name}: {}", failure.message), ..failure },
            None => failure,
        }
    }
}

impl<W: Workload + 'static> Opener for ConversationOpener<W> {
    fn open(&self, number: u32) -> Result<Box<dyn Session>, Failure> {
        match Conversation::open(&self.address, Arc::clone(&self.workload), &self.statements, self.retries_max, number)
        {
            Ok(conversation) => Ok(Box::new(conversation)),
            Err(error) => Err(self.refusal(error)),
        }
    }
}

/// A server's refusal as the engine counts it.
pub fn failure_of(error: Error) -> Failure {
    let message = error.to_string();
    let code = match error {
        Error::Connect { .. } => UNREACHABLE.to_owned(),
        Error::Broken(_) => Failure::BROKEN.to_owned(),
        Error::Server(error) | Error::Statement { error, .. } => error.sqlstate,
        Error::Protocol(_) => NOT_UNDERSTOOD.to_owned(),
    };
    Failure { code, message }
}
