//! Clients of the servers under test, one module a server.
//!
//! The fact that constrains it: the client shares its CPUs with the server it measures. The path of a transaction
//! ([`postgres::Connection`]) therefore neither blocks, nor locks, nor allocates once its buffers have grown.

pub mod postgres;
