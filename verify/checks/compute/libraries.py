"""The libraries beside torch work with it: NumPy, torchvision, torchaudio."""

from __future__ import annotations

import importlib.util
import math
import tempfile
from dataclasses import replace
from functools import partial
from typing import Any, Dict, List, Optional

from verify import remedies
from verify.checks.compute.common import EXPLAINED, attempt, unmeasured
from verify.model import Check, Claims, Facts, Isolation, Level, Owner, Verdict
from verify.verdicts import failed, inapplicable, passed, skipped

REBUILD = "rebuild the image from its lock: gpuyard build"
RESAMPLE_TOLERANCE = 0.01
WAV_RATE, WAV_TOLERANCE = 16000, 1e-3
WAV_REMEDY = "read and write WAV files with scipy.io.wavfile"
NMS_KEPT = [0, 2]


def absent(name: str) -> Dict[str, Any]:
    """The fact that a package is not installed; whether that matters is the claims' to say."""
    return {"absent": name} if importlib.util.find_spec(name) is None else {}


def missing(facts: Facts, claims: Claims, expected: str) -> Optional[Verdict]:
    """The verdict on a package that is not here: a failure where the image claims it, else none of our business."""
    name = facts.get("absent")
    if not name:
        return None
    if name in (claims.image.get("packages") or {}):
        return failed(f"{name} is not installed", expected, REBUILD, Owner.IMAGE)
    return skipped(f"{name} is not installed, and nothing claims it", f"pip install {name}")


def probe_torchvision() -> Facts:
    """Let torchvision's compiled nms choose among three boxes, two of which overlap by two thirds."""
    return absent("torchvision") or attempt(_nms)


def _nms() -> Dict[str, Any]:
    import torch
    import torchvision

    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
    kept = torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), iou_threshold=0.5)
    return {"version": torchvision.__version__, "kept": kept.tolist()}


def evaluate_torchvision(facts: Facts, claims: Claims) -> Verdict:
    """Pass if nms kept the best of the overlapping boxes and the one apart."""
    expected = f"nms keeps boxes {NMS_KEPT}"
    verdict = missing(facts, claims, expected) or unmeasured(facts, expected, REBUILD, Owner.IMAGE)
    if verdict:
        return verdict
    observed = f"torchvision {facts['version']}: nms kept boxes {facts['kept']}"
    if facts["kept"] != NMS_KEPT:
        return failed(observed, expected, REBUILD, Owner.IMAGE)
    return passed(observed, expected)


def probe_torchaudio() -> Facts:
    """Resample a 440 Hz tone from 16 to 8 kHz and compare with the same tone computed at 8 kHz."""
    return absent("torchaudio") or attempt(_resample)


def _resample() -> Dict[str, Any]:
    import torch
    import torchaudio

    tone = {rate: torch.sin(2 * math.pi * 440 * torch.arange(rate) / rate) for rate in (16000, 8000)}
    resampled = torchaudio.functional.resample(tone[16000], 16000, 8000)
    # The ends are left out: there the filter sees the silence around the tone.
    worst = (resampled - tone[8000])[200:-200].abs().max().item()
    return {"version": torchaudio.__version__, "worst": worst}


def evaluate_torchaudio(facts: Facts, claims: Claims) -> Verdict:
    """Pass if the resampled tone is the tone."""
    expected = f"a resampled tone is within {RESAMPLE_TOLERANCE:g} of the true one"
    verdict = missing(facts, claims, expected) or unmeasured(facts, expected, REBUILD, Owner.IMAGE)
    if verdict:
        return verdict
    observed = f"torchaudio {facts['version']}: resampled tone off by {facts['worst']:.1e}"
    if not facts["worst"] <= RESAMPLE_TOLERANCE:
        return failed(observed, expected, REBUILD, Owner.IMAGE)
    return passed(observed, expected)


def probe_wav() -> Facts:
    """Write a tone to a WAV file with torchaudio and read it again, where something is installed that does it."""
    codec = importlib.util.find_spec("torchcodec") is not None
    return absent("torchaudio") or {"codec": codec, **attempt(_wav)}


def _wav() -> Dict[str, Any]:
    import torch
    import torchaudio

    tone = torch.sin(2 * math.pi * 440 * torch.arange(WAV_RATE) / WAV_RATE)[None]
    with tempfile.TemporaryDirectory() as folder:
        torchaudio.save(f"{folder}/tone.wav", tone, WAV_RATE)
        back, rate = torchaudio.load(f"{folder}/tone.wav")
    same = back.shape == tone.shape
    return {"rate": rate, "worst": (back - tone).abs().max().item() if same else math.inf}


def evaluate_wav(facts: Facts, claims: Claims) -> Verdict:
    """Pass if the tone came back; torchaudio alone reads no files, so without a codec there is nothing to check."""
    expected = f"a tone written as WAV comes back at {WAV_RATE} Hz, within {WAV_TOLERANCE:g}"
    verdict = missing(facts, claims, expected)
    if verdict:
        return verdict
    if facts.get("error") and facts.get("codec") is False:
        return inapplicable(
            "torchcodec is not installed, and torchaudio reads and writes files with nothing else", WAV_REMEDY
        )
    owner = Owner.IMAGE if "torchcodec" in (claims.image.get("packages") or {}) else Owner.START
    remedy = "install FFmpeg (as root: apt-get update && apt-get install -y ffmpeg) and the torchcodec of this torch"
    verdict = unmeasured(facts, expected, remedy, owner)
    if verdict:
        return replace(verdict, owner=owner, remedy=remedy)
    observed = f"a tone came back at {facts['rate']} Hz, off by {facts['worst']:.1e}"
    if facts["rate"] != WAV_RATE or not facts["worst"] <= WAV_TOLERANCE:
        return failed(observed, expected, remedy, owner)
    return passed(observed, expected)


def probe_numpy() -> Facts:
    """Take an array into torch and back, writing through the shared memory on the way."""
    return absent("numpy") or attempt(_bridge)


def _bridge() -> Dict[str, Any]:
    import numpy
    import torch

    array: Any = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    tensor = torch.from_numpy(array)
    tensor[1, 2] = 42.0
    back = (tensor * 2).numpy()
    return {"version": numpy.__version__, "shared": bool(array[1, 2] == 42.0), "back": back.tolist()}


def evaluate_numpy(facts: Facts, claims: Claims) -> Verdict:
    """Pass if the memory was shared and the values came back."""
    expected = "array and tensor share memory and hold the same values"
    verdict = missing(facts, claims, expected) or unmeasured(facts, expected, REBUILD, Owner.IMAGE)
    if verdict:
        return verdict
    if not facts["shared"] or facts["back"] != [[0.0, 2.0, 4.0], [6.0, 8.0, 84.0]]:
        observed = f"numpy {facts['version']}: shared memory {facts['shared']}, values {facts['back']}"
        return failed(observed, expected, REBUILD, Owner.IMAGE)
    return passed(f"numpy {facts['version']}: shared memory, values the same both ways", expected)


_check = partial(
    Check, explained_by=EXPLAINED, group="libraries", level=Level.CPU, isolation=Isolation.TORCH, timeout=90.0
)

CHECKS: List[Check] = [
    _check(
        id="numpy-bridge",
        title="NumPy arrays and tensors share memory",
        probe=probe_numpy,
        evaluate=evaluate_numpy,
        why="A torch that was built for another NumPy fails at the first conversion.",
        repairs=(remedies.LOCKED,),
        package="numpy",
    ),
    _check(
        id="torchvision-nms",
        title="torchvision works",
        probe=probe_torchvision,
        evaluate=evaluate_torchvision,
        why="A torchvision that was built for another torch fails when an operator is called.",
        repairs=(remedies.LOCKED,),
        package="torchvision",
    ),
    _check(
        id="torchaudio-resample",
        title="torchaudio works",
        probe=probe_torchaudio,
        evaluate=evaluate_torchaudio,
        why="A torchaudio that was built for another torch fails at its import or in use.",
        repairs=(remedies.LOCKED,),
        package="torchaudio",
    ),
    _check(
        id="torchaudio-wav",
        title="torchaudio writes and reads a WAV file",
        probe=probe_wav,
        evaluate=evaluate_wav,
        why="torchaudio.load and save need torchcodec, and torchcodec needs FFmpeg; both fail at the first file only.",
        repairs=(WAV_REMEDY, "apt-get update && apt-get install -y ffmpeg, and the torchcodec of this torch"),
        package="torchcodec",
    ),
]
