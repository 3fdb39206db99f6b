#!/usr/bin/env bash
# Builds the service optimised and measures it; arguments go to the load program.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
say "Building with optimisation (some minutes the first time) ..."
cargo build --locked --release --workspace --bins
exec "$(target_dir)/release/callboard-load" "$@"
