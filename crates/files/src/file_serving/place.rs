//! A script's paths as one client has them: made once, so that no operation makes any.

use super::script::CLIENT;
use std::ffi::CString;

/// One path below the work directory.
#[derive(Debug)]
pub(super) struct Place {
    /// The path itself.
    pub(super) path: CString,
    /// That of the directory it is in.
    pub(super) parent: CString,
    /// Its name there.
    pub(super) name: Vec<u8>,
}

impl Place {
    /// `path`, which is one of [`CLIENT`], as `client` has it. Clients are counted from 0, their folders from 1.
    pub(super) fn of_client(path: &str, client: u32) -> Self {
        let own = path_of_client(path, client);
        let (parent, name) = own.rsplit_once('/').unwrap_or((".", &own));
        Self { path: text(&own), parent: text(parent), name: name.as_bytes().to_vec() }
    }
}

/// `path` with the client's own folder in the place of that of [`CLIENT`].
pub(super) fn path_of_client(path: &str, client: u32) -> String {
    let own = format!("client{}", u64::from(client) + 1);
    let parts: Vec<&str> = path.split('/').map(|part| if part == CLIENT { own.as_str() } else { part }).collect();
    parts.join("/")
}

/// Scripts have no path with a byte of zero.
fn text(path: &str) -> CString {
    CString::new(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_folder_of_its_own() {
        let place = Place::of_client("clients/client1/~dmtmp/client1x", 15);
        assert_eq!(place.path.as_c_str(), c"clients/client16/~dmtmp/client1x");
        assert_eq!((place.parent.as_c_str(), place.name.as_slice()), (c"clients/client16/~dmtmp", &b"client1x"[..]));
        let top = Place::of_client("clients", 3);
        assert_eq!((top.parent.as_c_str(), top.name.as_slice()), (c".", &b"clients"[..]));
    }
}
