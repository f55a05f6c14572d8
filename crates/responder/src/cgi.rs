//! CGI: a request by the variables of a process, and the process that is started for one.
//!
//! The fact that constrains it: a server hands a query without "=" to a CGI program as arguments. So it is the environment that tells a
//! program that it is one, and its arguments are not read.

use crate::program::{Answered, Asked, Program};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// By this variable a server tells a process that it is a CGI program.
pub const INTERFACE: &str = "GATEWAY_INTERFACE";
/// The document root and the folder of the program's files, of a process that is started for a request.
pub const ROOT: &str = "PLIMSOLL_WEB_ROOT";
/// See [`ROOT`].
pub const PROGRAM: &str = "PLIMSOLL_WEB_PROGRAM";
const BODY_BYTES_MAX: u64 = 65_536;

/// Why a process that was started for a request gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CgiError {
    /// It is not told where its files are.
    #[error("{0}: not set; set it for the CGI program (Apache: SetEnv {0} FOLDER)")]
    NotSet(&'static str),
    /// A pipe broke, or a process could not be started.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Seconds since 1970; 0 on a machine whose clock is before that.
pub(crate) fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// A request by its variables and what was posted.
pub(crate) fn asked<'a>(variable: impl Fn(&str) -> &'a [u8], body: &'a [u8]) -> Asked<'a> {
    // What is no text is nothing that is asked for.
    let text = |bytes: &'a [u8]| str::from_utf8(bytes).unwrap_or_default();
    let named = |name: &str| text(variable(name));
    let is_post = variable("REQUEST_METHOD") == b"POST";
    Asked {
        script: named("SCRIPT_NAME"),
        query: named("QUERY_STRING"),
        cookie: named("HTTP_COOKIE"),
        body: is_post.then(|| text(body)),
        software: named("SERVER_SOFTWARE"),
        address: named("REMOTE_ADDR"),
    }
}

/// What stands before the body of an answer.
pub(crate) fn head(answered: &Answered) -> String {
    let reason = match answered.status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        _ => "Internal Server Error",
    };
    let cookie = answered.cookie.as_ref().map_or_else(String::new, |cookie| format!("Set-Cookie: {cookie}\r\n"));
    format!(
        "Status: {} {reason}\r\nContent-Type: {}\r\n{cookie}Content-Length: {}\r\n\r\n",
        answered.status,
        answered.media,
        answered.body.len()
    )
}

/// Answers the one request of this process: its variables are the environment, and the answer goes to `out`.
///
/// # Errors
/// When the answer cannot be written, or the process is not told where its files are.
pub fn serve(input: impl Read, mut out: impl Write) -> Result<(), CgiError> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).ok_or(CgiError::NotSet(name));
    let program = Program::new(&set(ROOT)?, &set(PROGRAM)?);
    let variables: Vec<(Vec<u8>, Vec<u8>)> =
        std::env::vars_os().map(|(name, value)| (name.into_encoded_bytes(), value.into_encoded_bytes())).collect();
    let variable = |name: &str| {
        variables.iter().find(|(of, _)| of == name.as_bytes()).map_or(&b""[..], |(_, value)| value.as_slice())
    };
    // The pipe may stay open after the body.
    let length = str::from_utf8(variable("CONTENT_LENGTH")).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    input.take(length.min(BODY_BYTES_MAX)).read_to_end(&mut body)?;
    let answered = program.answer(&asked(variable, &body), now_s(), std::process::id());
    if answered.status >= 500 {
        eprint!("{}", String::from_utf8_lossy(&answered.body));
    }
    out.write_all(head(&answered).as_bytes())?;
    Ok(out.write_all(&answered.body)?)
}

/// Starts a process for a request, and gives what it writes: the answer, and what the server's log of errors is to hold.
pub(crate) fn start<'a>(
    executable: &Path,
    (root, program): (&Path, &Path),
    variables: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    body: &[u8],
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut command = Command::new(executable);
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, value) in variables {
        if let (Ok(name), Ok(value)) = (str::from_utf8(name), str::from_utf8(value))
            && is_variable(name, value)
        {
            command.env(name, value);
        }
    }
    // After those of the request, which must not decide which files are read.
    let mut child = command.env(INTERFACE, "CGI/1.1").env(ROOT, root).env(PROGRAM, program).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A process that does not want it has closed it.
        let _ = input.write_all(body);
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        Ok((output.stdout, output.stderr))
    } else {
        Err(io::Error::other(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
    }
}

/// What an environment can hold. (Servers name headers HTTP_..., so that none can name what a loader or a library reads.)
fn is_variable(name: &str, value: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_name) && !value.contains('\0')
}
