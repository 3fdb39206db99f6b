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
play() { node --test --test-timeout=600000 --test-reporter=spec "$1.mjs"; }
play_and_note() { play "$1" >"$folder/$1.log" 2>&1 || printf '%s\n' "$1" >>"$folder/failed"; }
export -f play play_and_note
export folder
# Two at a time: each suite starts Playwright and its workers. They interrupt processes at moments that a busy machine
# can miss, so what fails is played once more by itself.
suites=(outcomes cut-off run-errors details last-failed two-folders)
printf '%s\n' "${suites[@]}" | xargs -P 2 -I '{}' bash -c 'play_and_note {}'
for suite in "${suites[@]}"; do cat "$folder/$suite.log"; done
if [ -e "$folder/failed" ]; then
  while read -r suite; do
    say "Once more: $suite"
    play "$suite" </dev/null
  done <"$folder/failed"
fi
