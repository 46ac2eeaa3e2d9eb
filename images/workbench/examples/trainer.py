"""The course of a training around verify.reference's steps: resume, checkpoints, early stopping, logs."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import time
from dataclasses import asdict, replace
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from examples import checkpoint
from examples.batches import Batches, Loader, mixed
from examples.devices import advised, choose_device, choose_precision, own_device
from examples.errors import ExampleError
from examples.judge import judged
from examples.parallel import World, joined, lost
from examples.plans import Clock, Plan, Progress, Result
from examples.stopping import STOP
from verify.reference.train import begin, repeatable, steps


def train(plan: Plan, options: argparse.Namespace) -> Result:
    """Trains, or continues the run of that name; under torchrun together with the other processes."""
    device = choose_device(options.device)
    precision = choose_precision(options.precision, device)
    with joined(device, options.timeout) as world, own_device(device, world) as own, repeatable(own, options.seed):
        if own == "cpu":
            torch.set_num_threads(options.threads)
        with advised(options.batch_size, options.accumulate, plan.advice):
            training = Training(plan, options, world, own, precision)
            try:
                return training.complete()
            except RuntimeError as error:
                said = lost(error) if world.size > 1 else ""
                if not said:
                    raise
                raise ExampleError(f"step {len(training.progress.losses) + 1}: {said}") from None


class Training:
    """One training under way; it owns the folder of its run."""

    def __init__(self, plan: Plan, options: argparse.Namespace, world: World, device: str, precision: str) -> None:
        self.plan, self.options, self.world = plan, options, world
        self.folder = checkpoint.run_folder(options.models, options.name or plan.name)
        self.file = self.folder / "checkpoint.pt"
        same = ("batch_size", "accumulate", "seed")
        own = {"precision": precision, **{name: getattr(options, name) for name in same}}
        self.settings = {"model": plan.name, **plan.settings, **own}
        self.model, samples, self.held_out = plan.recipe.task(options.seed)
        self.batches = Batches(len(samples), options, world)
        self.loader = Loader(samples, self.batches, plan.recipe.collate, options.workers)
        self.run = begin(plan.recipe, self.model, device, precision)
        self.run.model = world.shared(self.model)
        if plan.compiled:
            self.run.model = torch.compile(self.run.model)
        self.progress = Progress()
        self.best: dict[str, Any] = {}
        self.saved = time.monotonic()
        self.clock = Clock()

    def complete(self) -> Result:
        """Trains until the epochs are over or the held-out loss no longer falls; then the best weights count."""
        self._resume()
        # Until its first step is made, which may take long to compile, one process alone has nothing to save.
        STOP.training = self.world.size > 1
        try:
            if self._more():
                self._steps()
        finally:
            STOP.training = False
        self.model.load_state_dict(self.best or self.model.state_dict())
        self._save_trace()
        seen = self.clock.steps * self.options.batch_size * self.options.accumulate
        speed = seen / self.clock.seconds if seen else 0.0
        run = replace(self.run, model=self.model)
        return Result(self.folder, run, self.held_out, self.progress, self.clock.seconds, speed, self.world.leads)

    def _more(self) -> bool:
        """Whether there is anything left to train; otherwise says which options would continue."""
        progress, options = self.progress, self.options
        done = progress.epoch >= options.epochs
        if not done and not progress.ended:
            return True
        early = "stopped early " if progress.ended else ""
        more = [f"--epochs {2 * progress.epoch}"] if done else []
        more += [f"--patience {2 * progress.waited}"] if progress.ended else []
        self._say(
            f"already trained: {early}after {progress.epoch} epochs; "
            f"{' '.join(more)} continues, --fresh starts from the beginning"
        )
        return False

    def _say(self, text: str) -> None:
        if self.world.leads:
            tqdm.write(text)
            # At once also where standard output is a pipe, such as to docker logs.
            sys.stdout.flush()

    def _steps(self) -> None:
        made = len(self.progress.losses)
        total = self.options.epochs * self.batches.per_epoch // self.options.accumulate
        self.batches.place(self.progress.epoch, self.progress.batch)
        # The workers make the first batches while the untrained model is judged.
        batches = iter(self.loader)
        with self._writer(made) as writer, self._bar(total, made) as bar:
            if not made:
                self.progress.start, _ = self._judged()
            self._reseed()
            self.clock.start(self.run)
            for loss in steps(self.run, batches, self.batches.share):
                self._after_step(loss, writer)
                bar.update()
                if self.progress.ended:
                    return
                self._reseed()

    def _writer(self, made: int) -> Any:
        # Curves continue at the checkpoint; what was logged after it is dropped.
        if not self.world.leads:
            return contextlib.nullcontext()
        return contextlib.closing(SummaryWriter(str(self.folder / "logs"), purge_step=made + 1))

    def _bar(self, total: int, made: int) -> Any:
        silent = None if self.world.leads else True
        return tqdm(total=total, initial=made, disable=silent, unit="step", desc=self.plan.name)

    def _reseed(self) -> None:
        """What a step draws depends on the seed, its number and the process, and on nothing before it."""
        torch.manual_seed(mixed(self.options.seed, len(self.progress.losses), self.world.rank))

    def _after_step(self, loss: float, writer: Any) -> None:
        progress, options = self.progress, self.options
        summed, asked = self.world.total([loss, float(STOP.asked is not None)])
        mean, number = summed / self.world.size, len(progress.losses) + 1
        if not math.isfinite(mean):
            raise ExampleError(
                f"the loss is {mean} at step {number} (epoch {progress.epoch + 1}): try a smaller --learning-rate "
                f"than {options.learning_rate:g}, or --precision fp32; no checkpoint holds this step"
            )
        STOP.training = True
        progress.losses.append(mean)
        progress.batch += options.accumulate
        self.clock.steps += 1
        if writer:
            writer.add_scalar("loss/training", mean, number)
        if progress.batch == self.batches.per_epoch:
            self._end_epoch(writer)
        elif asked or time.monotonic() - self.saved > options.save_seconds:
            self._save()
        if asked:
            raise STOP.stopped(f"saved after step {number}; the same command continues from there")

    def _end_epoch(self, writer: Any) -> None:
        seconds, waiting = self.clock.lap(self.run)
        loss, accuracy = self._judged()
        progress, options = self.progress, self.options
        recent = progress.losses[-self.batches.per_epoch // options.accumulate :]
        progress.epoch, progress.batch = progress.epoch + 1, 0
        row = {"epoch": progress.epoch, "loss": sum(recent) / len(recent), "held_out": loss, "accuracy": accuracy}
        progress.history.append(row)
        self._remember(loss)
        if writer:
            writer.add_scalar("loss/held-out", loss, len(progress.losses))
            writer.add_scalar("accuracy/held-out", accuracy, len(progress.losses))
        self._say(
            f"epoch {progress.epoch}/{options.epochs}: loss {row['loss']:.4f}, held-out loss {loss:.4f}, accuracy "
            f"{accuracy:.1%}, {seconds:.1f} s, {waiting:.0%} of it waiting for data"
        )
        if progress.ended and progress.epoch < options.epochs:
            self._say(f"stopped early: no better held-out loss for {progress.waited} epochs")
        self._save()
        self.model.train()
        self.clock.start(self.run)

    def _judged(self) -> tuple[float, float]:
        return judged(replace(self.run, model=self.model), self.held_out, self.options.batch_size, self.world)

    def _remember(self, loss: float) -> None:
        """Keeps the best weights, and counts the epochs that were no better."""
        progress = self.progress
        if loss < progress.best:
            progress.best, progress.waited = loss, 0
            self.best = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}
        else:
            progress.waited += 1
            progress.ended = progress.waited >= self.options.patience

    def _resume(self) -> None:
        if self.options.fresh:
            if "TORCHELASTIC_RUN_ID" in os.environ:
                raise ExampleError(
                    "--fresh under torchrun would start from the beginning after each restart: choose another --name"
                )
            checkpoint.set_aside(self.file)
        found = checkpoint.load(self.file, self.settings) if self.world.saves else None
        found = self.world.newest(len(found["progress"]["losses"]) if found else -1, found)
        if found is None:
            return
        self.progress = Progress(**found["progress"])
        # Judged by the patience of this start: a training that stopped early continues with more of it.
        self.progress.ended = self.progress.waited >= self.options.patience
        self.model.load_state_dict(found["model"])
        self.run.optimizer.load_state_dict(found["optimizer"])
        for group in self.run.optimizer.param_groups:
            group["lr"] = self.options.learning_rate
        self.run.scaler.load_state_dict(found["scaler"])
        self.best = found["best"]
        self._say(f"continues after step {len(self.progress.losses)} (epoch {self.progress.epoch + 1}) of {self.file}")

    def _save(self) -> None:
        self.saved = time.monotonic()
        if self.world.saves:
            content = {
                "settings": self.settings,
                "progress": asdict(self.progress),
                "model": self.model.state_dict(),
                "best": self.best,
                "optimizer": self.run.optimizer.state_dict(),
                "scaler": self.run.scaler.state_dict(),
            }
            checkpoint.save(self.file, content)

    def _save_trace(self) -> None:
        """Numbers alone, none of them of a clock: two runs of the same course write the same bytes."""
        if self.world.leads:
            course = {"losses": self.progress.losses, "history": self.progress.history}
            checkpoint.save_json(self.folder / "trace.json", {"settings": self.settings, **course})
