#!/usr/bin/env bash
# Installs what the tests need, runs all of them and sums up. A step that fails
# does not stop those that do not need it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

say "Rust checks and tests on SQLite and PostgreSQL, requests nobody thought of, the reporter's tests, then a real Playwright run on both."
need_rust
need_node

# A failed assertion is told by its message: backtraces of asynchronous tests are long enough to hide it. Run the
# test alone with RUST_BACKTRACE=1 to see where a panic came from.
export RUST_BACKTRACE=0

server_folder=
stop_server() {
  if [ -n "$server_folder" ]; then scripts/postgres.sh stop "$server_folder"; fi
}
trap stop_server EXIT

built=false
step "Rust tools" scripts/prerequisites.sh rust || sum_up
step "Formatting (cargo fmt --all repairs it)" cargo fmt --all -- --check -l || true
step "Trace viewer" scripts/assets.sh || true
# What the tests need besides is fetched while the compiler works, which leaves the network alone.
fuzzer="Packages of the fuzzer and the linter" reporter="Packages of the reporter" browser="Browser"
end_to_end="Packages of the end-to-end tests" agents="Packages of the MCP check" referee="Releases of Playwright"
messages="Types of chats" models="Clients of models"
aside "$fuzzer" scripts/prerequisites.sh python tests/contract
aside "$browser" scripts/prerequisites.sh browser
aside "$reporter" scripts/prerequisites.sh npm reporter
aside "$end_to_end" scripts/prerequisites.sh npm tests/e2e
aside "$agents" scripts/prerequisites.sh npm tests/mcp
aside "$referee" scripts/prerequisites.sh npm tests/referee
aside "$messages" scripts/prerequisites.sh npm tests/messages
aside "$models" scripts/prerequisites.sh npm tests/model
# One build serves the tests, the services that the tests start, and the lints: clippy's compiler makes it, so that
# nothing is read a second time only to be looked at. All that follows is told the same, or cargo would build again.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver
if step "Build of everything, tests included" cargo build --locked --workspace --all-targets; then built=true; fi
step "Lints" scripts/built-clean.sh || true
collect

# The server of TEST_DATABASE_URL, else one on this machine, else our own.
find_server() {
  local finder
  finder=$(target_dir)/debug/callboard-test-database
  if TEST_DATABASE_URL=$("$finder" server); then
    say "Using the server at $TEST_DATABASE_URL"
  elif [ -n "${given_url}" ]; then
    return 1
  else
    server_folder=$(mktemp -d)
    scripts/postgres.sh start "$server_folder" || return 1
    TEST_DATABASE_URL=$(cat "$server_folder/url")
  fi
  export TEST_DATABASE_URL
}

given_url=${TEST_DATABASE_URL:-}
has_server=false
if $built; then
  printf '\n=== PostgreSQL\n'
  if find_server; then
    has_server=true
    PASSED=$((PASSED + 1))
  else
    fail_step "PostgreSQL" "no server to test with"
  fi
fi

if $built && $has_server; then
  # Half of the time a test waits for the database server.
  export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$((2 * $(nproc)))}
  if cargo nextest --version >/dev/null 2>&1; then
    step "Rust tests" cargo nextest run --locked --workspace --no-fail-fast || true
  else
    step "Rust tests" cargo test --locked --workspace --all-targets --no-fail-fast || true
  fi
  step "Examples in the documentation" cargo test --locked --workspace --doc --quiet || true
else
  fail_step "Rust tests" "not run, see above"
fi

if passed_aside "$fuzzer"; then step "Deployment template" "$(target_dir)/python/bin/cfn-lint" infra/template.yaml || true; fi
if passed_aside "$messages"; then step "Messages fit the chats' own types" node --test tests/messages/messages.mjs || true; fi
if $built && passed_aside "$models"; then
  step "Models are asked as their vendors' clients ask" env CALLBOARD_TARGET="$(target_dir)" node --test tests/model/check.mjs || true
fi
if $built && passed_aside "$fuzzer"; then
  # It asks one question at a time.
  aside "Answers are those of the OpenAPI document" scripts/contract.sh
else
  fail_step "Answers are those of the OpenAPI document" "not run, see above"
fi

has_reporter=false
if passed_aside "$reporter"; then
  if step "Build of the reporter" npm --prefix reporter run build; then has_reporter=true; fi
  if $built && $has_reporter && passed_aside "$referee"; then
    aside "Outcomes are those of Playwright" scripts/referee.sh
  else
    fail_step "Outcomes are those of Playwright" "not run, see above"
  fi
  step "Tests of the reporter" npm --prefix reporter test || true
fi
if $built && $has_reporter; then
  step "Documents are true" scripts/docs.sh || true
else
  fail_step "Documents are true" "not run, see above"
fi
collect

if $built && $has_server && $has_reporter && passed_aside "$browser" && passed_aside "$end_to_end" && passed_aside "$agents"; then
  # Both wait for browsers and pauses more than they compute.
  aside "End to end with SQLite" scripts/end-to-end.sh sqlite
  aside "End to end with PostgreSQL" scripts/end-to-end.sh postgres
  aside "A day of CI through functions" scripts/day.sh
  collect
else
  fail_step "End to end" "not run, see above"
fi

sum_up
