//! A web server: where it is, the folder that it serves, and the folder of the files of its program.

mod data;
mod load;

use crate::failure::Failure;
use plimsoll_web::{Address, Trust};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The server. What a verb does not need may be left out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnWeb {
    /// Where it listens: `http://host:port/prefix`, or `https://...`.
    #[serde(default)]
    url: Option<String>,
    /// Of `https://`: whose certificates are believed.
    #[serde(default)]
    tls: Option<Trust>,
    /// Its document root, as this machine sees it.
    #[serde(default)]
    folder: Option<PathBuf>,
    /// Where its program has User.Personality, Custom.Ads and the log of POSTs.
    #[serde(default)]
    program: Option<PathBuf>,
}

fn missing(field: &str, why: &str) -> Failure {
    Failure::Request(format!("target.{field}: missing; {why}"))
}

impl OnWeb {
    fn address(&self) -> Result<Address, Failure> {
        let url = self.url.as_deref().ok_or_else(|| missing("url", "a load needs a server"))?;
        if self.tls.is_some() && !url.starts_with("https://") {
            return Err(Failure::Request(format!("target.tls: \"{url}\" does not begin with https://")));
        }
        let address = Address::of_url(url, &self.tls.clone().unwrap_or_default());
        address.map_err(|error| Failure::Request(format!("target.{error}")))
    }

    fn folder(&self) -> Result<&Path, Failure> {
        self.folder
            .as_deref()
            .ok_or_else(|| missing("folder", "the document root is needed where files are made or read"))
    }
}
