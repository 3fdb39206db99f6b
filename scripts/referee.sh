#!/usr/bin/env bash
# Plays small suites with several releases of Playwright and compares what the built service stores with Playwright's
# own reports of the same runs. Needs the built service, the built reporter and the packages of tests/referee.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

if [ ! -x "$(target_dir)/debug/callboard" ]; then die "the service is missing: build it first with cargo build --workspace --bins"; fi
folder=$(mktemp -d)
trap 'stop_services; rm -rf "$folder"' EXIT
address=
start_service "$folder" SERVICE_RATE_LIMITS=off
cd tests/referee
export CALLBOARD_URL=$address TMPDIR=$folder
play() { node --test --test-concurrency=2 --test-timeout=600000 --test-reporter=spec "$@"; }
# Two at a time: each suite starts Playwright and its workers. They interrupt processes at moments that a busy machine
# can miss, so what fails is played once more by itself.
if ! play outcomes.mjs cut-off.mjs run-errors.mjs details.mjs last-failed.mjs two-folders.mjs; then
  say "Once more, one after the other."
  for suite in outcomes cut-off run-errors details last-failed two-folders; do play --test-concurrency=1 "$suite.mjs"; done
fi
