//! Passes over files in records: what each has left in them, so that the next knows what it is to find.

mod contents;
mod files;
mod history;
mod lane;
mod names;
mod progress;
mod sequence;
mod waker;

pub(crate) use contents::check_files;
pub(crate) use files::{Files, failed};
pub(crate) use history::{Layer, Shape};
pub(crate) use lane::{Closing, Due, Lane, Moved, Trouble};
pub(crate) use names::{close, file_name, refused};
pub(crate) use progress::{Progress, Stop};
pub(crate) use sequence::{Order, Sequence};
pub(crate) use waker::{HasProgress, Waker};
