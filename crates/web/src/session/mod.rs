//! One client of a web server, as the engine's driver for readiness carries it: thousands on a thread.

mod asking;
mod client;
mod ledger;
mod opener;
mod pace;
mod site;
mod socket;
mod stream;
mod tally;
mod tls;
mod trust;

pub use ledger::{LEDGER, acknowledged};
pub use opener::WebOpener;
pub use site::Address;
pub use trust::Trust;
