//! PostgreSQL's page arithmetic: how many pages rows of constant width take, freshly loaded.

pub(crate) const PAGE_BYTES: u64 = 8192;
const PAGE_HEADER_BYTES: u64 = 24;
const LINE_POINTER_BYTES: u64 = 4;
/// A row's header, aligned; with a bitmap of NULLs too, up to eight columns.
const ROW_HEADER_BYTES: u64 = 24;
const ALIGNMENT_BYTES: u64 = 8;
/// An entry's header in a B-tree, before its key.
const ENTRY_HEADER_BYTES: u64 = 8;
/// What an entry of a B-tree takes at most when it lists the rows that share its key, and what a row takes there.
const LIST_BYTES_MAX: u64 = 812;
const LISTED_ROW_BYTES: u64 = 6;
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

/// Bytes of an entry of a B-tree with a key of `key_bytes`.
fn entry_bytes(key_bytes: u64) -> u64 {
    ENTRY_HEADER_BYTES + key_bytes.next_multiple_of(ALIGNMENT_BYTES) + LINE_POINTER_BYTES
}

/// How many entries of `bytes` fit on a page that is filled to `filled` per cent.
fn entries(bytes: u64, filled: u64) -> u64 {
    (PAGE_BYTES - BTREE_PAGE_BYTES) * filled / 100 / bytes
}

/// Pages of a freshly built B-tree over `rows` rows with keys of `key_bytes`.
pub(crate) fn index_pages(rows: u64, key_bytes: u64) -> u64 {
    let bytes = entry_bytes(key_bytes);
    tree_pages(rows.div_ceil(entries(bytes, LEAF_FILLED)), bytes)
}

/// The same where `shared` rows have the same key, on average: one entry lists as many of them as it may.
pub(crate) fn duplicates_pages(rows: u64, key_bytes: u64, shared: u64) -> u64 {
    let bytes = entry_bytes(key_bytes);
    let listed = shared.min((LIST_BYTES_MAX - bytes) / LISTED_ROW_BYTES);
    if listed <= 1 {
        return index_pages(rows, key_bytes);
    }
    let list = (bytes + listed * LISTED_ROW_BYTES).next_multiple_of(ALIGNMENT_BYTES);
    tree_pages(rows.div_ceil(listed).div_ceil(entries(list, LEAF_FILLED)), bytes)
}

/// Pages of a B-tree of so many leaves whose inner entries take `bytes`.
fn tree_pages(leaves: u64, bytes: u64) -> u64 {
    let mut level = leaves.max(1);
    // The meta page, the leaves, and inner levels up to a single root.
    let mut pages = 1 + level;
    while level > 1 {
        level = level.div_ceil(entries(bytes, INNER_FILLED));
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
