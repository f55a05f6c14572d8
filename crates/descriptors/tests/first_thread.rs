//! What the first thread of a process is told; no test of the harness runs on one, so this program has none.

fn main() {
    let refused = plimsoll_descriptors::enter_thread().map_err(|error| error.kind());
    assert_eq!(refused, Err(std::io::ErrorKind::InvalidInput));
    let other = std::thread::spawn(|| plimsoll_descriptors::enter_thread().is_ok()).join();
    assert!(matches!(other, Ok(true)));
}
