//! PostgreSQL 13 and later over its own protocol, version 3.
//!
//! [`wire`] decodes replies and does no I/O; [`Statements`] are encoded once and [`Connection`] moves bytes without blocking;
//! [`Client`] blocks, for administration and for queries that last; [`Canceller`] ends what one waits for; [`bulk`] loads tables over
//! several clients at once.

pub mod bulk;
mod calendar;
mod canceller;
mod client;
mod connection;
mod error;
mod handshake;
mod numeric;
mod socket;
mod spare;
mod statement;
mod values;
pub mod wire;

pub use calendar::days_from_2000;
pub use canceller::Canceller;
pub use client::{Answer, Client, CopyIn, Row};
pub use connection::{Connection, Received, Sent};
pub use error::Error;
pub use socket::Address;
pub use statement::{Mode, Protocol, Query, Statements};
pub use values::{Form, Parameters, put_row, put_row_in};

/// Escapes a name for SQL.
pub fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// Escapes a text value for SQL (standard_conforming_strings is on in every version we know).
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
