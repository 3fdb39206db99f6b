#!/usr/bin/env bash
# Measures the methods that judge and group results; arguments go to the program.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
cargo run --locked --quiet -p callboard-eval -- "$@"
