#!/usr/bin/env bash
# Installs what `gpuyard publish` and `gpuyard inspect` drive, from Debian's packages, as root, on Debian and Ubuntu:
# oras, which speaks to registries, and cosign, which signs. Usage: install-publish.sh [PACKAGE...]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=docker/newer-release.sh
. "$here/newer-release.sh"

fail() {
  echo "install-publish: $*" >&2
  exit 1
}

main() {
  local packages=(oras cosign "$@")
  [[ $(id -u) == 0 ]] || fail "needs root: sudo bash docker/install-publish.sh"
  [[ -r /etc/os-release ]] || fail "no /etc/os-release: not Debian or Ubuntu"
  # shellcheck disable=SC1091
  . /etc/os-release
  case "$ID-${VERSION_ID:-unstable}" in
    debian-12) use_newer_release gpuyard-publish oras cosign ;;
    debian-*) ;;
    # Ubuntu has neither; Debian's are single programs that need libc alone.
    ubuntu-2[2-9].*) use_newer_release gpuyard-publish oras cosign ;;
    *) fail "$ID ${VERSION_ID:-} has no packages of oras and cosign that are known: install them yourself" ;;
  esac
  install_packages "${packages[@]}"
}

main "$@"
