//! The set of files in a folder.

#![allow(clippy::unwrap_used)]

use plimsoll_web::{DIRECTORY_BYTES, FileSet, Place};
use std::fs;
use std::path::Path;

fn laid_out(directories: u32) -> (FileSet, tempfile::TempDir) {
    let (set, root) = (FileSet::new(directories, 1024).unwrap(), tempfile::tempdir().unwrap());
    let mut told = 0;
    set.lay_out(root.path(), &mut |bytes| told += bytes).unwrap();
    assert_eq!(told, set.bytes());
    (set, root)
}

fn at(root: &Path, directory: u32, class: u8, file: u8) -> std::path::PathBuf {
    root.join(&Place { directory, class, file }.path()[1..])
}

#[test]
fn bytes_are_exact_and_every_file_is_as_said() {
    let (set, root) = laid_out(3);
    assert_eq!(set.bytes(), 3 * DIRECTORY_BYTES);
    let mut bytes = 0;
    for place in (0..3).flat_map(Place::all_of) {
        let file = fs::read(root.path().join(&place.path()[1..])).unwrap();
        assert_eq!(file, set.contents().file(place), "{place:?}");
        bytes += file.len() as u64;
    }
    assert_eq!(bytes, set.bytes());
    assert!(set.check(root.path()).unwrap().iter().all(|check| check.ok));
}

#[test]
fn each_damage_is_found_and_named() {
    let (set, root) = laid_out(2);
    let whole = fs::read(at(root.path(), 1, 2, 3)).unwrap();
    let found = || set.check(root.path()).unwrap()[1].clone();

    fs::write(at(root.path(), 1, 2, 3), &whole[..whole.len() - 1]).unwrap();
    assert_eq!((found().ok, found().found.as_str()), (false, "1: /file_set/dir00001/class2_3"), "a byte is missing");
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(at(root.path(), 1, 2, 3), &changed).unwrap();
    assert!(!found().ok, "the last byte is another");
    fs::copy(at(root.path(), 0, 2, 3), at(root.path(), 1, 2, 3)).unwrap();
    assert!(!found().ok, "it is the file of another directory");
    fs::remove_file(at(root.path(), 1, 2, 3)).unwrap();
    assert!(!found().ok, "it is gone");
    fs::write(at(root.path(), 1, 2, 3), &whole).unwrap();
    assert!(found().ok);
}

#[test]
fn a_folder_with_anything_else_is_not_touched() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("mine"), "kept").unwrap();
    let set = FileSet::new(1, 1024).unwrap();
    let refused = set.lay_out(root.path(), &mut |_| {}).unwrap_err().to_string();
    assert!(refused.contains("it holds mine: give a folder that is empty"), "{refused}");
    let refused = FileSet::remove(root.path()).unwrap_err().to_string();
    assert!(refused.contains("nothing was removed"), "{refused}");
    assert_eq!(fs::read_to_string(root.path().join("mine")).unwrap(), "kept");
    let refused = set.check(root.path()).unwrap_err().to_string();
    assert!(refused.contains("load one first"), "{refused}");
}

#[test]
fn another_set_is_refused_and_what_is_ours_is_removed() {
    let (_, root) = laid_out(1);
    let refused = FileSet::new(2, 1024).unwrap().recognise(root.path()).unwrap_err().to_string();
    assert!(refused.contains("1 directories") && refused.contains("2 directories"), "{refused}");
    assert!(FileSet::remove(root.path()).unwrap());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    assert!(!FileSet::remove(root.path()).unwrap());
}

#[test]
fn what_a_kill_has_left_is_removed_and_not_used() {
    let (set, root) = (FileSet::new(2, 1024).unwrap(), tempfile::tempdir().unwrap());
    let killed = std::panic::catch_unwind(|| set.lay_out(root.path(), &mut |_| panic!("killed")));
    assert!(killed.is_err());
    assert!(set.recognise(root.path()).unwrap_err().to_string().contains("incomplete"));
    assert!(FileSet::remove(root.path()).unwrap());
}

#[test]
fn impossible_sets_name_the_parameter() {
    for (directories, every, field) in
        [(0, 64, "directories"), (100_001, 64, "directories"), (1, 65, "ad_every_bytes"), (1, 0, "ad_every_bytes")]
    {
        assert!(FileSet::new(directories, every).unwrap_err().starts_with(field));
    }
}
