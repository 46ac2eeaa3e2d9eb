#!/usr/bin/env bash
# Runs in a build, as root: makes the last layer of every published image, so that a change here
# rebuilds nothing else. The Dockerfile mounts the folders below /mnt/gpuyard.
set -euo pipefail

parts=/mnt/gpuyard
target=/opt/gpuyard

copy() {
  # File modes as in git, whatever the umask of the checkout.
  mkdir -p "$2"
  cp -R --no-preserve=mode,ownership,timestamps "$parts/$1/." "$2/"
  (cd "$parts/$1" && find . -type f -perm -u+x -print0) | (cd "$2" && xargs -0 -r chmod 0755)
}

copy verify "$target/verify"
copy entrypoints "$target/entrypoints"
if [[ -d $parts/examples ]]; then copy examples "$target/examples"; fi
copy claims /etc/gpuyard
find "$target" -name __pycache__ -prune -exec rm -rf {} +
# Where a start keeps its state: any user may create a folder here, and can't read another's.
install -d -m 1777 /run/gpuyard
# Where screen keeps its sockets; no set-group-id program makes the folder here.
install -d -m 1777 /run/screen
# In the background, because compiling takes as long as all the rest.
/usr/bin/python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash "$target" &
compiling=$!
ln -s "$target/entrypoints/verify" /usr/local/bin/verify
for name in apt apt-get; do ln -s "$target/entrypoints/apt" "/usr/local/bin/$name"; done
# The login shell of SSH sessions sets the container's environment and then runs bash.
sed -i "/^trainer:/s|:[^:]*\$|:$target/entrypoints/session|" /etc/passwd
# The constraints also apply to processes without the image's variables.
ln -sf /etc/gpuyard/pip.conf /etc/pip.conf
install -d /etc/uv
ln -sf /etc/gpuyard/uv.toml /etc/uv/uv.toml
ln -s "$target/entrypoints/licenses" /usr/local/bin/licenses
install -D -m 0644 "$target/entrypoints/ipython_kernel_config.py" /etc/ipython/ipython_kernel_config.py
# A new volume mounted on one of these folders takes over its owner. Without them, Docker would create the
# mount point and its parents as root.
caches=/home/trainer/.cache
install -d -o 1000 -g 1000 "$caches" "$caches"/{huggingface,torch,pip,uv} /home/trainer/{.jupyter,.ipython,.triton,.config}
# -B, because byte code made here would hold the time of the build.
/opt/venv/bin/python -B "${BASH_SOURCE[0]%/*}/finish_image.py"
wait "$compiling"
