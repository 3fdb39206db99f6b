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
settings=(SERVICE_RATE_LIMITS=off)
# A model that the environment names is asked too; its key is stored encrypted in a folder that goes afterwards.
if [ -n "${EVAL_MODEL:-}" ]; then
  settings+=("SERVICE_SECRET_KEY=$(node -p 'require("node:crypto").randomBytes(32).toString("hex")')")
  settings+=("SERVICE_EGRESS_ALLOW=$(node -p 'new URL(process.env.EVAL_MODEL_BASE_URL).host')")
fi
start_service "$folder/service" "${settings[@]}"
CALLBOARD_URL=$address EVAL_FIGURES="$(target_dir)/eval/diagnosis.json" node tests/eval/diagnosis/evaluate.mjs "$@"
