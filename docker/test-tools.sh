#!/usr/bin/env bash
# Programs of the system that the tests use and a bare machine may lack: an SSH client and rsync as
# users have them, a C compiler for stand-ins of the driver, nginx and openssl for Jupyter's tests, a
# registry and three clients for publishing.
set -euo pipefail

missing=()
command -v ssh >/dev/null && command -v ssh-keygen >/dev/null || missing+=(openssh-client)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v rsync >/dev/null || missing+=(rsync)
command -v openssl >/dev/null || missing+=(openssl)
[[ -x /usr/sbin/nginx ]] || missing+=(nginx-light)
command -v chromium >/dev/null || missing+=(chromium)

registry=()
[[ -x /usr/bin/docker-registry ]] || registry+=(docker-registry)
command -v skopeo >/dev/null || registry+=(skopeo)
command -v oras >/dev/null && command -v cosign >/dev/null || registry+=(oras cosign)

((${#missing[@]} + ${#registry[@]})) || exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "test-tools: the tests need ${missing[*]} ${registry[*]}. On Debian, install them with sudo apt-get install" >&2
  exit 1
fi
if ((${#missing[@]})); then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
((${#registry[@]})) || exit 0
"$(dirname "${BASH_SOURCE[0]}")/install-publish.sh" "${registry[@]}"
