# shellcheck shell=bash
# Sourced by the installers: on Debian 12 and Ubuntu, lets the named packages come from Debian 13, and nothing else.

newer_sources=/etc/apt/sources.list.d/gpuyard-engine.sources

# The archive this machine already uses for its own release (a mirror, perhaps).
archive_of() {
  # shellcheck disable=SC2016  # apt's own placeholders
  apt-get indextargets --format '$(CODENAME) $(REPO_URI)' |
    awk -v codename="$1" '$1 == codename { print $2; exit }'
}

# Usage: use_newer_release NAME PACKAGE...; NAME is that of the file with their pins.
use_newer_release() {
  local name=$1 archive keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  shift
  apt-get update -q
  if [[ $ID == ubuntu ]]; then
    # Its mirrors have nothing of Debian's: address and keys come from packages of Ubuntu's own.
    apt-get install -q -y --no-install-recommends debian-archive-keyring python-apt-common
    archive=$(awk '$1 == "BaseURI:" { print $2; exit }' /usr/share/python-apt/templates/Debian.info)
  else
    archive=$(archive_of "$VERSION_CODENAME")
  fi
  [[ -n $archive ]] || fail "no APT source for $VERSION_CODENAME found; add one to /etc/apt/sources.list.d and run again"
  {
    echo "# Made by gpuyard (docker/newer-release.sh): some packages of Debian 13."
    printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\n' "$archive"
    [[ ! -e $keyring ]] || printf 'Signed-By: %s\n' "$keyring"
  } >"$newer_sources"
  # A negative priority keeps everything else of that release away.
  cat >"/etc/apt/preferences.d/$name" <<PIN
Package: *
Pin: release n=trixie
Pin-Priority: -10

Package: $*
Pin: release n=trixie
Pin-Priority: 990
PIN
}

install_packages() {
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}
