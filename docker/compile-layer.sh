#!/usr/bin/env bash
# Runs in a container of the base image, as root: reads a tar of sources at their final paths from
# standard input, writes a tar of their byte code to standard output.
# Usage: compile-layer.sh FOLDER [NAME...] < SOURCES.tar > BYTECODE.tar
# Compiles what is named, or else everything in FOLDER; byte code keeps the names as they are given.
set -euo pipefail

folder=/$1
names=("${@:2}")
python=/usr/bin/python3

tar -xf - -C /
cd "$folder"
((${#names[@]})) || mapfile -t names < <(find . -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort)
# Byte code that is never checked against times, because layers have fixed ones; in one process and in
# sorted order, because Python 3.13 compiles differently in parallel.
"$python" -W ignore -m compileall -q -j 1 --invalidation-mode unchecked-hash "${names[@]}" >/dev/null || {
  # Some packages ship templates that are no valid Python.
  [[ $? == 1 ]]
}
cd /
find "$folder" -xdev -name '*.pyc' -print0 | LC_ALL=C sort -z | tar -cf /tmp/results --null --files-from=- --transform='s,^/,,' -P
# The reader takes an answer without this last file for none.
touch /tmp/gpuyard-complete
tar -rf /tmp/results -C /tmp gpuyard-complete
cat /tmp/results
