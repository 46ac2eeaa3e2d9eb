"""Trains a Transformer encoder to read backwards, within a memory limit: AMP, accumulation, checkpointing, compile."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from examples.errors import ExampleError, script
from examples.options import data_folder, parser, positive, whole

if TYPE_CHECKING:
    from examples.plans import Plan, Result

ADVICE = (
    "--recompute keeps fewer activations, --fused never holds a whole attention matrix, --precision bf16 halves "
    "what is kept; --measure shows what each saves here"
)


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    made = parser("transformer", __doc__, epochs=6, batch_size=32, learning_rate=5e-3)
    model = made.add_argument_group("model")
    model.add_argument("--length", type=whole, default=8, help="of the sequences")
    model.add_argument("--layers", type=whole, default=2, help="encoder blocks")
    model.add_argument("--d-model", type=whole, default=32, help="numbers that a symbol becomes")
    model.add_argument("--heads", type=whole, default=4, help="of the attention")
    memory = made.add_argument_group("memory and speed")
    memory.add_argument("--recompute", action="store_true", help="activation checkpointing: compute again, keep less")
    memory.add_argument("--fused", action="store_true", help="attention that never holds all its weights at once")
    memory.add_argument("--compile", action="store_true", help="torch.compile; takes a while before the first step")
    table = made.add_argument_group("table of what each choice costs, instead of a training")
    table.add_argument("--measure", action="store_true", help="measure peak memory and speed of each choice")
    table.add_argument("--measure-batch", type=whole, help="sequences of a batch; 32 on a GPU, 8 on the CPU")
    table.add_argument("--measure-length", type=whole, default=512, help="length of a sequence")
    table.add_argument("--measure-seconds", type=positive, default=2.0, help="to measure each choice for")
    chosen = made.parse_args(arguments)
    if chosen.d_model % chosen.heads:
        made.error(f"--d-model {chosen.d_model} can't be divided among {chosen.heads} --heads")
    return chosen


def sizes(chosen: argparse.Namespace) -> dict[str, Any]:
    """What makes the model this one."""
    return {"d_model": chosen.d_model, "heads": chosen.heads, "layers": chosen.layers}


def plan(chosen: argparse.Namespace) -> Plan:
    """The reference's encoder and sequences; or windows of the user's text, to be read backwards."""
    from examples.plans import Plan, fingerprint, tuned
    from verify.reference.data import ReversalDataset
    from verify.reference.models import SequenceReverser
    from verify.reference.recipes import TRANSFORMER_REVERSAL

    memory = {"fused": chosen.fused, "recompute": chosen.recompute}
    text = user_text(chosen)

    def task(seed: int) -> Any:
        if text:
            learned, judged, symbols = text_windows(text, chosen.length, seed)
        else:
            symbols = 12
            learned = ReversalDataset(1024, chosen.length, symbols, seed)
            judged = ReversalDataset(128, chosen.length, symbols, seed + 1)
        return SequenceReverser(symbols, chosen.length, **sizes(chosen), **memory), learned, judged

    recipe = tuned(TRANSFORMER_REVERSAL, task, chosen)
    made_of = {**sizes(chosen), "length": chosen.length, "data": fingerprint(text) if text else "random"}
    return Plan(recipe, "transformer", made_of, ADVICE, chosen.compile)


def user_text(chosen: argparse.Namespace) -> str:
    """The text of the data folder, or nothing."""
    from examples.tables import TEXT, read_texts

    folder = data_folder(chosen.data, "*.txt", TEXT)
    text = "\n".join(read_texts(folder)) if folder else ""
    if text and len(text) < 20 * chosen.length:
        raise ExampleError(f"{folder} has {len(text)} characters: too few for windows of --length {chosen.length}")
    return text


def text_windows(text: str, length: int, seed: int) -> tuple[Any, Any, int]:
    """Windows of the text to learn from and to judge by, and how many different characters it has."""
    from verify.reference.data import Windows

    alphabet = {character: number for number, character in enumerate(sorted(set(text)))}
    numbers = [alphabet[character] for character in text]
    border = len(numbers) * 9 // 10
    learned = Windows(numbers[:border], length, 1024, seed)
    return learned, Windows(numbers[border:], length, 128, seed + 1), len(alphabet)


def run(chosen: argparse.Namespace) -> Result | None:
    """Trains and reports, or measures."""
    if chosen.measure:
        from examples.measure import measure

        measure(chosen, sizes(chosen))
        return None
    from examples.trainer import train

    result = train(plan(chosen), chosen)
    if result.leads:
        report(result)
    return result


def report(result: Result) -> None:
    """The end of the course against the reference's bound."""
    from examples import pictures

    row, bound = result.progress.history[-1], result.run.recipe.bound
    verdict = "below" if row["loss"] < bound else "NOT below"
    print(f"loss {row['loss']:.4f}, {verdict} the bound {bound:g}; {row['accuracy']:.1%} of held-out symbols right")
    if result.samples_per_second:
        print(f"{result.samples_per_second:.0f} sequences/s, {peak(result.run.device)} at the most")
    pictures.curves(result.progress, result.folder / "curves.png")
    print(f"pictures, checkpoint and logs: {result.folder}")


def peak(device: str) -> str:
    """The peak memory so far, as text."""
    from verify.reference.train import peak_memory

    return f"{peak_memory(device) / 2**20:.0f} MiB of {'the process' if device == 'cpu' else 'the GPU'}"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    run(options(arguments))


if __name__ == "__main__":
    raise SystemExit(script("transformer", main))
