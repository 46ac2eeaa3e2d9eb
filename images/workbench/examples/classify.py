"""Tells the class of a news title: words, padding, an RNN, LSTM or GRU, early stopping, confusion matrix."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from examples.errors import script
from examples.options import data_folder, parser, share

if TYPE_CHECKING:
    from examples.plans import Plan, Result
    from examples.tables import Titles
    from verify.reference.data import Vocabulary


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    made = parser("classify", __doc__, epochs=12, batch_size=25, learning_rate=3e-3)
    model = made.add_argument_group("model")
    model.add_argument("--cell", choices=("rnn", "lstm", "gru"), default="rnn", help="what recurs")
    model.add_argument("--embedding", type=int, default=32, help="numbers that a word becomes")
    model.add_argument("--hidden", type=int, default=48, help="numbers of the hidden state")
    model.add_argument("--dropout", type=float, default=0.5, help="of the words' numbers")
    model.add_argument("--held-out", type=share, default=0.16, help="part of the titles that is not trained on")
    made.add_argument("--ask", action="append", default=[], metavar="TITLE", help="say what it takes this title for")
    return made.parse_args(arguments)


def titles(chosen: argparse.Namespace) -> Titles:
    """The user's titles where there are any, and the ones that come with the suite otherwise."""
    from examples import tables
    from verify.reference.titles import CLASSES, TITLES

    folder = data_folder(chosen.data, "titles.csv", tables.EXPECTED)
    return tables.read_titles(folder / "titles.csv") if folder else (list(TITLES), CLASSES)


def split(chosen: argparse.Namespace, data: Titles) -> tuple[Any, Any, Vocabulary]:
    """Titles to learn from, titles to judge by, and the words of the former."""
    from verify.reference.data import Vocabulary, split_titles

    rows = data[0]
    learned, judged = split_titles(chosen.seed, max(1, round(len(rows) * chosen.held_out)), rows)
    return learned, judged, Vocabulary(learned)


def plan(chosen: argparse.Namespace, data: Titles) -> Plan:
    """The reference's classifier and collating, with this data and these options."""
    from examples.plans import Plan, fingerprint, tuned
    from verify.reference.data import TitleDataset
    from verify.reference.models import TitleClassifier
    from verify.reference.recipes import RNN_TITLES

    learned, judged, vocabulary = split(chosen, data)
    sizes = {"embedding": chosen.embedding, "hidden": chosen.hidden, "cell": chosen.cell, "dropout": chosen.dropout}

    def task(_seed: int) -> Any:
        model = TitleClassifier(len(vocabulary), len(data[1]), **sizes)
        return model, TitleDataset(learned, vocabulary), TitleDataset(judged, vocabulary)

    recipe = tuned(RNN_TITLES, task, chosen)
    return Plan(recipe, f"classify-{chosen.cell}", {**sizes, "held_out": chosen.held_out, "data": fingerprint(data)})


def run(chosen: argparse.Namespace) -> Result:
    """Trains and reports; the pictures lie beside the checkpoint."""
    # Before torch is loaded, so that faults of the data are reported at once.
    data = titles(chosen)
    from examples.trainer import train

    result = train(plan(chosen, data), chosen)
    if result.leads:
        report(result, data[1])
        for title in chosen.ask:
            print(f"{title!r} is taken for {guess(result, chosen, data, title)}")
    return result


def guess(result: Result, chosen: argparse.Namespace, data: Titles, title: str) -> str:
    """The class that the trained model takes a title for; words it has never seen all look the same to it."""
    import torch

    _, _, vocabulary = split(chosen, data)
    batch = result.run.recipe.collate([(vocabulary.encode(title) or vocabulary.encode("?"), 0)])
    result.run.model.eval()
    with torch.no_grad():
        scores = result.run.model(*batch.to(result.run.device).inputs)
    return data[1][int(scores.argmax())]


def report(result: Result, classes: Sequence[str]) -> None:
    """Reports the best model's results on titles it has not seen, as text and pictures."""
    from examples import pictures

    matrix = confusion(result, len(classes))
    right = sum(matrix[number][number] for number in range(len(classes)))
    total = sum(map(sum, matrix))
    width = max(map(len, classes))
    print(f"held-out accuracy {right / total:.1%} ({right} of {total} titles)")
    for name, row in zip(classes, matrix, strict=True):
        print(f"  {name:>{width}} taken for  " + "  ".join(f"{c} {n}" for c, n in zip(classes, row, strict=True)))
    pictures.curves(result.progress, result.folder / "curves.png")
    pictures.confusion(matrix, classes, result.folder / "confusion.png")
    print(f"pictures, checkpoint and logs: {result.folder}")


def confusion(result: Result, classes: int) -> list[list[int]]:
    """How many titles of each class (a row) were taken for each class (a column)."""
    import torch

    from verify.reference.train import scores_of

    batch = result.run.recipe.collate([result.held_out[index] for index in range(len(result.held_out))])
    result.run.model.eval()
    with torch.no_grad():
        guesses = scores_of(result.run, batch.to(result.run.device)).argmax(-1).cpu()
    matrix = [[0] * classes for _ in range(classes)]
    for target, guess in zip(batch.targets.tolist(), guesses.tolist(), strict=True):
        matrix[target][guess] += 1
    return matrix


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    run(options(arguments))


if __name__ == "__main__":
    raise SystemExit(script("classify", main))
