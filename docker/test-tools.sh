#!/usr/bin/env bash
# Programs of the system that the tests use and a bare machine may lack: an SSH client as users have
# it, and a C compiler for stand-ins of the driver.
set -euo pipefail

missing=()
command -v ssh >/dev/null && command -v ssh-keygen >/dev/null || missing+=(openssh-client)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)

((${#missing[@]})) || exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "test-tools: the tests need ${missing[*]}. On Debian: sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
