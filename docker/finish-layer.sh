#!/usr/bin/env bash
# Runs in a container of the base image, as root: finishes it as a build would. Reads a tar of
# finish-image.sh, finish_image.py and the folders they need from standard input; writes a tar of every
# path that changed to standard output.
set -euo pipefail

parts=/mnt/gpuyard
started=/tmp/started

# Warms the cache: the search for changes below is three times as fast after another one.
find / -xdev -cnewer /proc/self >/dev/null &
mkdir -p "$parts"
tar -xf - -C "$parts"
touch "$started"
# A file changed in the same clock tick would not count as newer.
sleep 0.05
bash "$parts/finish-image.sh" >&2
# Leaves out what the engine mounts into every container.
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /mnt -o -path /tmp \
  -o -path /etc/hosts -o -path /etc/hostname -o -path /etc/resolv.conf -o -path /.dockerenv \) -prune \
  -o -cnewer "$started" ! -path / -print0 |
  LC_ALL=C sort -z |
  tar -cf /tmp/results -P --no-recursion --null --files-from=-
# Without this last file the reader rejects the answer as incomplete.
touch /tmp/gpuyard-complete
tar -rf /tmp/results -C /tmp gpuyard-complete
cat /tmp/results
