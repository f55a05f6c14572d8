//! How the names that are missing can be had: by the package that a file is of, where Debian's list of files tells, or by
//! what identifies its build.

use plimsoll_record::ProfiledImage;
use std::fs;
use std::path::{Path, PathBuf};

const LISTS: &str = "/var/lib/dpkg/info";

/// The package whose list of files in `lists` has `path`.
fn package_of(path: &str, lists: &Path) -> Option<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(lists).ok()?.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "list"));
    files.sort();
    // Directories have moved to /usr; lists may have the names from before.
    let before = path.strip_prefix("/usr").unwrap_or(path);
    let holds = |file: &PathBuf| {
        fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line == path || line == before))
    };
    let list = files.into_iter().find(holds)?;
    // "libc6:amd64.list"
    Some(list.file_stem()?.to_str()?.split(':').next()?.to_owned())
}

fn remedy(path: &str, build_id: Option<&str>, lists: &Path) -> String {
    let package = match package_of(path, lists).as_deref() {
        // The one library that names its symbols in its own way.
        Some("libc6") => Some("libc6-dbg".to_owned()),
        Some(package) => Some(format!("{package}-dbgsym")),
        None => None,
    };
    let by_package = package.map(|name| format!("install {name} (from Debian's archive of debug symbols)"));
    let by_build = build_id.map(|id| {
        format!(
            "copy what `debuginfod-find debuginfo {id}` finds to /usr/lib/debug/.build-id/{}/{}.debug",
            &id[..2.min(id.len())],
            &id[2.min(id.len())..]
        )
    });
    match (by_package, by_build) {
        (Some(one), Some(other)) => format!("{one}, or {other}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => "build it with its symbols: it has nothing that identifies it".to_owned(),
    }
}

/// Says for each file with samples that no name was found for what would name them.
pub(crate) fn advise(images: &mut [ProfiledImage]) {
    for image in images.iter_mut().filter(|image| image.unnamed > 0 && image.path.starts_with('/')) {
        image.remedy = Some(remedy(&image.path, image.build_id.as_deref(), Path::new(LISTS)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_file_is_found_by_its_list() {
        let lists = tempfile::tempdir().unwrap();
        fs::write(lists.path().join("postgresql-15.list"), "/.\n/usr/lib/postgresql/15/bin/postgres\n").unwrap();
        fs::write(lists.path().join("libc6:amd64.list"), "/lib/x86_64-linux-gnu/libc.so.6\n").unwrap();
        let of = |path| remedy(path, Some("ab12"), lists.path());
        assert!(of("/usr/lib/postgresql/15/bin/postgres").contains("postgresql-15-dbgsym"));
        assert!(of("/usr/lib/x86_64-linux-gnu/libc.so.6").contains("libc6-dbg"));
        assert!(of("/opt/other").contains("/usr/lib/debug/.build-id/ab/12.debug"));
        assert!(remedy("/opt/other", None, lists.path()).contains("build it"));
    }
}
