//! The way into a session: startup message, authentication (trust, password, MD5, SCRAM-SHA-256), parameters. Blocking.

use super::wire::{Inbox, ServerError};
use super::{Address, Error, socket::Socket};
use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;
use std::io::{Read, Write};

const AUTHENTICATION_OK: u32 = 0;
const AUTHENTICATION_CLEARTEXT: u32 = 3;
const AUTHENTICATION_MD5: u32 = 5;
const AUTHENTICATION_SASL: u32 = 10;
const AUTHENTICATION_SASL_CONTINUE: u32 = 11;
const AUTHENTICATION_SASL_FINAL: u32 = 12;

/// What a handshake leaves: the open stream, what was received beyond it, and the server's process.
pub(super) struct Welcome {
    pub(super) socket: Socket,
    pub(super) inbox: Inbox,
    pub(super) backend_pid: u32,
    /// What a request to cancel has to know.
    pub(super) secret: u32,
}

/// Reads one message, blocking, into an owned body.
pub(super) fn blocking_message(socket: &mut Socket, inbox: &mut Inbox) -> Result<(u8, Vec<u8>), Error> {
    loop {
        if let Some(frame) = inbox.frame().map_err(Error::Protocol)? {
            return Ok((frame.tag, frame.body.to_vec()));
        }
        match socket.read(inbox.space())? {
            0 => return Err(Error::closed()),
            bytes => inbox.filled(bytes),
        }
    }
}

/// The `options` of the startup message: spaces and backslashes in a value are escaped by a backslash.
fn session_options(settings: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| {
        let value: String =
            value.chars().flat_map(|c| matches!(c, ' ' | '\\').then_some('\\').into_iter().chain([c])).collect();
        format!("-c {name}={value}")
    };
    settings.iter().map(one).collect::<Vec<_>>().join(" ")
}

pub(super) fn open(address: &Address) -> Result<Welcome, Error> {
    let mut socket = Socket::connect(address)?;
    let mut inbox = Inbox::default();
    let mut out = BytesMut::new();
    let options = session_options(&address.settings);
    let parameters = [
        ("user", address.user.as_str()),
        ("database", address.database.as_str()),
        ("application_name", "plimsoll"),
        ("client_encoding", "UTF8"),
        ("options", options.as_str()),
    ];
    frontend::startup_message(parameters, &mut out)?;
    socket.write_all(&out)?;
    let mut scram = None;
    let (mut backend_pid, mut secret) = (0, 0);
    loop {
        let (tag, body) = blocking_message(&mut socket, &mut inbox)?;
        match tag {
            b'R' => {
                out.clear();
                authenticate(&body, address, &mut scram, &mut out)?;
                socket.write_all(&out)?;
            }
            b'K' => {
                let number = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes));
                (backend_pid, secret) = (number(body.first_chunk()), number(body.last_chunk()));
            }
            b'Z' => return Ok(Welcome { socket, inbox, backend_pid, secret }),
            b'E' => return Err(ServerError::parse(&body).into()),
            b'S' | b'N' | b'v' => {}
            _ => return Err(Error::Protocol(format!("message '{}' in the handshake", tag.escape_ascii()))),
        }
    }
}

/// Answers one authentication request into `out`; nothing is written where no answer is due.
fn authenticate(
    body: &[u8],
    address: &Address,
    scram: &mut Option<sasl::ScramSha256>,
    out: &mut BytesMut,
) -> Result<(), Error> {
    let (method, data) =
        body.split_first_chunk::<4>().ok_or_else(|| Error::Protocol("authentication request too short".to_owned()))?;
    let method = u32::from_be_bytes(*method);
    let password = || {
        let missing = || Error::Protocol("the server asks for a password: set target.password".to_owned());
        address.password.as_deref().ok_or_else(missing)
    };
    let begun = || Error::Protocol("SASL continuation without a SASL start".to_owned());
    match method {
        AUTHENTICATION_OK => {}
        AUTHENTICATION_CLEARTEXT => frontend::password_message(password()?.as_bytes(), out)?,
        AUTHENTICATION_MD5 => {
            let salt = *data
                .first_chunk::<4>()
                .ok_or_else(|| Error::Protocol("authentication request too short".to_owned()))?;
            let hash = md5_hash(address.user.as_bytes(), password()?.as_bytes(), salt);
            frontend::password_message(hash.as_bytes(), out)?;
        }
        AUTHENTICATION_SASL => {
            let offered = data.split(|&byte| byte == 0).any(|name| name == sasl::SCRAM_SHA_256.as_bytes());
            if !offered {
                return Err(Error::Protocol("no supported SASL mechanism (SCRAM-SHA-256)".to_owned()));
            }
            let exchange = sasl::ScramSha256::new(password()?.as_bytes(), sasl::ChannelBinding::unsupported());
            frontend::sasl_initial_response(sasl::SCRAM_SHA_256, exchange.message(), out)?;
            *scram = Some(exchange);
        }
        AUTHENTICATION_SASL_CONTINUE => {
            let exchange = scram.as_mut().ok_or_else(begun)?;
            exchange.update(data)?;
            frontend::sasl_response(exchange.message(), out)?;
        }
        AUTHENTICATION_SASL_FINAL => scram.as_mut().ok_or_else(begun)?.finish(data)?,
        _ => return Err(Error::Protocol(format!("authentication method {method} is not supported"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_escape_spaces() {
        let settings = [("search_path", "plimsoll"), ("x", "a b\\c")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(session_options(&settings), "-c search_path=plimsoll -c x=a\\ b\\\\c");
    }
}
