#!/usr/bin/env bash
# What can be said about the code without running it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

step "Rust tools" scripts/prerequisites.sh rust || sum_up
step "Formatting (cargo fmt --all repairs it)" cargo fmt --all -- --check -l || true
step "Lints" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings || true
step "Links of the documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --lib --no-deps --quiet || true
step "Dependencies" scripts/deny.sh || true
sum_up
