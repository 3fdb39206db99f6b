#!/usr/bin/env bash
# Builds the service and starts it with the embedded defaults: SQLite and a
# folder of files under .data/. SERVICE_ variables change that.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
# The service works without them; pages say what is missing.
scripts/assets.sh || say "The trace viewer could not be fetched; traces can still be downloaded. Run \`make assets\` later."
say "Building the service (the first time takes some minutes) ..."
# The workspace as a whole, as everywhere: building one package alone would
# choose other features of the dependencies and compile them again.
cargo build --locked --workspace --bins
say "Starting it on http://localhost:${SERVICE_PORT:-${PORT:-3000}}, data in ${SERVICE_DATA_DIR:-.data}/, Ctrl+C ends it."
exec "$(target_dir)/debug/callboard"
