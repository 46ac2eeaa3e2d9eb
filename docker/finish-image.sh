#!/usr/bin/env bash
# Runs in a build, as root: the last layer of every published image, so that a change in it
# rebuilds nothing else. The four folders are mounted below /mnt/gpuyard by the Dockerfile.
set -euo pipefail

parts=/mnt/gpuyard
target=/opt/gpuyard

copy() {
  # Modes as git knows them, whatever the umask of the checkout.
  mkdir -p "$2"
  cp -R --no-preserve=mode,ownership,timestamps "$parts/$1/." "$2/"
  (cd "$parts/$1" && find . -type f -perm -u+x -print0) | (cd "$2" && xargs -0 -r chmod 0755)
}

copy verify "$target/verify"
copy entrypoints "$target/entrypoints"
copy claims /etc/gpuyard
find "$target" -name __pycache__ -prune -exec rm -rf {} +
# Where a start keeps its state: any user may, nobody reads another's.
install -d -m 1777 /run/gpuyard
# The start script and the suite are both read by the one Python there is.
/usr/bin/python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash "$target"
ln -s "$target/entrypoints/verify" /usr/local/bin/verify
for name in apt apt-get; do ln -s "$target/entrypoints/apt" "/usr/local/bin/$name"; done
# SSH sessions get the container's environment from their login shell, which then becomes bash.
sed -i "/^trainer:/s|:[^:]*\$|:$target/entrypoints/session|" /etc/passwd
# The constraints hold without the image's variables too.
ln -sf /etc/gpuyard/pip.conf /etc/pip.conf
install -d /etc/uv
ln -sf /etc/gpuyard/uv.toml /etc/uv/uv.toml
ln -s "$target/entrypoints/licenses" /usr/local/bin/licenses
install -D -m 0644 "$target/entrypoints/ipython_kernel_config.py" /etc/ipython/ipython_kernel_config.py
/opt/venv/bin/python - <<'PY'
import pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
(site / "gpuyard.pth").write_text("/opt/gpuyard\n")
# One place for the licences of torch and of NVIDIA's packages, which lie with their wheels' metadata.
licenses = pathlib.Path("/opt/gpuyard/licenses")
licenses.mkdir()
for line in pathlib.Path("/etc/gpuyard/constraints.txt").read_text().splitlines():
    name, held, version = line.partition("===")
    if held:
        (licenses / name).symlink_to(site / f"{name.replace('-', '_')}-{version}.dist-info")
PY
