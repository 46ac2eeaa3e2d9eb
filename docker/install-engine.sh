#!/usr/bin/env bash
# Installs a Docker engine with BuildKit and Compose on Debian or Ubuntu, as root.
# Debian 12's packages are too old for image features that this project needs: there, these packages
# alone come from Debian 13.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=docker/newer-release.sh
. "$here/newer-release.sh"

fail() {
  echo "install-engine: $*" >&2
  exit 1
}

write_daemon_configuration() {
  [[ -e /etc/docker/daemon.json ]] && return
  install -D -m 0644 "$here/daemon.json" /etc/docker/daemon.json
}

main() {
  [[ $(id -u) == 0 ]] || fail "needs root"
  [[ -r /etc/os-release ]] || fail "no /etc/os-release: not a Debian or Ubuntu"
  # shellcheck disable=SC1091
  . /etc/os-release
  # Written first: the packages may start the daemon, which reads it once.
  write_daemon_configuration
  case "$ID-${VERSION_ID:-unstable}" in
    debian-12)
      # runc is not named because the newer one wants a newer libc.
      use_newer_release gpuyard-engine docker.io docker-cli docker-buildx docker-compose containerd
      install_packages docker.io docker-cli docker-buildx docker-compose iptables
      ;;
    debian-*) install_packages docker.io docker-cli docker-buildx docker-compose iptables ;;
    ubuntu-*) install_packages docker.io docker-buildx docker-compose-v2 iptables ;;
    *) fail "$ID ${VERSION_ID:-} is not supported: install Docker with buildx and compose yourself" ;;
  esac
}

main "$@"
