//! The record of a run: the types and files of `schema/record.md` that the agent writes and every reader understands.
//!
//! The fact that constrains it: a run may be cut short at any byte. Tables are therefore flat rows behind a header of fixed
//! length; a reader believes the file's size, never the row count in the header.

mod breakdown;
mod check;
mod file_wait;
mod latency;
mod live;
mod nfs;
mod npy;
mod probe;
mod reader;
mod rows;
mod seconds;
mod series;
mod summary;
mod sync;
mod transaction;
mod window;

pub use breakdown::{BreakdownRow, BreakdownWriter, WaitRow};
pub use check::Check;
pub use file_wait::FileWaitRow;
pub use latency::write_latency;
pub use live::{LiveLine, LiveNow, LiveProcess, LiveWait};
pub use nfs::{NfsCallRow, NfsTaskRow};
pub use npy::{Field, FieldType, TableWriter};
pub use probe::{
    BlockReport, BreakdownReport, Bucket, CallTotals, Contended, Contention, Cost, CounterReport, Counts, DiskRequests,
    FileSystem, FileWaitsReport, KernelEvent, KernelLogReport, MachineSpeedReport, NfsCallsReport, NfsMount,
    NfsTaskOperation, NfsTasks, OtherCalls, PageCacheReport, PageIdentity, ProbeReport, ProbeStatus, ProcessTime,
    Profile, ProfileReport, ProfileSamples, ProfiledImage, ProgramCost, RequestTotals, Sampling, SelfTest, SlabsReport,
    SyncReport, SyncTotals, SystemCallsReport, Ticks, WaitPlace, Waited, WorkerTime, WorkerWaitsReport,
};
pub use reader::{ReadError, Table};
pub use rows::{RowWriter, TableRow};
pub use seconds::SecondsWriter;
pub use series::{ABSENT_SAMPLE, SeriesWriter};
pub use summary::{
    ByKind, ErrorEntry, FORMAT, Health, Identity, LagNs, Rows, Summary, VERIFICATION_EXAMPLES_MAX, Verification,
    Windows, WrongAnswer,
};
pub use sync::{SYNC_PARTS, SyncRow, SyncWriter};
pub use transaction::{KIND_NOT_DRAWN, NO_CONNECTION, Outcome, Transaction, TransactionWriter};
pub use window::{WindowRow, WindowWriter};
