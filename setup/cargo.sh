# shellcheck shell=sh
# Sourced by setup/setup and ./test with $root set: which cargo is used, and where it builds.

use_project_rust() {
    [ -x "$root/.plimsoll/cargo/bin/cargo" ] || return 0
    export CARGO_HOME="$root/.plimsoll/cargo" RUSTUP_HOME="$root/.plimsoll/rustup" PATH="$root/.plimsoll/cargo/bin:$PATH"
}

# libbpf is built by make, which takes a blank in a path for two paths. What is built in between then lies elsewhere; the
# programs themselves are in $root/target all the same. (A folder that others cannot write to: the agent runs as root.)
case $root in
    *[!A-Za-z0-9/._+-]*)
        CARGO_BUILD_BUILD_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll/build-$(printf '%s' "$root" | cksum | cut -d' ' -f1)
        export CARGO_BUILD_BUILD_DIR ;;
esac
