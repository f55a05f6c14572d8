//! PostgreSQL's page arithmetic: how many pages rows of constant width take, freshly loaded.

pub(crate) const PAGE_BYTES: u64 = 8192;
const PAGE_HEADER_BYTES: u64 = 24;
const LINE_POINTER_BYTES: u64 = 4;
/// A row's header, aligned; with a bitmap of NULLs too, up to eight columns.
const ROW_HEADER_BYTES: u64 = 24;
const ALIGNMENT_BYTES: u64 = 8;
/// Rows of a freshly built B-tree leaf: an integer's or bigint's entry takes 16 bytes and a line pointer, the page is filled to
/// 90 %.
const LEAF_ENTRIES: u64 = 366;
/// Children of a freshly built inner page, filled to 70 %.
const INNER_ENTRIES: u64 = 285;
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

/// Pages of a primary key over `rows` integers.
pub(crate) fn key_pages(rows: u64) -> u64 {
    let mut level = rows.div_ceil(LEAF_ENTRIES).max(1);
    // The meta page, the leaves, and inner levels up to a single root.
    let mut pages = 1 + level;
    while level > 1 {
        level = level.div_ceil(INNER_ENTRIES);
        pages += level;
    }
    pages
}
