#!/usr/bin/env bash
# Tests the last change in a few minutes: unit tests of the crates that changed, and the fast tests over HTTP on
# SQLite. Needs neither PostgreSQL nor a browser. What it leaves out, `make test` runs.
#   test-fast.sh [base]   compares with this commit; without it with where the branch left its upstream
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

need_rust
cargo nextest --version >/dev/null 2>&1 || die "cargo-nextest is missing: install it with cargo install cargo-nextest --locked"

# base_commit: where the branch began; the last commit when that is not known.
base_commit() {
  local upstream
  for upstream in '@{upstream}' origin/HEAD origin/main main; do
    git merge-base HEAD "$upstream" 2>/dev/null && return
  done
  git rev-parse HEAD
}

base=$(git rev-parse --verify --quiet "${1:-$(base_commit)}^{commit}") || die "there is no commit $1"
changed=$({ git diff --name-only "$base" -- && git ls-files --others --exclude-standard; } | sort -u)

# crates <path...>: the packages that the changed files belong to.
crates() {
  local file folder
  while read -r file; do
    folder=$(dirname "$file")
    while [ "$folder" != . ] && [ ! -f "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
    if [ "$folder" != . ]; then sed -n 's/^name = "\(callboard-[^"]*\)"$/\1/p' "$folder/Cargo.toml" | head -n 1; fi
  done | sort -u
}

# Modules of tests/http that are quick and meet most of the code. What signs in, waits for time to pass, or compares
# every caller with every route takes minutes.
modules=(analytics annotations cluster_rules clusters comparison detail_pages explain export flakiness full_runs gate
  healing histories idempotency ingest list_pages network outcome pages performance projects_admin reading red_runs
  rows search skips store traces)
# Those that a changed file is named after are run as well, such as `retention` and `scm`.
while read -r module; do
  if grep -qE "(^|[/_])${module%s}s?([/_.]|$)" <<<"$changed"; then modules+=("$module"); fi
done < <(sed -n 's/^mod \([a-z_]*\);$/\1/p' tests/http/tests/main.rs)
filter="(binary_id(callboard-test-http::http) & test(/^($(IFS='|'; printf '%s' "${modules[*]}"))::/) - test(/postgres/))"
while read -r crate; do
  if [ -n "$crate" ]; then filter="$filter + (package(=$crate) & kind(lib))"; fi
done < <(crates <<<"$changed")

# The same compiler and packages as every other build here, or cargo would build all dependencies again. Programs,
# examples and the other tests are not linked: that is most of the time.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver RUST_BACKTRACE=0
export TEST_BACKENDS=sqlite
step "Fast tests" cargo nextest run --locked --workspace --lib --test http -E "$filter" || true
if grep -q '^reporter/src/' <<<"$changed" && [ -d reporter/node_modules ]; then
  step "Types of the reporter" npm --prefix reporter run --silent build || true
fi
sum_up
