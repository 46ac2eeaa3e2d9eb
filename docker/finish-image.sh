#!/usr/bin/env bash
# Runs in a build, as root: the last layer of every published image, so that a change in it
# rebuilds nothing else. The folders are mounted below /mnt/gpuyard by the Dockerfile.
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
if [[ -d $parts/examples ]]; then copy examples "$target/examples"; fi
copy claims /etc/gpuyard
find "$target" -name __pycache__ -prune -exec rm -rf {} +
# Where a start keeps its state: any user may, nobody reads another's.
install -d -m 1777 /run/gpuyard
# The start script and the suite are both read by the one Python there is. Compiling takes as long as all the rest.
/usr/bin/python3 -m compileall -q -j 1 --invalidation-mode unchecked-hash "$target" &
compiling=$!
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
# A volume on one of these takes over its owner; Docker would make the folder, and those above it, as root's.
caches=/home/trainer/.cache
install -d -o 1000 -g 1000 "$caches" "$caches"/{huggingface,torch,pip,uv} /home/trainer/{.jupyter,.ipython,.triton,.config}
/opt/venv/bin/python - <<'PY'
import json, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_path("purelib"))
(site / "gpuyard.pth").write_text("/opt/gpuyard\n")
# One place for the licences of torch and of NVIDIA's packages, which lie with their wheels' metadata.
licenses = pathlib.Path("/opt/gpuyard/licenses")
licenses.mkdir()
for line in pathlib.Path("/etc/gpuyard/constraints.txt").read_text().splitlines():
    name, held, version = line.partition("===")
    if held:
        (licenses / name).symlink_to(site / f"{name.replace('-', '_')}-{version}.dist-info")
# A toolkit where compilers look for one: NVIDIA's wheels share a folder per CUDA major, but they hold
# no name to link against.
image, cuda = json.loads(pathlib.Path("/etc/gpuyard/image.json").read_text()), pathlib.Path("/usr/local/cuda")
if image["image"] == "devel" and not cuda.exists():
    major = image["versions"]["cuda"].split(".")[0]
    (cuda / "lib64").mkdir(parents=True)
    for name in ("bin", "include", "lib", "nvvm"):
        (cuda / name).symlink_to(site / "nvidia" / f"cu{major}" / name)
    (cuda / "lib64" / "libcudart.so").symlink_to(f"../lib/libcudart.so.{major}")
PY
# For images that people work in.
workplace() {
  # JupyterLab asks everybody who opens it whether it may fetch news; here it may not.
  install -d /etc/jupyter/labconfig
  printf '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}\n' \
    >/etc/jupyter/labconfig/page_config.json
  # Matplotlib draws Chinese, Japanese and Korean letters: by the one file of Debian's package that holds all three,
  # under a name of its own (of the same length), and in bold too: Matplotlib warns of a weight that a family lacks.
  /usr/bin/python3 -B - <<'PY'
import pathlib
import struct

font = pathlib.Path("/usr/share/fonts-droid-fallback/truetype/DroidSansFallback.ttf").read_bytes()
old, new = "Droid Sans Fallback", "Droid Sans CJK Full"
tables = {}
for index in range(struct.unpack(">H", font[4:6])[0]):
    tag, _, offset, length = struct.unpack(">4sLLL", font[12 + 16 * index : 28 + 16 * index])
    tables[tag.decode()] = (offset, offset + length)
start, end = tables["name"]
names = font[start:end]
for code in ("utf-16-be", "latin-1"):
    names = names.replace(old.encode(code), new.encode(code))
assert names != font[start:end], "the font has another name"
font = font[:start] + names + font[end:]
folder = pathlib.Path("/usr/local/share/fonts/gpuyard")
folder.mkdir(parents=True)
weight = tables["OS/2"][0] + 4
for style, number in (("Regular", 400), ("Bold", 700)):
    (folder / f"DroidSansCJK-{style}.ttf").write_bytes(font[:weight] + struct.pack(">H", number) + font[weight + 2 :])
pathlib.Path("/etc/gpuyard/matplotlibrc").write_text(f"font.family: sans-serif, {new}\n")
PY
}

if grep -q '"jupyter"' /etc/gpuyard/image.json; then workplace; fi
wait "$compiling"
