//! Whose certificates are believed.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a certificate has to be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// A file of certificates (PEM) whose holders are believed; without it those of the system.
    #[serde(default)]
    ca: Option<PathBuf>,
    /// False: any certificate is taken, and nobody knows who answers.
    #[serde(default = "yes")]
    verify: bool,
}

fn yes() -> bool {
    true
}

impl Default for Trust {
    fn default() -> Self {
        Self { ca: None, verify: true }
    }
}

impl Trust {
    /// Where it comes from, for who is not trusted.
    pub(super) fn source(&self) -> String {
        self.ca.as_ref().map_or_else(|| "the system's certificates".to_owned(), |path| path.display().to_string())
    }

    /// How a client speaks TLS that trusts so.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub(super) fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("verify: {error}"))?;
        let builder = if self.verify {
            builder.with_root_certificates(self.roots()?)
        } else {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        let certificates = match &self.ca {
            Some(path) => read(path)?,
            // Those that cannot be read trust nobody.
            None => rustls_native_certs::load_native_certs().certs,
        };
        let (taken, _) = roots.add_parsable_certificates(certificates);
        match (taken, &self.ca) {
            (0, Some(path)) => Err(format!("ca: {} has no certificate that can be used", path.display())),
            (0, None) => Err("ca: this system has no certificates; name a bundle".to_owned()),
            _ => Ok(roots),
        }
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error| format!("ca: {}: {error}", path.display());
    CertificateDer::pem_file_iter(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

/// Takes every certificate, and makes sure that whoever shows it has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
