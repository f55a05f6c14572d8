//! Writes XDR.

#[derive(Default, Clone)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u32(&mut self, word: u32) -> &mut Self {
        self.0.extend_from_slice(&word.to_be_bytes());
        self
    }

    pub(crate) fn words(&mut self, words: &[u32]) -> &mut Self {
        words.iter().for_each(|&word| {
            self.u32(word);
        });
        self
    }

    pub(crate) fn u64(&mut self, word: u64) -> &mut Self {
        self.0.extend_from_slice(&word.to_be_bytes());
        self
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn opaque(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32).raw(bytes);
        while !self.0.len().is_multiple_of(4) {
            self.0.push(0);
        }
        self
    }

    /// File attributes of NFS 3.
    pub(crate) fn fattr3(&mut self) -> &mut Self {
        self.raw(&[7; 84])
    }

    /// A bitmap of two words, and attributes.
    pub(crate) fn fattr4(&mut self) -> &mut Self {
        self.words(&[2, 0x18, 0x30_0000]).opaque(&[9; 40])
    }
}

/// The head of a call with AUTH_SYS credentials.
pub(crate) fn call(xid: u32, program: u32, version: u32, procedure: u32) -> Writer {
    let mut writer = Writer::default();
    writer.words(&[xid, 0, 2, program, version, procedure, 1]);
    let mut credentials = Writer::default();
    credentials.u32(77).opaque(b"client").words(&[0, 0, 1, 0]);
    writer.opaque(&credentials.0).words(&[0, 0]);
    writer
}

/// The head of an accepted reply to a call that was performed.
pub(crate) fn reply(xid: u32) -> Writer {
    let mut writer = Writer::default();
    writer.words(&[xid, 1, 0, 0, 0, 0]);
    writer
}
