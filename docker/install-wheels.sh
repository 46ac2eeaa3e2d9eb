#!/usr/bin/env bash
# Runs in a build, as the owner of /opt/venv: installs the wheels of one lock and nothing else.
# Usage: install-wheels.sh LOCK
# Secrets that may be mounted: ca (trusted certificates), uv (package indexes).
set -euo pipefail

lock=$1
python=/opt/venv/bin/python
site=$("$python" -B -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

configure() {
  # An interpreter started here would leave byte code with time stamps (setuptools' hook does).
  export PYTHONDONTWRITEBYTECODE=1
  # Copies, because the cache is on another file system than the layer. No installer's name or time
  # stamp goes into a layer.
  export UV_CACHE_DIR=/var/cache/uv UV_LINK_MODE=copy UV_NO_INSTALLER_METADATA=1
  [[ ! -s /run/secrets/ca ]] || export SSL_CERT_FILE=/run/secrets/ca
  [[ ! -s /run/secrets/uv ]] || export UV_CONFIG_FILE=/run/secrets/uv
}

# Image builders clamp times, so byte code must not be checked against them. One process and sorted
# order, because Python 3.13 compiles differently in parallel.
compile_new() {
  local -a new
  mapfile -t new < <(comm -13 "$1" <(list_site))
  ((${#new[@]})) || return 0
  cd "$site"
  "$python" -W ignore -m compileall -q -j 1 --invalidation-mode unchecked-hash "${new[@]}" || {
    # Some packages ship templates that are not valid Python; their own tests leave them out too.
    [[ $? == 1 ]]
  }
}

list_site() { find "$site" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort; }

main() {
  local before
  before=$(mktemp)
  configure
  list_site >"$before"
  uv pip install --quiet --python "$python" --require-hashes --no-deps --only-binary :all: -r "$lock"
  compile_new "$before" >/dev/null
  rm -f "$before"
}

main
