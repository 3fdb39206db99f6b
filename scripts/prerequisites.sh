#!/usr/bin/env bash
# Installs what a part of the tests needs and the machine does not have.
#   prerequisites.sh rust | browser | npm <folder> | python <folder>
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

# clippy and rustfmt come with rustup's default profile, not with its minimal one.
rust() {
  need_rust
  local component
  for component in rustfmt clippy; do
    local command="cargo-${component/rustfmt/fmt}"
    if ! command -v "$command" >/dev/null 2>&1 || ! "$command" --version >/dev/null 2>&1; then
      need rustup "install $component for this Rust toolchain"
      rustup component add "$component"
    fi
  done
  cargo --version
  cargo fmt --version
  cargo clippy --version
  say "test runner: $(cargo nextest --version 2>/dev/null | head -n 1 || true)"
}

# The end-to-end tests drive the system's Chromium, and its headless shell, which starts in half the time, where nothing
# depends on the difference and the system has one. CHROMIUM_PATH names another browser for all of them.
browser() {
  local chromium=${CHROMIUM_PATH:-/usr/bin/chromium}
  if [ -z "${CHROMIUM_PATH:-}" ]; then
    if [ ! -x "$chromium" ]; then apt_install chromium; fi
    if [ ! -x /usr/bin/chromium-headless-shell ]; then
      apt_install chromium-headless-shell || say "Without a headless shell: the tests take longer."
    fi
  fi
  [ -x "$chromium" ] || die "$chromium is missing: install Chromium, or name one with CHROMIUM_PATH"
  "$chromium" --version
}

# Packages of a folder with a package-lock.json, exactly as locked.
npm_packages() {
  need_node
  cd "$1"
  # Playwright's own browsers are not used, see browser() above.
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error </dev/null
}

# Packages of a folder with a requirements.txt, exactly as pinned there, in an
# environment of their own.
python_packages() {
  local environment
  environment=$(target_dir)/python
  # Debian leaves what makes environments out of its Python.
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then apt_install python3 python3-venv; fi
  if ! "$environment/bin/python" -c '' 2>/dev/null; then python3 -m venv --clear "$environment"; fi
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$1/requirements.txt" </dev/null
}

case "${1:-}" in
  rust) rust ;;
  browser) browser ;;
  npm) npm_packages "${2:?a folder}" ;;
  python) python_packages "${2:?a folder}" ;;
  *) die "usage: prerequisites.sh rust | browser | npm <folder> | python <folder>" ;;
esac
