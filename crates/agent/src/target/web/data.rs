//! The files of a web server: the set that it serves, and those of its program; made, checked, removed.

use super::OnWeb;
use crate::failure::Failure;
use crate::workload::on_web;
use crate::{output, stop};
use plimsoll_record::{Check, Summary};
use plimsoll_web::post_log::{self, Sent};
use plimsoll_web::{FileSet, LEDGER, Web, acknowledged};
use plimsoll_workload::AnyWorkload;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PERSONALITIES: &str = "User.Personality";
const CUSTOM_ADS: &str = "Custom.Ads";
const POST_LOG: &str = "post.log";
/// At most one progress line in this time.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    let path = path.to_owned();
    move |error| Failure::Target(format!("{}: {error}", path.display()))
}

/// Makes the two files of the program anew, and its log empty.
fn reset(program: &Path, web: &Web) -> Result<(), Failure> {
    // Before 1970 no clock is right.
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let (seed, users) = (web.parameters().seed, web.parameters().users);
    plimsoll_responder::reset(program, seed, users, now_s).map_err(|error| Failure::Target(error.to_string()))
}

impl OnWeb {
    /// Makes the set of files, and those of the program if its folder is named.
    pub(in crate::target) fn populate(&self, workload: Box<dyn AnyWorkload>) -> Result<(), Failure> {
        let web = on_web(workload)?;
        let folder = self.folder()?;
        stop::exit_on_signal("the files are incomplete, drop them")?;
        let (started, total) = (Instant::now(), web.files().bytes());
        let (mut done, mut told) = (0, Duration::ZERO);
        web.files().lay_out(folder, &mut |bytes| {
            done += bytes;
            let since = started.elapsed();
            if since - told >= PROGRESS_EVERY {
                told = since;
                output::event("progress", json!({"done": done, "total": total, "seconds": since.as_secs_f64()}));
            }
        })?;
        if let Some(program) = &self.program {
            reset(program, &web)?;
        }
        output::event("populated", json!({"bytes": done, "seconds": started.elapsed().as_secs_f64()}));
        Ok(())
    }

    /// Reads the set of files, and compares the log of POSTs with what segments have sent.
    pub(in crate::target) fn check(
        &self,
        workload: Box<dyn AnyWorkload>,
        segments: &[Summary],
        paths: &[PathBuf],
    ) -> Result<(), Failure> {
        let web = on_web(workload)?;
        let mut checks = web.files().check(self.folder()?)?;
        if let Some(program) = &self.program {
            checks.extend(posts(&program.join(POST_LOG), &web, segments, paths)?);
        }
        output::event("checked", json!({"checks": checks}));
        Ok(())
    }

    /// Removes the set of files and those of the program.
    pub(in crate::target) fn remove(&self) -> Result<(), Failure> {
        stop::exit_on_signal("some of the files may still be there")?;
        let existed = FileSet::remove(self.folder()?)?;
        let of_program = |program: &PathBuf| [PERSONALITIES, CUSTOM_ADS, POST_LOG].map(|name| program.join(name));
        for path in self.program.iter().flat_map(of_program) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path)(error)),
                _ => {}
            }
        }
        output::event("dropped", json!({"existed": existed}));
        Ok(())
    }
}

fn posts(log: &Path, web: &Web, segments: &[Summary], paths: &[PathBuf]) -> Result<Vec<Check>, Failure> {
    let bytes = std::fs::read(log).map_err(failed(log))?;
    let taken: Vec<_> = segments.iter().map(|segment| segment.first_index..segment.next_index).collect();
    let mut answered = Vec::new();
    for summary in paths {
        let folder = summary.parent().unwrap_or(Path::new("."));
        let read = acknowledged(folder);
        let refused = |error| Failure::Request(format!("segments: {}: {error}", folder.join(LEDGER).display()));
        answered.extend(read.map_err(refused)?);
    }
    let request = |index| web.mix().request(index);
    Ok(post_log::check(&bytes, &Sent { taken: &taken, acknowledged: &answered, request: &request }))
}
