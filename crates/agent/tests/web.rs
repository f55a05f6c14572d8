//! The workload web by the agent: files made, a server loaded, files and log checked, all dropped.

#![allow(clippy::unwrap_used)]

mod support;
#[path = "../../web/tests/support/mod.rs"]
mod web;

use plimsoll_record::Table;
use serde_json::{Value, json};
use std::path::Path;
use support::{agent, failed_checks, must};
use web::server::{Framing, Server, Wrong, start};
use web::{DIRECTORIES, SEED};

struct Site {
    place: tempfile::TempDir,
    server: Server,
}

impl Site {
    fn new(wrong: Wrong, one_in: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["root", "program", "out"] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        Self { place, server: start(Framing::Length, wrong, one_in) }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    fn request(&self, more: Value) -> Value {
        let target = json!({
            "kind": "web", "url": self.server.url(), "folder": self.path("root"), "program": self.path("program"),
        });
        let mix = json!({"static": 3, "dynamic": 1, "cgi": 1, "custom_ad": 3, "post": 2});
        let workload = json!({
            "name": "web", "seed": SEED, "directories": DIRECTORIES, "mix": mix, "classes": [30, 70, 0, 0],
        });
        let mut request = json!({"target": target, "workload": workload});
        more.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        request
    }

    fn load(&self, more: Value) -> Value {
        let mut load = json!({"clients": 10, "threads": 2, "out": self.path("out"), "stop": {"transactions": 1_000}});
        more.as_object().unwrap().iter().for_each(|(key, value)| load[key] = value.clone());
        must("load", &self.request(load))
    }

    /// Checks that fail once the server has closed its log.
    fn failed_checks(&self) -> Vec<String> {
        std::fs::write(self.path("program").join("post.log"), self.server.log()).unwrap();
        let checked = must("check", &self.request(json!({"segments": [self.path("out").join("summary.json")]})));
        failed_checks(&checked).into_iter().map(str::to_owned).collect()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn a_site_is_made_loaded_checked_and_dropped() {
    let site = Site::new(Wrong::Nothing, 1);
    let bytes = u64::from(DIRECTORIES) * 5_119_484;
    let populated = must("populate", &site.request(json!({})));
    assert_eq!((&populated["event"], &populated["bytes"]), (&json!("populated"), &json!(bytes)));
    assert_eq!(names(&site.path("program")), ["Custom.Ads", "User.Personality", "post.log"]);
    assert_eq!(std::fs::metadata(site.path("program").join("User.Personality")).unwrap().len(), 2_000 * 15);
    assert_eq!(std::fs::metadata(site.path("program").join("Custom.Ads")).unwrap().len(), 360 * 39);

    let summary = site.load(json!({"first_index": 7}));
    assert_eq!((&summary["identity"]["done"], &summary["identity"]["planned"]), (&json!(1_000), &json!(1_000)));
    assert_eq!(summary["kinds"], json!(["static", "dynamic", "cgi", "custom_ad", "post"]));
    assert_eq!((&summary["verification"]["checked"], &summary["verification"]["wrong"]), (&json!(1_000), &json!(0)));
    assert_eq!(summary["totals"]["posts_acknowledged"], summary["by_kind"]["post"]["done"]);
    assert_eq!(summary["facts"], json!({"directories": DIRECTORIES, "file_set_bytes": bytes}));
    assert_eq!((&summary["server_commits_beside"], &summary["workload"]), (&Value::Null, &json!("web")));
    let rows = Table::read(&site.path("out").join("transactions.npy")).unwrap();
    assert_eq!(rows.len(), 1_000);
    assert!(rows.column("bytes").unwrap().iter().all(|&bytes| bytes >= 102), "bodies are counted");
    assert_eq!(site.failed_checks(), [""; 0]);

    assert_eq!(must("drop", &site.request(json!({})))["existed"], true);
    assert_eq!((names(&site.path("root")).len(), names(&site.path("program")).len()), (0, 0));
}

#[test]
fn faults_are_counted_and_lost_posts_found() {
    let site = Site::new(Wrong::PostLost, 20);
    must("populate", &site.request(json!({})));
    assert_eq!(site.load(json!({}))["identity"]["done"], 1_000);
    assert_eq!(site.failed_checks(), ["POSTs answered and not in the log"]);

    let site = Site::new(Wrong::StaleCookie, 50);
    let summary = site.load(json!({}));
    let wrong = site.server.wrongs();
    assert!(wrong > 0);
    assert_eq!((&summary["verification"]["wrong"], &summary["identity"]["failed"]), (&json!(wrong), &json!(wrong)));
    assert_eq!(summary["totals"]["wrong_cookie"], wrong);
    assert_eq!(summary["errors"][0]["sqlstate"], "XXVER");
}

#[test]
fn what_cannot_be_is_refused_with_the_field() {
    let site = Site::new(Wrong::Nothing, 1);
    let refused = |verb: &str, target: Value, workload: Value, code: i32, why: &str| {
        let load = json!({"target": target, "workload": workload, "clients": 1, "out": site.path("out")});
        let other = json!({"target": target, "workload": workload});
        let said = agent(verb, if verb == "load" { &load } else { &other });
        let told = format!("{said:?}");
        assert_eq!(said.code, Some(code), "{told}");
        assert!(told.contains(why), "{told}");
    };
    let web = json!({"name": "web", "seed": 1, "directories": 1});
    refused("load", json!({"kind": "web"}), web.clone(), 2, "target.url: missing");
    refused("load", json!({"kind": "web", "url": "ftp://h"}), web.clone(), 2, "does not begin with http://");
    let url = site.server.url();
    refused("load", json!({"kind": "web", "url": url, "tls": {}}), web.clone(), 2, "target.tls: ");
    let secured = url.replace("http:", "https:");
    let ca = json!({"ca": "/nowhere"});
    refused("load", json!({"kind": "web", "url": secured, "tls": ca}), web.clone(), 2, "target.tls.ca: /nowhere: ");
    let any = json!({"verify": false});
    refused("load", json!({"kind": "web", "url": secured, "tls": any}), web.clone(), 3, "TLS: ");
    refused("load", json!({"kind": "web", "url": "http://127.0.0.1:1"}), web.clone(), 3, "cannot be reached");
    refused("populate", json!({"kind": "web"}), web.clone(), 2, "target.folder: missing");
    let files = json!({"kind": "files", "folder": site.path("root")});
    refused("load", files, web, 2, "workload.name: web");
    let bank = json!({"name": "bank", "scale": 1, "seed": 1});
    refused("load", json!({"kind": "web", "url": site.server.url()}), bank, 2, "is none for a web server");
    let wrong = json!({"name": "web", "seed": 1, "directories": 0});
    refused(
        "populate",
        json!({"kind": "web", "folder": site.path("root")}),
        wrong,
        2,
        "workload.directories: 0 is not",
    );
    let wrong = json!({"name": "web", "seed": 1, "directories": 1, "mix": {"statik": 1}});
    refused("populate", json!({"kind": "web", "folder": site.path("root")}), wrong, 2, "statik");
    std::fs::write(site.path("root").join("mine"), "x").unwrap();
    let folder = json!({"kind": "web", "folder": site.path("root")});
    refused("populate", folder, json!({"name": "web", "seed": 1, "directories": 1}), 2, "it holds mine");
}
