"""Repairs that several checks name."""

from __future__ import annotations

REBUILD = "rebuild the image: gpuyard build"
FRESH = "start a fresh container from the image"
LOCKED = "put the locked packages back: verify --only lock prints the command"
GIVE_GPU = "docker run --gpus all ...; compose: deploy.resources.reservations.devices"
SHM = "docker run --shm-size=8g ...; compose: shm_size; Kubernetes: emptyDir with medium: Memory at /dev/shm"
