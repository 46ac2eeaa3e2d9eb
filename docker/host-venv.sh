#!/usr/bin/env bash
# Installs a hash-locked requirements file into the project's own virtual environment.
# Usage: host-venv.sh VENV REQUIREMENTS.txt STAMP
set -euo pipefail

venv=$1
requirements=$2
stamp=$3

fail() {
  echo "host-venv: $*" >&2
  exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fail "Python 3.11 or newer is needed. On Debian 12 or newer: apt-get install python3 python3-venv"
}

make_venv() {
  local python
  python=$(find_python)
  # On Debian, ensurepip is in the package python3-venv.
  if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
      fail "$python can't make virtual environments. Run: sudo apt-get install python3-venv"
    fi
    apt-get update -q && apt-get install -q -y --no-install-recommends python3-venv
  fi
  "$python" -m venv "$venv"
}

# The program `gpuyard`, for use in any folder. By hand and not as an installed project, because building
# one would need a build backend: one more locked package, and a network on every change of it.
make_command() {
  local site
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  pwd >"$site/gpuyard.pth"
  # Guarded, because worker processes import their parent's main module.
  {
    printf '#!%s\nfrom gpuyard.cli import main\n\n' "$PWD/$venv/bin/python"
    printf 'if __name__ == "__main__":\n    main()\n'
  } >"$venv/bin/gpuyard"
  chmod 0755 "$venv/bin/gpuyard"
}

[[ -x $venv/bin/python ]] || make_venv
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r "$requirements"
make_command
touch "$stamp"
