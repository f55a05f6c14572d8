//! Where classic tracepoints have their fields: their format files say, since types and places changed between kernels.

use crate::Refusal;
use crate::bpf::offset;
use std::fs;
use std::path::Path;

/// Offsets in bytes, in the order of `struct settings`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields([u32; 15]);

/// Tracepoint and field of each offset; the last of a name may be missing in old kernels.
const PLACES: [(&str, &str); 15] = [
    ("mm_filemap_add_to_page_cache", "i_ino"),
    ("mm_filemap_add_to_page_cache", "index"),
    ("mm_filemap_add_to_page_cache", "s_dev"),
    ("mm_filemap_add_to_page_cache", "order"),
    ("mm_filemap_get_pages", "i_ino"),
    ("mm_filemap_get_pages", "s_dev"),
    ("mm_filemap_get_pages", "index"),
    ("mm_filemap_get_pages", "last_index"),
    ("mm_filemap_map_pages", "i_ino"),
    ("mm_filemap_map_pages", "s_dev"),
    ("mm_filemap_map_pages", "index"),
    ("mm_filemap_map_pages", "last_index"),
    ("mm_filemap_fault", "i_ino"),
    ("mm_filemap_fault", "s_dev"),
    ("mm_filemap_fault", "index"),
];
/// Fields that a kernel may do without.
const OPTIONAL: [&str; 1] = ["order"];

impl Fields {
    /// Reads the formats under `events` (tracefs) of the tracepoints that are there.
    pub(crate) fn read(events: &Path) -> Result<Self, Refusal> {
        let mut fields = Self::default();
        for (place, (tracepoint, field)) in fields.0.iter_mut().zip(PLACES) {
            let path = events.join("filemap").join(tracepoint).join("format");
            let Ok(format) = fs::read_to_string(&path) else { continue };
            match offset(&format, field) {
                Some(found) => *place = found,
                None if OPTIONAL.contains(&field) => {}
                None => return Err(Refusal::from(format!("{}: no field {field}", path.display()))),
            }
        }
        Ok(fields)
    }

    pub(crate) fn words(&self) -> [u32; 15] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: mm_filemap_add_to_page_cache\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:unsigned long i_ino;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:dev_t s_dev;\toffset:32;\tsize:4;\tsigned:0;\n";

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(offset(FORMAT, "i_ino"), Some(16));
        assert_eq!(offset(FORMAT, "s_dev"), Some(32));
        assert_eq!(offset(FORMAT, "ino"), None);
    }

    #[test]
    fn a_missing_tracepoint_is_no_error_and_a_missing_field_is() {
        let events = tempfile::tempdir().unwrap();
        assert_eq!(Fields::read(events.path()), Ok(Fields::default()));
        let folder = events.path().join("filemap/mm_filemap_add_to_page_cache");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("format"), FORMAT).unwrap();
        assert!(Fields::read(events.path()).unwrap_err().reason.contains("no field index"));
        let whole = format!("{FORMAT}\tfield:unsigned long index;\toffset:24;\tsize:8;\tsigned:0;\n");
        fs::write(folder.join("format"), whole).unwrap();
        assert_eq!(Fields::read(events.path()).unwrap().words()[..4], [16, 24, 32, 0]);
    }
}
