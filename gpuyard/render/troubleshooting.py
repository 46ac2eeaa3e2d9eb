"""docs/troubleshooting.md: what to do, by message, by code and by check, from what verify itself says.

`python -m gpuyard.render.troubleshooting` rewrites the page; a test compares it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpuyard import paths
from gpuyard.engine.preflight import CONFIGURE, TOOLKIT
from verify.codes import CUDA, NVML, Meaning
from verify.engine.registry import CHECKS

_ERRORS = (304, 802, 803, 804)
_CHECKS = {check.id: check for check in CHECKS}
PAGE = paths.ROOT / "docs" / "troubleshooting.md"


@dataclass(frozen=True)
class Advice:
    """Why a message comes, what to do, and the command that says more."""

    why: str
    steps: tuple[str, ...]
    ask: str


def by_check(name: str) -> Advice:
    """What a check of the suite says of itself."""
    check = _CHECKS[name]
    return Advice(check.why, check.repairs, f"verify --only {name}")


def by_code(known: Meaning, name: str) -> Advice:
    """What the suite says of a code, which the check of that name reports."""
    return Advice(f"{known.text} ({known.owner.value})", (known.remedy,), f"verify --only {name}")


NO_TOOLKIT = Advice(
    "The engine can't hand on a GPU: the NVIDIA Container Toolkit is missing, or the engine does not know it.",
    (f"install {TOOLKIT} from NVIDIA's repository on the host", CONFIGURE),
    "gpuyard run",
)
PORT = Advice("Another container or program has the port.", ("-p 127.0.0.1:9999:8888",), "gpuyard run")

MESSAGES: dict[str, Advice] = {
    'could not select device driver "" with capabilities: [[gpu]]': NO_TOOLKIT,
    "unresolvable CDI devices nvidia.com/gpu=all": NO_TOOLKIT,
    "port is already allocated": PORT,
    "Found no NVIDIA driver on your system": by_check("libcuda"),
    "The NVIDIA driver on your system is too old": by_code(CUDA[35], "cuda-level"),
    "No CUDA GPUs are available": by_code(CUDA[100], "cuda-init"),
    "CUDA driver initialization failed": by_code(CUDA[3], "cuda-init"),
    "CUDA unknown error - this may be due to an incorrectly set up environment": by_code(CUDA[999], "cuda-init"),
    **{
        f"Unexpected error from cudaGetDeviceCount() … Error {code}": by_code(CUDA[code], "cuda-init")
        for code in _ERRORS
    },
    "no kernel image is available for execution on the device": by_check("gpu-arch"),
    "is not compatible with the current PyTorch installation": by_check("gpu-arch"),
    "Torch not compiled with CUDA enabled": by_check("one-torch"),
    "Failed to initialize NVML: Driver/library version mismatch": by_code(NVML[18], "nvml"),
    "Failed to initialize NVML: Unknown Error": by_code(NVML[999], "nvml"),
    "CUDA out of memory": by_check("gpu-memory"),
    "DataLoader worker (pid …) is killed by signal: Bus error": by_check("shm-size"),
    "unable to write to file </torch_…>: No space left on device": by_check("shm-size"),
    "Too many open files": by_check("limit-nofile"),
    "can't start new thread": by_check("threads"),
    "Failed to find C compiler": by_check("compiler"),
    "version `GLIBCXX_…' not found": by_check("decoys"),
    "undefined symbol: …": by_check("loaded-libraries"),
    "cuDNN version incompatibility": by_check("cudnn"),
    "A module that was compiled using NumPy 1.x cannot be run in NumPy 2": by_check("numpy-bridge"),
    "operator torchvision::nms does not exist": by_check("torchvision-nms"),
    "Unable to find address for: …": by_check("interface"),
    "NCCL error … unhandled system error": by_check("nccl-one-rank"),
    "all ranks wait, and nothing is said": by_check("nccl-all-gpus"),
    "Permission denied: '/workspace/…'": by_check("workspace"),
}
"""Messages as people see them."""

HEAD = """# Troubleshooting

<!-- Made by `python -m gpuyard.render.troubleshooting` from what verify says; do not edit. -->

Ask first. `verify` goes along the chain from the driver to a training step and stops at the link that is broken:

```console gpu
$ docker run --rm --gpus all --shm-size 8g pytorch-cuda:v2.9 verify
```

```console image
$ docker run --rm pytorch-cuda:v2.9 verify explain shm-size
…
$ docker run --rm pytorch-cuda:v2.9 verify env
…
```

`verify env` is one page for a bug report, without secrets.
"""

LEFT_OUT = (
    (
        "`Pandoc wasn't found`, on export to reStructuredText, LaTeX or Word",
        "as root, or in an image of your own: `apt-get update && apt-get install pandoc` (200 MB). "
        "HTML and Markdown work without it",
    ),
    (
        "`TorchCodec is required for load_with_torchcodec`, from `torchaudio.load` and `save`",
        "WAV files: `scipy.io.wavfile`, as below. Other formats: as root, "
        "`apt-get update && apt-get install ffmpeg`, and the release of `torchcodec` that was made for your torch",
    ),
)
"""Messages of programs that are not in the image because of their size, and what to do."""
WAV = """```python
import scipy.io.wavfile
import torch

rate, samples = scipy.io.wavfile.read("in.wav")  # (frames, channels)
waveform = torch.from_numpy(samples.copy()).T  # as torchaudio's transforms take it
scipy.io.wavfile.write("out.wav", rate, waveform.T.numpy())
```
"""


def page() -> str:
    """The page's text."""
    parts = [
        HEAD,
        "## By message\n",
        _table(("you see", "why", "what to do", "ask"), map(_message, MESSAGES)),
        "## Left out for size\n",
        _table(("you see", "what to do"), LEFT_OUT),
        WAV,
        "## By code of the CUDA driver\n",
        "`Error 803`, or `cuInit` in the report of `cuda-init`:\n",
        _table(("code", "meaning", "whose", "what to do"), (_code(code, known) for code, known in CUDA.items())),
        "## By code of NVML\n",
        "In the report of `nvml`:\n",
        _table(("code", "meaning", "whose", "what to do"), (_code(code, known) for code, known in NVML.items())),
        "## By check\n",
        _table(("check", "why it is asked", "what to do"), (_check(check.id) for check in CHECKS)),
    ]
    return "\n".join(parts)


def _message(text: str) -> tuple[str, ...]:
    advice = MESSAGES[text]
    fence = "``" if "`" in text else "`"
    return (f"{fence}{text}{fence}", advice.why, _steps(advice.steps), f"`{advice.ask}`")


def _code(code: int, known: Meaning) -> tuple[str, ...]:
    return (str(code), known.text, known.owner.value, known.remedy)


def _check(name: str) -> tuple[str, ...]:
    check = _CHECKS[name]
    return (f"`{name}`", check.why, _steps(check.repairs))


def _steps(remedies: Iterable[str]) -> str:
    return "; or ".join(remedies)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page())
