#!/usr/bin/env bash
# Makes room on a hosted runner, whose disk is half full of SDKs that nothing here uses. Elsewhere it changes nothing.
set -euo pipefail

if [[ ${RUNNER_ENVIRONMENT:-} != github-hosted ]]; then
  echo "runner-room: not a hosted runner: nothing is removed"
  exit 0
fi
before=$(df --output=avail -BG / | tail -n 1)
sudo -n rm -rf /usr/share/dotnet /usr/local/lib/android /opt/ghc /usr/local/.ghcup /usr/share/swift \
  /opt/hostedtoolcache/CodeQL /usr/local/share/powershell
echo "runner-room: free on / before:$before, now:$(df --output=avail -BG / | tail -n 1)"
