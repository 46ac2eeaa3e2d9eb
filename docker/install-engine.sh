#!/usr/bin/env bash
# Installs a Docker engine with BuildKit and Compose on Debian or Ubuntu, as root.
# Debian 12's own packages are too old for image features this project needs, so
# there they come from Debian 13, and nothing else does.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sources=/etc/apt/sources.list.d/gpuyard-engine.sources
preferences=/etc/apt/preferences.d/gpuyard-engine
export DEBIAN_FRONTEND=noninteractive

fail() {
  echo "install-engine: $*" >&2
  exit 1
}

# The archive this machine already uses for its own release (a mirror, perhaps).
archive_of() {
  # shellcheck disable=SC2016  # apt's own placeholders
  apt-get indextargets --format '$(CODENAME) $(REPO_URI)' |
    awk -v codename="$1" '$1 == codename { print $2; exit }'
}

add_newer_release() {
  local archive keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  apt-get update -q
  archive=$(archive_of "$VERSION_CODENAME")
  [[ -n $archive ]] || fail "no APT source for $VERSION_CODENAME found; add one to /etc/apt/sources.list.d and run again"
  {
    echo "# Made by gpuyard (docker/install-engine.sh): the Docker engine of Debian 13 on an older Debian."
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\n' "$archive"
    [[ ! -e $keyring ]] || printf 'Signed-By: %s\n' "$keyring"
  } >"$sources"
  # A negative priority keeps everything else of that release away; runc is not
  # named because the newer one wants a newer libc.
  cat >"$preferences" <<'PIN'
Package: *
Pin: release n=trixie
Pin-Priority: -10

Package: docker.io docker-cli docker-buildx docker-compose containerd
Pin: release n=trixie
Pin-Priority: 990
PIN
}

install_packages() {
  apt-get update -q
  apt-get install -q -y --no-install-recommends "$@"
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
      add_newer_release
      install_packages docker.io docker-cli docker-buildx docker-compose iptables
      ;;
    debian-*) install_packages docker.io docker-cli docker-buildx docker-compose iptables ;;
    ubuntu-*) install_packages docker.io docker-buildx docker-compose-v2 iptables ;;
    *) fail "$ID ${VERSION_ID:-} is not supported: install Docker with buildx and compose yourself" ;;
  esac
}

main "$@"
