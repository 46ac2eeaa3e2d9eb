"""Loads the lower layers of an image into the engine while those above them are still being made."""

from __future__ import annotations

import logging
from threading import Thread

from docker.errors import DockerException

from gpuyard.engine import daemon
from gpuyard.errors import UserError
from gpuyard.image import load, oci
from gpuyard.process import log
from gpuyard.store.store import Store

STEP = 1_000_000_000
"""Compressed bytes worth a load of their own: the engine takes half a minute for them, and half a second for none."""


class Preloader:
    """Sends beginnings of an image, one at a time, each with at least ``step`` bytes more than the engine has.

    It only saves time: ``load.load`` sends what is missing at the end.
    """

    def __init__(self, store: Store, step: int = STEP) -> None:
        self._store, self._step = store, step
        self._size = 0
        self._sent: list[oci.Image] = []
        self._sending: Thread | None = None
        self._over = False

    def offer(self, beginning: oci.Image) -> None:
        """Sends the image as far as it is made, in the background, unless one is being sent or it adds little."""
        size = sum(layer["size"] for layer in beginning.layers)
        if size < self._size + self._step or (self._sending and self._sending.is_alive()):
            return
        self._size = size
        # A daemon thread, so that a cancelled build does not wait for it.
        self._sending = Thread(target=self._send, args=(beginning,), daemon=True)
        self._sending.start()

    def wait(self) -> None:
        """Waits until nothing is being sent."""
        if self._sending:
            self._sending.join()

    def forget(self) -> None:
        """Removes the names of what was sent; the layers stay in the engine with the image that has them."""
        self._over = True
        for image in self._sent:
            load.forget(image, self._store)

    def _send(self, image: oci.Image) -> None:
        try:
            client = daemon.client()
            if not daemon.content_store(client):
                return  # The classic store wants every layer of an image, each time.
            present = load.blobs_present(client, self._store, set(image.blobs))
            if sum(layer["size"] for layer in image.layers if layer["digest"] not in present) >= self._step:
                self._sent.append(image)
                load.stream(image, self._store, present, logging.INFO)
                if self._over:
                    load.forget(image, self._store)
        except (UserError, DockerException, OSError) as error:
            log.debug("not preloaded: %s", error)
