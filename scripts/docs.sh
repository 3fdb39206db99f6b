#!/usr/bin/env bash
# Checks the documents, and runs their examples against the built service. Needs no network: the service, the reporter
# and the packages of the reporter must be there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

runner=$(target_dir)/debug/callboard
[ -x "$runner" ] || die "$runner is missing: build it first with cargo build --workspace --bins"
[ -d reporter/dist ] || die "reporter/dist is missing: build it first with npm --prefix reporter ci && npm --prefix reporter run build"
need_node
command -v curl >/dev/null 2>&1 || apt_install curl
CALLBOARD=$(cd "$(dirname "$runner")" && pwd)/callboard exec node --test --test-reporter=spec tests/docs/pages.mjs tests/docs/examples.mjs
