//! How the sessions of a load are opened.

use super::client::WebSession;
use super::ledger::Ledger;
use super::site::{Address, Site};
use crate::web::Web;
use plimsoll_session::{Failure, Opener, Session};
use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Opens the sessions of a load on a web server. Each connects when it has something to ask.
#[derive(Debug)]
pub struct WebOpener(Arc<Site>);

impl WebOpener {
    /// To the server at `address`; which POSTs it answers is kept in `folder`.
    ///
    /// # Errors
    /// When the ledger cannot be made.
    pub fn new(web: Arc<Web>, address: Address, folder: &Path) -> io::Result<Self> {
        let (ledger, is_refused) = (Ledger::create(folder)?, AtomicBool::new(false));
        Ok(Self(Arc::new(Site { web, address, ledger, is_refused })))
    }

    /// Closes the ledger; every session has been closed.
    ///
    /// # Errors
    /// Why it is not complete.
    pub fn close(&self) -> Result<(), String> {
        self.0.ledger.close()
    }
}

impl Opener for WebOpener {
    /// Sees that there is a server, and that it is trusted, before the first session, and after one that could not connect.
    fn open(&self, number: u32) -> Result<Box<dyn Session>, Failure> {
        let Site { address, is_refused, .. } = self.0.as_ref();
        let unreachable = |why: String| Failure {
            code: Failure::BROKEN.to_owned(),
            message: format!("{} cannot be reached: {why}", address.origin.host),
        };
        let broken = |error: io::Error| unreachable(error.to_string());
        if number == 0 || is_refused.load(Ordering::Relaxed) {
            let mut stream = TcpStream::connect_timeout(&address.socket, CONNECT_WITHIN).map_err(broken)?;
            if let Some(security) = &address.security {
                stream.set_read_timeout(Some(CONNECT_WITHIN)).map_err(broken)?;
                security.greet(&mut stream).map_err(unreachable)?;
            }
            is_refused.store(false, Ordering::Relaxed);
        }
        Ok(Box::new(WebSession::new(Arc::clone(&self.0)).map_err(broken)?))
    }
}
