//! The record of a run: the types and files of `schema/record.md` that the agent writes and every reader understands.
//!
//! The fact that constrains it: a run may be cut short at any byte. Tables are therefore flat rows behind a header of fixed
//! length; a reader believes the file's size, never the row count in the header.

mod block;
mod breakdown;
mod calls;
mod check;
mod latency;
mod live;
mod npy;
mod probe;
mod profile;
mod reader;
mod seconds;
mod series;
mod summary;
mod sync;
mod transaction;

pub use block::{Bucket, DiskRequests, RequestTotals};
pub use breakdown::{BreakdownRow, BreakdownWriter, WaitRow};
pub use calls::{CallTotals, OtherCalls};
pub use check::Check;
pub use latency::write_latency;
pub use live::{LiveLine, LiveNow, LiveProcess, LiveWait};
pub use npy::{Field, FieldType, TableWriter};
pub use probe::{
    Cost, Counts, FileSystem, PageIdentity, ProbeReport, ProcessTime, ProgramCost, Sampling, SelfTest, Waited,
};
pub use profile::{Contended, Contention, Profile, ProfileSamples, ProfiledImage};
pub use reader::{ReadError, Table};
pub use seconds::SecondsWriter;
pub use series::{ABSENT_SAMPLE, SeriesWriter};
pub use summary::{
    ByKind, ErrorEntry, FORMAT, Health, Identity, LagNs, Rows, Summary, VERIFICATION_EXAMPLES_MAX, Verification,
    WrongAnswer,
};
pub use sync::{SYNC_PARTS, SyncRow, SyncTotals, SyncWriter};
pub use transaction::{KIND_NOT_DRAWN, NO_CONNECTION, Outcome, Transaction, TransactionWriter};
