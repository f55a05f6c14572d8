//! PostgreSQL's page arithmetic: how many pages rows of constant width take, freshly loaded.

pub(crate) const PAGE_BYTES: u64 = 8192;
const PAGE_HEADER_BYTES: u64 = 24;
const LINE_POINTER_BYTES: u64 = 4;
/// A row's header, aligned; with a bitmap of NULLs too, up to eight columns.
const ROW_HEADER_BYTES: u64 = 24;
const ALIGNMENT_BYTES: u64 = 8;
/// An entry's header in a B-tree, before its key.
const ENTRY_HEADER_BYTES: u64 = 8;
/// What a B-tree page keeps for itself: its header, its special space and the line pointer of its upper bound.
const BTREE_PAGE_BYTES: u64 = 24 + 16;
/// Per cent of a freshly built leaf that is filled.
const LEAF_FILLED: u64 = 90;
/// Per cent of a freshly built inner page that is filled.
const INNER_FILLED: u64 = 70;
/// Heap pages that one page of the free space map covers.
const FSM_COVERS_PAGES: u64 = 4069;
/// Heap pages that one page of the visibility map covers.
const VM_COVERS_PAGES: u64 = 32_672;

/// Pages of `rows` rows whose values take `value_bytes`, filled to `fillfactor` per cent.
pub(crate) fn heap_pages(rows: u64, value_bytes: u64, fillfactor: u64) -> u64 {
    let width = (ROW_HEADER_BYTES + value_bytes).next_multiple_of(ALIGNMENT_BYTES) + LINE_POINTER_BYTES;
    let reserved = PAGE_BYTES * (100 - fillfactor) / 100;
    rows.div_ceil((PAGE_BYTES - PAGE_HEADER_BYTES - reserved) / width)
}

/// Pages of the free space map and the visibility map of a table of `heap` pages.
pub(crate) fn map_pages(heap: u64) -> u64 {
    2 + heap.div_ceil(FSM_COVERS_PAGES) + heap.div_ceil(VM_COVERS_PAGES)
}

/// Pages of a primary key over `rows` integers or bigints.
pub(crate) fn key_pages(rows: u64) -> u64 {
    index_pages(rows, 8)
}

/// Pages of a freshly built B-tree over `rows` rows with keys of `key_bytes`.
pub(crate) fn index_pages(rows: u64, key_bytes: u64) -> u64 {
    let width = ENTRY_HEADER_BYTES + key_bytes.next_multiple_of(ALIGNMENT_BYTES) + LINE_POINTER_BYTES;
    let entries = |filled: u64| (PAGE_BYTES - BTREE_PAGE_BYTES) * filled / 100 / width;
    let mut level = rows.div_ceil(entries(LEAF_FILLED)).max(1);
    // The meta page, the leaves, and inner levels up to a single root.
    let mut pages = 1 + level;
    while level > 1 {
        level = level.div_ceil(entries(INNER_FILLED));
        pages += level;
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_what_servers_put_there() {
        // 366 integers on a leaf, 285 children on an inner page.
        assert_eq!([366, 367, 366 * 285, 366 * 286].map(key_pages), [2, 4, 287, 290]);
    }
}
