"""The options that every example has."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from examples.errors import ExampleError

DATA = Path("/mnt/data")
MODELS = Path("/mnt/models")


def parser(name: str, description: str, epochs: int, batch_size: int, learning_rate: float) -> argparse.ArgumentParser:
    """A parser with the common options and this example's defaults."""
    made = argparse.ArgumentParser(
        f"python -m examples.{name}", description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    places = made.add_argument_group("places")
    places.add_argument("--data", type=Path, help=f"folder with data of your own; {DATA} is looked at without it")
    places.add_argument("--models", type=Path, default=MODELS, help="folder for checkpoints, pictures and logs")
    places.add_argument("--name", default="", help="folder of this run below it; by default the model's name")
    places.add_argument(
        "--fresh", action="store_true", help="start from the beginning; the old checkpoint is kept beside the new one"
    )
    course = made.add_argument_group("course of the training")
    course.add_argument("--epochs", type=whole, default=epochs, help="how often all data is seen")
    course.add_argument("--batch-size", type=whole, default=batch_size, help="samples of a batch, over all processes")
    course.add_argument("--accumulate", type=whole, default=1, help="batches whose gradients make one step")
    course.add_argument("--learning-rate", type=positive, default=learning_rate, help="Adam's")
    course.add_argument("--seed", type=natural, default=7, help="decides everything that is drawn")
    course.add_argument("--patience", type=whole, default=5, help="epochs without a better held-out loss to wait for")
    machine = made.add_argument_group("machine")
    machine.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, or auto: a GPU where there is one")
    machine.add_argument("--precision", choices=("auto", "fp32", "bf16", "fp16"), default="auto", help="of autocast")
    machine.add_argument("--threads", type=whole, default=1, help="of one process on the CPU; small models want 1")
    machine.add_argument("--workers", type=natural, default=2, help="processes that make batches")
    machine.add_argument("--save-seconds", type=positive, default=30.0, help="save at least so often, and each epoch")
    machine.add_argument("--timeout", type=positive, default=120.0, help="seconds to wait for other processes")
    return made


def whole(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def natural(text: str) -> int:
    """A whole number from 0 on that every generator takes as a seed."""
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {2**32 - 1}")
    return number


def positive(text: str) -> float:
    """A number above 0."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{number} is not above 0")
    return number


def share(text: str) -> float:
    """A number above 0 and up to 1."""
    number = positive(text)
    if number > 1:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and 1")
    return number


def data_folder(given: Path | None, pattern: str, expected: str) -> Path | None:
    """The folder to read from: the given one, which must have such files, or the usual one if it has any."""
    folder = DATA if given is None else given
    try:
        names = sorted(entry.name for entry in folder.iterdir())
        found = any(folder.glob(pattern))
    except OSError as error:
        if given is None:
            return None
        raise ExampleError(
            f"no data in {folder}: {error.strerror}. Mount a folder (docker run -v /local/data:/mnt/data), or leave "
            "--data out to learn from the data that comes with the example"
        ) from None
    if given is not None and not found:
        held = ", ".join(names[:5]) or "nothing"
        raise ExampleError(f"no {pattern} in {folder}, which holds {held}; expected {expected}")
    if found:
        sys.stderr.write(f"learns from {folder / pattern}\n")
    return folder if found else None
