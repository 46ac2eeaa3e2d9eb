"""Why each check exists and what repairs it, for ``verify explain ID``; a test keeps it complete."""

from __future__ import annotations

from typing import Dict, Tuple

_REBUILD = "rebuild the image: gpuyard build"
_FRESH = "start a fresh container from the image"
_LOCKED = "put the locked packages back: verify --only lock prints the command"
_GIVE_GPU = "docker run --gpus all ...; compose: deploy.resources.reservations.devices"
_SHM = "docker run --shm-size=8g ...; compose: shm_size; Kubernetes: emptyDir with medium: Memory at /dev/shm"
_TRAINS = "repair what fails above it first: a step that does not learn is the last link of the chain"

WHY: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "python": (
        "Images have shipped with torch in one Python and another Python on PATH.",
        (_REBUILD, "leave /opt/venv/bin first in PATH"),
    ),
    "one-torch": (
        "A second torch shadows the first, and a CPU build looks right until the first kernel.",
        (_LOCKED, _FRESH),
    ),
    "user-site": (
        "A home mounted from the host brings its ~/.local along, whose packages shadow the image's.",
        ("set PYTHONNOUSERSITE=1, as the image does",),
    ),
    "driver-files": (
        "Driver files in an image fight with those that the container toolkit mounts from the host.",
        ("dpkg -S FILE names the package: do not install it", _REBUILD),
    ),
    "loader-path": (
        "A stubs folder gives CUDA error 34; a compat folder gives 803 or 804 on the wrong machine.",
        ("take the folder out of LD_LIBRARY_PATH", "remove it from /etc/ld.so.conf.d and run ldconfig"),
    ),
    "image-env": (
        "Hooks and builds on top trust these variables; one that contradicts the packages misleads them.",
        ("do not override them at start", _REBUILD),
    ),
    "tuning-env": (
        "Tuning variables change speed or results, and one baked into an image beats the user's under pyxis.",
        ("docker run without -e NAME=...", "remove it from the Dockerfile"),
    ),
    "torch-versions": (
        "Tags have claimed one torch and held another. Tag, label, claim and packages must be one truth.",
        (_LOCKED, _REBUILD),
    ),
    "lock": (
        "pip replaces locked packages, torch among them, without a word when another package asks for it.",
        ("uv pip install --no-deps --reinstall NAME==VERSION (the finding names them)", _FRESH),
    ),
    "lock-strays": (
        "A package that is not in the lock came in unpinned.",
        ("nothing, if you installed it yourself", "add it to the lock and rebuild"),
    ),
    "pip-check": (
        "After a swap pip prints one line and exits 0; only the unmet requirements are left to see.",
        (_LOCKED, _FRESH),
    ),
    "cuda-majors": (
        "Two CUDA majors in one environment load each other's libraries.",
        ("uninstall the packages of the major torch was not built for", _FRESH),
    ),
    "needed-libraries": (
        "Packages built for another CUDA major import only when they are first used, and fail then.",
        ("pip uninstall NAME (the finding names the file)", _FRESH),
    ),
    "cuda-copies": (
        "With two copies of one CUDA library the first one loaded decides, and it changes with the import order.",
        ("pip uninstall NAME (the finding names the owner)", _FRESH),
    ),
    "threads": (
        "Docker before 20.10.10 answers EPERM to clone3: 'can't start new thread'.",
        ("upgrade the host's Docker", "docker run --security-opt seccomp=unconfined ..."),
    ),
    "nvcc": (
        "nvidia-smi, nvcc and torch each have a CUDA version; only a build needs nvcc to be torch's.",
        ("install the toolkit that the finding names", "export TORCH_CUDA_ARCH_LIST=..."),
    ),
    "decoys": (
        "A toolkit's folder in LD_LIBRARY_PATH puts its cuDNN or libstdc++ before torch's.",
        ("unset LD_LIBRARY_PATH LD_PRELOAD",),
    ),
    "loaded-libraries": (
        "What counts is what was mapped, not what is installed.",
        ("unset LD_LIBRARY_PATH LD_PRELOAD", _LOCKED),
    ),
    "hostname": (
        "Ranks tell each other their hostname's address; the loopback leads nowhere, and torch only warns.",
        ("docker run --hostname NAME --network NET ...", "take the name out of the line 127.0.0.1 in /etc/hosts"),
    ),
    "interface": (
        "A wrong NCCL_SOCKET_IFNAME ends in 'Unable to find address', '^docker0' alone brings lo back.",
        ("unset NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME",),
    ),
    "infiniband": (
        "Device nodes without libibverbs: NCCL falls back to TCP without a word, and trains ten times slower.",
        ("apt-get install ibverbs-providers in your own image", "verify --only limit-memlock"),
    ),
    "gloo-two-ranks": (
        "Collectives fail by hanging: two ranks must meet, and every value must be right.",
        ("verify --only network", "unset GLOO_SOCKET_IFNAME"),
    ),
    "torchrun-two-ranks": (
        "torchrun brings its own rendezvous, which needs the loopback and a free port.",
        ("verify --only network", "unset MASTER_ADDR MASTER_PORT"),
    ),
    "ddp-gradients": ("DDP that does not average trains every rank alone, without an error.", (_LOCKED,)),
    "nccl-all-gpus": (
        "Between GPUs NCCL hangs where ACS or an IOMMU breaks direct access; the check tries without it.",
        ("NCCL_P2P_DISABLE=1 to confirm; ACS off in the BIOS", _SHM, "--cap-add SYS_NICE"),
    ),
    "data-parallel": (
        "DataParallel splits a batch over GPUs; a bad link between them, or a GPU that idles, changes the result.",
        ("verify --only nccl-all-gpus", "use DistributedDataParallel"),
    ),
    "resources": (
        "A limit lower than the machine explains slow loading and processes killed without a message.",
        ("docker run --memory 8g --cpus 4 ...", "export OMP_NUM_THREADS=<number of CPUs granted>"),
    ),
    "shm-type": ("On a disk instead of tmpfs every batch goes through the file system.", (_SHM,)),
    "shm-size": (
        "DataLoader workers hand batches over through /dev/shm, and docker gives 64 MB unless told otherwise: "
        "'Bus error' or 'No space left on device'.",
        (_SHM,),
    ),
    "limit-nofile": (
        "Each tensor that workers share takes a file descriptor: 'Too many open files'.",
        ("docker run --ulimit nofile=65536:65536 ...",),
    ),
    "limit-memlock": (
        "InfiniBand pins memory; without it the limit does not matter.",
        ("docker run --ulimit memlock=-1 --cap-add IPC_LOCK ...",),
    ),
    "limit-stack": (
        "A small stack crashes compilers and threads without a message.",
        ("docker run --ulimit stack=67108864 ...",),
    ),
    "memory-kills": (
        "Where a container's memory ends, the kernel kills a process: workers vanish, nothing is said.",
        ("docker run --memory with more (or without)", "fewer DataLoader workers, smaller batches"),
    ),
    "caches": (
        "Compilers, model hubs and plots fail late when their cache cannot be written (another uid, read-only).",
        ("mount a writable folder there", "docker run -e HOME=/tmp ..."),
    ),
    "workspace": (
        "A folder mounted from the host belongs to the host's user, not to the container's.",
        ("chown it on the host", "docker run --user $(id -u):$(id -g) ..."),
    ),
    "compiler": (
        "torch.compile writes C++ and triton writes C: without compilers they fail at the first step.",
        ("leave /usr/bin in PATH; unset CC and CXX", "apt-get install gcc g++ in your own image"),
    ),
    "torch-import": (
        "What cannot be imported cannot be checked; a library found first by LD_LIBRARY_PATH or LD_PRELOAD "
        "is the usual cause.",
        ("unset LD_LIBRARY_PATH LD_PRELOAD", _LOCKED),
    ),
    "arch-list": (
        "A GPU outside the compiled list gets 'no kernel image is available', although is_available() is True.",
        (_LOCKED, _REBUILD),
    ),
    "cudnn": (
        "Another cuDNN than torch was compiled with was found first, or installed over it.",
        ("unset LD_LIBRARY_PATH LD_PRELOAD", _LOCKED),
    ),
    "nccl-version": (
        "A second NCCL breaks the first collective, not the import.",
        ("remove other libnccl from LD_LIBRARY_PATH and LD_PRELOAD", _LOCKED),
    ),
    "device-nodes": (
        "Without the GPU's device nodes, or where the container may not open them, every driver call fails.",
        (_GIVE_GPU, "nvidia-modprobe -u -c 0 on the host", "recreate the container after a systemd reload"),
    ),
    "visible-devices": (
        "An empty or wrong CUDA_VISIBLE_DEVICES, or NVIDIA_VISIBLE_DEVICES=void, hides GPUs that are there.",
        ("unset CUDA_VISIBLE_DEVICES", "-e NVIDIA_VISIBLE_DEVICES=all under the NVIDIA runtime"),
    ),
    "libcuda": (
        "The driver's library must be the host's. With the capability 'utility' only, nvidia-smi works and "
        "torch does not.",
        (_GIVE_GPU, "docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."),
    ),
    "nvml": (
        "After a driver upgrade the libraries and the loaded kernel module differ until the restart.",
        ("recreate the container", "restart the host", "modprobe nvidia on the host"),
    ),
    "gpu-health": (
        "A GPU with memory errors or a throttled clock computes, wrongly or slowly, and says so to nobody but NVML.",
        ("nvidia-smi --gpu-reset -i INDEX on the host, or a restart", "dcgmi diag -r 3; then the vendor"),
    ),
    "cuda-init": (
        "cuInit is the driver's own word: 34 stub, 46 busy, 100 no GPU, 304 device node, 802 Fabric Manager, "
        "803 mismatch, 804 forward compatibility, 999 unknown. torch.cuda.is_available() hides it.",
        ("the finding names the repair for the code",),
    ),
    "cuda-level": (
        "Docker's CDI path does not enforce NVIDIA_REQUIRE_CUDA any more, so an old driver shows only here.",
        ("upgrade the host's driver", "use an image of an older CUDA line: gpuyard list"),
    ),
    "torch-cuda": (
        "The last step before the first kernel, in torch's own words.",
        ("verify --only driver finds the broken link below it",),
    ),
    "gpu-devices": (
        "Every GPU that was given to the container is one that torch can use.",
        ("unset CUDA_VISIBLE_DEVICES", _GIVE_GPU),
    ),
    "gpu-arch": (
        "is_available() is True for a GPU that no code in torch was compiled for; the first kernel dies.",
        ("use a tag whose arch list has code for it: gpuyard list",),
    ),
    "gpu-memory": ("Memory that another process holds is missing for training.", ("nvidia-smi on the host",)),
    "numpy-bridge": ("torch built for another NumPy fails at the first conversion.", (_LOCKED,)),
    "torchvision-nms": ("A torchvision of another build than torch's fails when an operator is called.", (_LOCKED,)),
    "torchaudio-resample": ("A torchaudio of another build than torch's fails at import or in use.", (_LOCKED,)),
    "imports": (
        "A package whose compiled part is broken, or built for another NumPy, fails in the first notebook.",
        (_LOCKED, _FRESH),
    ),
    "matmul-cpu": ("Wrong numbers are worse than no numbers: products are compared with exact ones.", (_LOCKED,)),
    "matmul-gpu": (
        "A kernel must run on every GPU and give the CPU's values, in each precision.",
        ("verify --only driver", "nvidia-smi on the host: look for Xid and ECC errors"),
    ),
    "operators-cpu": ("Convolution, LSTM, attention and their gradients are compared with exact ones.", (_LOCKED,)),
    "operators-gpu": (
        "cuDNN's and attention's kernels must give the CPU's values, forwards and backwards, in each precision.",
        ("nvidia-smi on the host: look for Xid and ECC errors", "verify --only cudnn"),
    ),
    "checkpoint-cpu": ("What was saved must come back bit for bit, and one seed must give one course.", (_LOCKED,)),
    "checkpoint-gpu": ("The same from a GPU's memory.", ("dcgmi diag -r 3",)),
    "cuda-errors": ("An error that is not raised lets a training go on with garbage.", ("update the host's driver",)),
    "shm-dataloader": ("The size alone proves little: two workers move large batches through /dev/shm.", (_SHM,)),
    "torch-compile": (
        "Inductor must find a compiler and give eager's values.",
        ("verify --only compiler", "make TORCHINDUCTOR_CACHE_DIR writable"),
    ),
    "torch-compile-gpu": (
        "Triton needs a C compiler and the driver's library to build its first kernel.",
        ("verify --only compiler,libcuda",),
    ),
    "cuda-memory": ("Memory must hold what was written to it and be given back.", ("nvidia-smi on the host",)),
    "nccl-one-rank": (
        "NCCL must start before several GPUs can be tried.",
        ("NCCL_DEBUG=INFO shows where it stops", _SHM),
    ),
    "train-rnn": ("An LSTM classifier must learn, with finite gradients and the same trace twice.", (_TRAINS,)),
    "train-transformer": ("An attention block must learn, with finite gradients and the same trace.", (_TRAINS,)),
    "amp-speed": (
        "Mixed precision that is no faster means that the tensor cores are not used, or the GPU is throttled.",
        ("nvidia-smi -q -d PERFORMANCE on the host",),
    ),
    "train-lstm": ("An LSTM that writes text, letter by letter, must learn and must write.", (_TRAINS,)),
    "train-gpt2": (
        "GPT-2 from a small configuration, without a download: the way most trainings of today go.",
        (_TRAINS, "uv pip install transformers"),
    ),
    "train-lstm-gpu": ("The same as train-lstm on the GPU, with AMP and cuDNN's LSTM.", (_TRAINS,)),
    "train-gpt2-gpu": ("The same as train-gpt2 on the GPU, with AMP.", (_TRAINS,)),
    "train-rnn-gpu": ("The same as train-rnn on the GPU, with AMP.", (_TRAINS,)),
    "train-transformer-gpu": ("The same as train-transformer on the GPU, with AMP.", (_TRAINS,)),
}
