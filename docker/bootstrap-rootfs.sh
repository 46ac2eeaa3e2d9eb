#!/usr/bin/env bash
# Makes a Debian root file system as a tar file, for machines that no container registry answers.
# The same packages and SOURCE_DATE_EPOCH give the same bytes.
# Usage: SOURCE_DATE_EPOCH=SECONDS bootstrap-rootfs.sh SUITE OUTPUT.tar
set -euo pipefail

suite=$1
output=$2
: "${SOURCE_DATE_EPOCH:?set it to the date of the operating-system row in the catalogue}"

install_tool() {
  command -v mmdebstrap >/dev/null && return
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends mmdebstrap debian-archive-keyring
}

# APT sources for the suite, from the archives that this machine itself uses, so that mirrors are
# honoured. On Ubuntu there are none for Debian and mmdebstrap takes its own.
debian_sources() {
  # shellcheck disable=SC2016  # apt's own placeholders
  apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' |
    awk -v suite="$suite" '
      $1 == "Debian" && match($2, /^[a-z]+(-security|-updates)?$/) {
        sub(/^[a-z]+/, suite, $2)
        if (!seen[$2]++) print "deb", $3, $2, "main"
      }'
}

bootstrap() {
  local -a sources=()
  # "-" reads the sources from standard input.
  [[ -z $(debian_sources) ]] || sources=(-)
  # shellcheck disable=SC2016  # the hooks run in a shell of mmdebstrap's
  # The removed files hold times, random numbers or inode numbers, or are locks; none is needed at run time.
  # mmdebstrap's own cleaning of apt's folders would leave apt's locks there.
  mmdebstrap --variant=minbase --mode=root --format=tar \
    --include=ca-certificates \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig/aux-cache "$1"/var/lib/dpkg/*-old "$1"/var/cache/debconf/*-old' \
    --skip=cleanup/apt/lists,cleanup/apt/cache \
    --customize-hook='find "$1"/var/lib/apt/lists "$1"/var/cache/apt "$1"/var/lib/dpkg/lock* -type f -delete' \
    --customize-hook=': >"$1"/etc/machine-id; rm -f "$1"/etc/resolv.conf "$1"/etc/hostname' \
    "$suite" "$output.part" "${sources[@]}" < <(debian_sources)
  mv "$output.part" "$output"
}

install_tool
bootstrap
