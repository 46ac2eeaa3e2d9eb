"""Learns to write: an LSTM by characters, a small GPT-2, or a pretrained model; then samples from it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from examples.errors import script
from examples.options import data_folder, parser, positive, share, whole

if TYPE_CHECKING:
    from examples.plans import Plan, Result
    from examples.text import Codec


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    made = parser("generate", __doc__, epochs=12, batch_size=32, learning_rate=5e-3)
    model = made.add_argument_group("model")
    model.add_argument("--model", choices=("lstm", "gpt2"), default="lstm", help="what is trained from scratch")
    model.add_argument("--pretrained", help="instead: a causal model of a hub, or of a folder that transformers saved")
    model.add_argument("--context", type=whole, default=32, help="symbols that it sees at most")
    model.add_argument("--width", type=whole, default=64, help="GPT-2's numbers for a symbol; a multiple of 4")
    model.add_argument("--layers", type=whole, default=2, help="GPT-2's blocks")
    drawing = made.add_argument_group("text that it writes at the end")
    drawing.add_argument("--prompt", default="", help="how the text begins")
    drawing.add_argument("--write", type=whole, default=200, help="symbols to write")
    drawing.add_argument("--temperature", type=positive, default=0.7, help="below 1: surer, above 1: bolder")
    drawing.add_argument("--top-k", type=whole, help="draw from so many best ones only")
    drawing.add_argument("--top-p", type=share, default=1.0, help="draw from the fewest that have this chance together")
    chosen = made.parse_args(arguments)
    if chosen.model == "gpt2" and chosen.width % 4:
        made.error(f"--width {chosen.width} can't be divided among 4 heads")
    return chosen


def lines(chosen: argparse.Namespace) -> list[str]:
    """The user's lines where there are any, and the suite's titles otherwise."""
    from examples.tables import TEXT, read_texts
    from verify.reference.titles import TITLES

    folder = data_folder(chosen.data, "*.txt", TEXT)
    return read_texts(folder) if folder else [title.lower() for title, _ in TITLES]


def plan(chosen: argparse.Namespace, text: list[str]) -> tuple[Plan, Codec]:
    """The reference's models on windows of this text, and what turns text into their numbers and back."""
    import random
    from dataclasses import replace

    from examples.plans import Plan, fingerprint, tuned
    from examples.text import Characters, pretrained, windows
    from verify.reference.characters import collate_characters, gpt2
    from verify.reference.models import CharacterGenerator
    from verify.reference.recipes import LSTM_CHARACTERS

    shuffled = list(text)
    random.Random(chosen.seed).shuffle(shuffled)
    border = len(shuffled) * 9 // 10
    load, codec = pretrained(chosen.pretrained) if chosen.pretrained else (None, Characters(text))

    def model() -> Any:
        if load:
            return load(chosen.context)
        if chosen.model == "lstm":
            return CharacterGenerator(len(codec))
        return gpt2(len(codec), chosen.context, chosen.width, chosen.layers)

    def task(_seed: int) -> Any:
        made = model()
        context = min(chosen.context, getattr(made, "context", chosen.context))
        return made, windows(shuffled[:border], codec, context), windows(shuffled[border:], codec, context)

    recipe = replace(tuned(LSTM_CHARACTERS, task, chosen), collate=collate_characters)
    kind = "pretrained" if load else chosen.model
    own = {"gpt2": {"width": chosen.width, "layers": chosen.layers}, "pretrained": {"of": chosen.pretrained}}
    made_of = {**own.get(kind, {}), "context": chosen.context, "data": fingerprint(text)}
    return Plan(recipe, f"generate-{kind}", made_of, "--context cuts what it sees"), codec


def run(chosen: argparse.Namespace) -> Result:
    """Trains, reports the perplexity, and writes."""
    # Before torch is loaded, so that faults of the data are reported at once.
    text = lines(chosen)
    from examples.trainer import train

    made, codec = plan(chosen, text)
    codec.encode(chosen.prompt)
    result = train(made, chosen)
    if result.leads:
        report(result)
        print(f"it writes:\n{write(result, codec, chosen)}")
    return result


def report(result: Result) -> None:
    """The perplexity on lines that were not trained on: of how many symbols the next one is guessed."""
    from examples import pictures

    before, after = math.exp(result.progress.start), math.exp(result.progress.best)
    verdict = "at least halved" if after <= before / 2 else "NOT halved"
    print(f"held-out perplexity {before:.1f} before, {after:.2f} now: {verdict}")
    pictures.curves(result.progress, result.folder / "curves.png")
    print(f"pictures, checkpoint and logs: {result.folder}")


def write(result: Result, codec: Codec, chosen: argparse.Namespace) -> str:
    """Text that the model writes after the prompt."""
    from functools import partial

    from verify.reference.characters import choose, continued

    draw = partial(choose, temperature=chosen.temperature, top_k=chosen.top_k or 0, top_p=chosen.top_p)
    start = codec.encode(chosen.prompt) or codec.encode("\n")
    numbers = continued(result.run.model, result.run.device, start, chosen.write, chosen.seed, draw)
    return codec.decode(numbers).strip("\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    run(options(arguments))


if __name__ == "__main__":
    raise SystemExit(script("generate", main))
