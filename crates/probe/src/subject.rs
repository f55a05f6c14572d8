//! What a probe watches of a target: processes, and folders with the class of the files in them.
//!
//! The fact that constrains it: programs in the kernel ask at every event whether it is the target's. So its processes are one
//! and the children of that one, which takes a comparison or two (bpf/family.bpf.h).

use crate::Refusal;
use crate::folders::Files;
use std::path::Path;

/// The processes and the files of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The process that is watched with its children.
    pub process: u32,
    /// What it reads and writes.
    pub files: Files,
}

impl Subject {
    /// `process` with its children, and the files in `folder`, which are of one class.
    ///
    /// # Errors
    /// When there is no such process or folder.
    pub fn of_folder(folder: &Path, process: u32) -> Result<Self, Refusal> {
        if !Path::new("/proc").join(process.to_string()).exists() {
            return Err(Refusal::from(format!("there is no process {process}")));
        }
        Ok(Self { process, files: Files::of_folder(folder)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folders::Class;

    #[test]
    fn a_folder_has_one_class_and_a_process_that_runs() {
        let folder = tempfile::tempdir().unwrap();
        let subject = Subject::of_folder(folder.path(), std::process::id()).unwrap();
        let trees = subject.files.trees();
        assert_eq!((trees.len(), trees[0].class), (1, Class::Other));
        let refused = |folder: &Path, process| Subject::of_folder(folder, process).unwrap_err().reason;
        assert_eq!(refused(folder.path(), u32::MAX), format!("there is no process {}", u32::MAX));
        assert!(refused(&folder.path().join("none"), std::process::id()).contains("none"));
    }
}
