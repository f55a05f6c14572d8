//! Compiles the probes' programs with clang, when the feature `bpf` asks for them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of the programs, each of which has the name of its folder.
const PROBES: [&str; 10] = [
    "page_cache",
    "buffer_heads",
    "throttle",
    "breakdown",
    "syscalls",
    "sync",
    "block",
    "profile",
    "file_waits",
    "nfs_calls/tasks",
];

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/folders");
    if std::env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::thread::scope(|threads| {
        for probe in PROBES {
            println!("cargo:rerun-if-changed=src/{probe}");
            let name = probe.rsplit('/').next().unwrap_or(probe);
            let (source, object) = (format!("src/{probe}/{name}.bpf.c"), out.join(format!("{name}.bpf.o")));
            threads.spawn(move || compile(Path::new(&source), &object));
        }
    });
}

fn compile(source: &Path, object: &Path) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let machine = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target's machine");
    let (define, headers) = match machine.as_str() {
        "x86_64" => ("-D__TARGET_ARCH_x86", "/usr/include/x86_64-linux-gnu"),
        "aarch64" => ("-D__TARGET_ARCH_arm64", "/usr/include/aarch64-linux-gnu"),
        other => panic!("the probes in the kernel know x86_64 and aarch64, not {other}: build without the feature bpf"),
    };
    // libbpf's own headers, from the copy that is linked in.
    let libbpf = std::env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let mut command = Command::new(&clang);
    command.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wno-unused-function", define]);
    // Kernels up to 6.1 at least refuse loops whose body clang has moved in front of their entry.
    command.args(["-mllvm", "-disable-block-placement"]);
    command.arg(format!("-I{libbpf}")).args(["-idirafter", headers]).arg("-c").arg(source).arg("-o").arg(object);
    let done = command.status().unwrap_or_else(|error| {
        panic!("{clang} cannot be started ({error}): install clang, or build without the feature bpf")
    });
    assert!(done.success(), "{} does not compile", source.display());
}
