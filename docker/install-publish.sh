#!/usr/bin/env bash
# Installs what `gpuyard publish` and `gpuyard inspect` drive, from Debian's packages, as root: oras,
# which speaks to registries, and cosign, which signs. Usage: install-publish.sh [PACKAGE...]
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
  [[ -r /etc/os-release ]] || fail "no /etc/os-release: not a Debian"
  # shellcheck disable=SC1091
  . /etc/os-release
  case "$ID-${VERSION_ID:-unstable}" in
    debian-12) use_newer_release gpuyard-publish oras cosign ;;
    debian-*) ;;
    *) fail "$ID ${VERSION_ID:-} has no packages of them that are known: install oras and cosign yourself" ;;
  esac
  install_packages "${packages[@]}"
}

main "$@"
