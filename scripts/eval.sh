#!/usr/bin/env bash
# Measures the methods that judge and group results; arguments go to the program. `diagnosis` is another program: it
# makes executions with known causes in a browser and asks a service about them. Without arguments both run.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
if [ "${1:-}" != diagnosis ]; then cargo run --locked --quiet -p callboard-eval -- "$@"; fi
if [ $# -gt 0 ] && [ "$1" != diagnosis ]; then exit 0; fi
if [ $# -gt 0 ]; then shift; fi

need_node
need python3 "install Python 3: it reads the traces"
scripts/prerequisites.sh browser
if [ ! -d tests/e2e/node_modules ]; then scripts/prerequisites.sh npm tests/e2e; fi
if [ ! -d reporter/node_modules ]; then scripts/prerequisites.sh npm reporter; fi
npm --prefix reporter run --silent build
cargo build --locked --workspace --all-targets

folder=$(mktemp -d)
finish() {
  stop_services
  rm -rf "$folder"
}
trap finish EXIT
start_service "$folder/service" SERVICE_RATE_LIMITS=off
CALLBOARD_URL=$address EVAL_FIGURES="$(target_dir)/eval/diagnosis.json" node tests/eval/diagnosis/evaluate.mjs "$@"
