//! HTTP/1.0 and 1.1 as a client reads it, without I/O.

mod chunks;
mod response;

pub(crate) use response::{HttpError, Response, Sink, Taken};
