#!/usr/bin/env bash
# Runs in a container of the base image, as root: reads a tar of sources at their final paths from
# standard input, writes a tar of their byte code to standard output.
# Usage: compile-layer.sh FOLDER [NAME...] < SOURCES.tar > BYTECODE.tar
# Compiles the given names, or everything in FOLDER if there are none. Byte code records the paths as given.
set -euo pipefail

folder=/$1
names=("${@:2}")
python=/usr/bin/python3

tar -xf - -C /
cd "$folder"
((${#names[@]})) || mapfile -t names < <(find . -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort)
# Layers have fixed times, so byte code must not be checked against them. One process and sorted order,
# because Python 3.13 compiles differently in parallel.
"$python" -W ignore -m compileall -q -j 1 --invalidation-mode unchecked-hash "${names[@]}" >/dev/null || {
  # Some packages ship templates that are not valid Python.
  [[ $? == 1 ]]
}
cd /
find "$folder" -xdev -name '*.pyc' -print0 | LC_ALL=C sort -z | tar -cf /tmp/results --null --files-from=- --transform='s,^/,,' -P
# Without this last file the reader rejects the answer as incomplete.
touch /tmp/gpuyard-complete
tar -rf /tmp/results -C /tmp gpuyard-complete
cat /tmp/results
