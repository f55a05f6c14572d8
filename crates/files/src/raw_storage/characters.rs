//! A file written and read a character at a time, as putc(3) and getc(3) of a program with threads do it: each takes
//! the stream's lock, moves one byte to or from a buffer, and lets go of the lock.
//!
//! The fact that constrains it: what is measured is that cost of the CPU, not the file system. Ours is a `Mutex` around
//! the standard library's `BufWriter` or `BufReader`, where the original has libc's lock and buffer.

use rustix::fs::fstat;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::{Mutex, PoisonError};

/// Of the buffer at most: libc's BUFSIZ.
const BUFFER_BYTES_MAX: usize = 8_192;

/// Bytes of the buffer that libc gives a stream on this file: the file's preferred block (st_blksize), or its own size
/// where that is none or is larger.
fn buffer_bytes(file: &File) -> usize {
    let preferred = fstat(file).ok().and_then(|stat| usize::try_from(stat.st_blksize).ok());
    preferred.filter(|&bytes| bytes > 0).map_or(BUFFER_BYTES_MAX, |bytes| bytes.min(BUFFER_BYTES_MAX))
}

/// A file that counts the system calls made on it.
#[derive(Debug)]
pub(super) struct Counted {
    file: File,
    calls: u32,
}

impl Counted {
    pub(super) fn new(file: File) -> Self {
        Self { file, calls: 0 }
    }
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        self.file.read(into)
    }
}

impl Write for Counted {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        self.file.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Characters on their way to a file.
#[derive(Debug)]
pub(super) struct Putc(Mutex<BufWriter<Counted>>);

impl Putc {
    pub(super) fn new(file: File) -> Self {
        Self(Mutex::new(BufWriter::with_capacity(buffer_bytes(&file), Counted::new(file))))
    }

    /// One character.
    #[inline]
    fn put(&self, character: u8) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&[character])
    }

    /// All of them, one after the other.
    ///
    /// # Errors
    /// When the buffer is full and cannot be written.
    pub(super) fn put_all(&self, characters: &[u8]) -> Result<(), Errno> {
        characters.iter().try_for_each(|&character| self.put(character)).map_err(|error| errno(&error))
    }

    /// Writes what is in the buffer.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(super) fn flush(&self) -> Result<(), Errno> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.flush().map_err(|error| errno(&error))
    }

    /// The file itself.
    pub(super) fn with_file<T>(&self, act: impl FnOnce(&File) -> T) -> T {
        act(&self.0.lock().unwrap_or_else(PoisonError::into_inner).get_ref().file)
    }

    /// The file, without what is still in the buffer.
    pub(super) fn into_file(self) -> File {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).into_parts().0.file
    }

    /// System calls since this was asked last.
    pub(super) fn take_calls(&self) -> u32 {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut().calls)
    }
}

/// Characters on their way from a file.
#[derive(Debug)]
pub(super) struct Getc(Mutex<BufReader<Counted>>);

impl Getc {
    pub(super) fn new(file: File) -> Self {
        Self(Mutex::new(BufReader::with_capacity(buffer_bytes(&file), Counted::new(file))))
    }

    /// One character; `None` at the end of the file.
    #[inline]
    pub(super) fn get(&self) -> Result<Option<u8>, Errno> {
        let mut character = [0];
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let read = stream.read(&mut character).map_err(|error| errno(&error))?;
        Ok((read > 0).then_some(character[0]))
    }

    /// Fills `characters`, one after the other; gives how many there were.
    ///
    /// # Errors
    /// When the buffer is empty and cannot be filled.
    pub(super) fn get_all(&self, characters: &mut [u8]) -> Result<usize, Errno> {
        for (place, character) in characters.iter_mut().enumerate() {
            match self.get()? {
                Some(got) => *character = got,
                None => return Ok(place),
            }
        }
        Ok(characters.len())
    }

    /// The file, without what is still in the buffer.
    pub(super) fn into_file(self) -> File {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).into_inner().file
    }

    /// System calls since this was asked last.
    pub(super) fn take_calls(&self) -> u32 {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut().calls)
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek;

    #[test]
    fn the_buffer_is_the_file_s_block_up_to_libc_s_own() {
        // Of a pipe it is a page; of what has no blocks to speak of libc's own.
        let block = |path: &str| buffer_bytes(&File::open(path).unwrap());
        let stat = |path: &str| fstat(File::open(path).unwrap()).unwrap().st_blksize as usize;
        for path in ["/proc/self/stat", "/proc/self/exe", "/sys/kernel"] {
            assert_eq!(block(path), stat(path).clamp(1, 8_192), "{path}");
        }
        let large = tempfile::tempdir().unwrap();
        assert_eq!(block(large.path().to_str().unwrap()), stat(large.path().to_str().unwrap()).min(8_192));
    }

    #[test]
    fn characters_go_out_and_come_back_in_buffers_of_a_block() {
        let mut file = tempfile::tempfile().unwrap();
        let text: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
        let putc = Putc::new(file.try_clone().unwrap());
        putc.put_all(&text).unwrap();
        assert_eq!((putc.take_calls(), file.metadata().unwrap().len()), (2, 8_192), "the rest is in the buffer");
        putc.flush().unwrap();
        assert_eq!((putc.take_calls(), file.metadata().unwrap().len()), (1, 10_000));
        file.rewind().unwrap();
        let getc = Getc::new(file);
        let mut read = vec![0; 10_000];
        assert_eq!((getc.get_all(&mut read), getc.take_calls()), (Ok(10_000), 3));
        assert_eq!((read == text, getc.get(), getc.take_calls()), (true, Ok(None), 1));
    }
}
