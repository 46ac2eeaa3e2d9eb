#!/usr/bin/env bash
# Programs of the system that tests and lint use and a bare machine may lack: an SSH client and rsync as users have
# them, a C compiler for stand-ins of the driver, nginx and openssl for Jupyter's tests, a registry and three clients
# for publishing. Installs them as root, or where sudo asks for no password (a hosted runner).
set -euo pipefail

missing=()
command -v ssh >/dev/null && command -v ssh-keygen >/dev/null || missing+=(openssh-client)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v rsync >/dev/null || missing+=(rsync)
command -v openssl >/dev/null || missing+=(openssl)
[[ -x /usr/sbin/nginx ]] || missing+=(nginx-light)
# Ubuntu's own package is a snap; a hosted runner has Chrome.
browser() { command -v chromium || command -v google-chrome || command -v chromium-browser; }
browser >/dev/null || ! grep -q '^ID=debian' /etc/os-release || missing+=(chromium)

registry=()
[[ -x /usr/bin/docker-registry ]] || registry+=(docker-registry)
command -v skopeo >/dev/null || registry+=(skopeo)
command -v oras >/dev/null || registry+=(oras)
command -v cosign >/dev/null || registry+=(cosign)

((${#missing[@]} + ${#registry[@]})) || exit 0
as_root=()
if [[ $(id -u) != 0 ]]; then
  as_root=(sudo -n)
  if ! sudo -n true 2>/dev/null; then
    echo "test-tools: missing: ${missing[*]} ${registry[*]}. Install them: sudo docker/test-tools.sh" >&2
    exit 1
  fi
fi
if ! command -v apt-get >/dev/null; then
  echo "test-tools: missing: ${missing[*]} ${registry[*]}. Without apt-get, install them yourself" >&2
  exit 1
fi
if ((${#missing[@]})); then
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
((${#registry[@]})) || exit 0
"${as_root[@]}" "$(dirname "${BASH_SOURCE[0]}")/install-publish.sh" "${registry[@]}"
