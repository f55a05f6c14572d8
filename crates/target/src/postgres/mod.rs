//! PostgreSQL 13 and later over its own protocol, version 3.
//!
//! [`wire`] decodes replies and does no I/O; [`Connection`] moves bytes without blocking; [`Client`] blocks, for
//! administration; [`bulk`] loads tables over several clients at once.

pub mod bulk;
mod client;
mod connection;
mod error;
mod handshake;
mod socket;
pub mod wire;

pub use client::{Client, CopyIn, Row};
pub use connection::{Connection, Parameters, Received, Sent, put_row};
pub use error::Error;
pub use socket::Address;

/// Escapes a name for SQL.
pub fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// Escapes a text value for SQL (standard_conforming_strings is on in every version we know).
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
