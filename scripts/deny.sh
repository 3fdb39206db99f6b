#!/usr/bin/env bash
# Licences, sources and bans of the dependencies as deny.toml wants them.
# Advisories are left out: their database has to be fetched from the network.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
if ! cargo deny --version >/dev/null 2>&1; then
  say "cargo-deny is not installed, nothing checked; cargo install --locked cargo-deny brings it."
  exit 0
fi
cargo deny check licenses bans sources
