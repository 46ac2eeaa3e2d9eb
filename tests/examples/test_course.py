"""A training's course: it learns, repeats itself, goes on where it stopped, and says in a line what is wrong."""

from __future__ import annotations

import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("datasets")

from examples import classify, generate, transformer  # noqa: E402
from examples.errors import ExampleError  # noqa: E402
from examples.plans import Result  # noqa: E402
from examples.stopping import STOP, Stopped  # noqa: E402
from examples.trainer import Training  # noqa: E402

from tests.examples.scripts import losses, trace  # noqa: E402


def classified(folder: Path, *words: str) -> Result:
    """A short training of titles."""
    return classify.run(classify.options(["--models", str(folder), "--epochs", "3", *words]))


@contextmanager
def stopped_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A training is asked to end while it makes that step."""
    real = Training._after_step

    def after_step(training: Training, loss: float, writer: Any) -> None:
        if len(training.progress.losses) == steps - 1:
            STOP.asked = signal.SIGTERM
        real(training, loss, writer)

    with monkeypatch.context() as patched, pytest.raises(Stopped) as raised:
        patched.setattr(Training, "_after_step", after_step)
        try:
            yield
        finally:
            STOP.asked = None
    assert f"saved after step {steps}" in str(raised.value)
    assert raised.value.code == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that nothing disturbed."""
    return classified(tmp_path_factory.mktemp("whole")).folder


@pytest.mark.parametrize("steps", [1, 20, 33])
def test_a_stopped_training_ends_with_the_same_trace(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Byte for byte, within an epoch or at its end: dropout is drawn as if nothing had been."""
    with stopped_after(steps, monkeypatch):
        classified(tmp_path)
    again = classified(tmp_path)
    assert (again.folder / "trace.json").read_bytes() == (whole / "trace.json").read_bytes()
    assert len(losses(whole)) == 60


def test_a_finished_training_is_not_made_again(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It reports from the checkpoint; more epochs go on from there."""
    classified(tmp_path)
    again = classified(tmp_path)
    assert again.seconds == 0.0
    assert "already trained: after 3 epochs" in capsys.readouterr().out
    more = classified(tmp_path, "--epochs", "4")
    assert losses(more.folder)[:60] == losses(whole)
    assert len(losses(more.folder)) == 80


def test_fresh_starts_anew_and_keeps_the_old_checkpoint(tmp_path: Path) -> None:
    """Beside the new one."""
    classified(tmp_path, "--epochs", "1")
    fresh = classified(tmp_path, "--epochs", "1", "--fresh", "--learning-rate", "1e-4")
    assert (fresh.folder / "checkpoint.pt.old").exists()


def test_another_seed_takes_another_course(whole: Path, tmp_path: Path) -> None:
    """The seed reaches order, first values and dropout."""
    other = classified(tmp_path, "--epochs", "1", "--seed", "8")
    assert losses(other.folder)[0] != losses(whole)[0]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_unseen_titles_are_told_apart(tmp_path: Path, cell: str) -> None:
    """Nine of ten by any cell; curves and confusion matrix are pictures; TensorBoard's log is there."""
    result = classify.run(classify.options(["--models", str(tmp_path), "--cell", cell]))
    matrix = classify.confusion(result, 2)
    assert (matrix[0][0] + matrix[1][1]) / sum(map(sum, matrix)) >= 0.9
    for name in ("curves.png", "confusion.png"):
        assert (result.folder / name).read_bytes().startswith(b"\x89PNG")
    assert list((result.folder / "logs").glob("events.out.tfevents.*"))


def test_a_training_that_no_longer_improves_stops_early(tmp_path: Path) -> None:
    """After the epochs of patience, with the weights of the best one."""
    result = classified(tmp_path, "--epochs", "40", "--patience", "2")
    held_out = [row["held_out"] for row in trace(result.folder)["history"]]
    assert len(held_out) < 40
    assert min(held_out) == held_out[-3]
    assert result.progress.best == held_out[-3]


def test_the_advice_after_an_early_stop_continues_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The options that are printed, typed as printed, train more epochs; and so do those of a finished training."""
    early = ["--epochs", "40", "--patience", "1"]
    before = len(classified(tmp_path, *early).progress.history)
    for start in (early, ["--epochs", "1"]):
        classified(tmp_path, *start)
        advice = re.search(r"already trained: .*; (--.*) continues", capsys.readouterr().out)
        assert advice
        after = len(classified(tmp_path, *start, *advice[1].split()).progress.history)
        assert after > before
        before = after


def test_titles_of_ones_own_are_learned(tmp_path: Path) -> None:
    """Labels and number of classes come from the file."""
    rows = [f"{label},{word} is all {number}" for number in range(30) for label, word in zip("abc", "xyz", strict=True)]
    (tmp_path / "titles.csv").write_text("label,title\n" + "\n".join(rows) + "\n")
    result = classified(tmp_path / "models", "--data", str(tmp_path), "--epochs", "20")
    assert result.progress.history[-1]["accuracy"] == 1.0


@pytest.mark.parametrize("words", [(), ("--precision", "bf16"), ("--accumulate", "2", "--recompute", "--fused")])
def test_the_encoder_gets_below_its_bound(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Plain, in mixed precision, and with all that saves memory."""
    result = transformer.run(transformer.options(["--models", str(tmp_path), "--epochs", "4", *words]))
    assert result is not None
    assert result.progress.history[-1]["loss"] < result.run.recipe.bound


def test_scaled_losses_of_fp16_go_on_where_they_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scaler is part of the checkpoint."""
    words = ["--precision", "fp16", "--epochs", "1", "--models"]
    whole = transformer.run(transformer.options([*words, str(tmp_path / "whole")]))
    with stopped_after(10, monkeypatch):
        transformer.run(transformer.options([*words, str(tmp_path)]))
    again = transformer.run(transformer.options([*words, str(tmp_path)]))
    assert whole is not None
    assert again is not None
    assert losses(again.folder) == losses(whole.folder)


@pytest.mark.parametrize("model", ["lstm", "gpt2"])
def test_writing_halves_the_perplexity(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On lines that were not trained on; what it writes begins with the prompt."""
    words = ["--models", str(tmp_path), "--model", model, "--epochs", "5", "--prompt", "bank", "--top-k", "5"]
    generate.run(generate.options(words))
    said = capsys.readouterr().out
    assert "at least halved" in said
    assert "it writes:\nbank" in said


def test_a_pretrained_model_is_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with a model and its tokeniser, as a hub has them."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0, "bank": 1, "wins": 2}, "<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    saved = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
    saved.save_pretrained(tmp_path / "tiny")
    config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=3, n_positions=16)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "tiny")
    words = ["--pretrained", str(tmp_path / "tiny"), "--models", str(tmp_path), "--epochs", "1", "--prompt", "bank"]
    generate.run(generate.options(words))
    assert "it writes:\nbank" in capsys.readouterr().out


def test_a_pretrained_model_that_is_not_to_be_had_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what may stand there."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ExampleError, match=r"--pretrained no/such: .*a name on a hub"):
        generate.run(generate.options(["--pretrained", "no/such", "--models", str(tmp_path)]))


def test_a_prompt_of_unknown_characters_is_refused_before_the_training(tmp_path: Path) -> None:
    """With the characters that are known."""
    with pytest.raises(ExampleError, match=r"--prompt has '@'"):
        generate.run(generate.options(["--prompt", "a@b", "--models", str(tmp_path)]))
    assert not list(tmp_path.iterdir())


def test_each_choice_of_memory_has_a_measured_row(capsys: pytest.CaptureFixture[str]) -> None:
    """Fused attention and smaller batches take less memory than the plain step."""
    from examples import measure

    words = ["--measure", "--measure-batch", "4", "--measure-length", "256", "--measure-seconds", "0.1"]
    chosen = transformer.options([*words, "--device", "cpu"])
    quick = [choice for choice in measure.CHOICES if not choice.compiled]
    rows = {row["choice"]: row for row in measure.measure(chosen, transformer.sizes(chosen), quick)}
    assert len(rows) == len(quick)
    assert all(row["tokens_per_second"] > 0 for row in rows.values())
    for smaller in ("fp32, fused attention", "fp32, 4 batches of a quarter"):
        assert rows[smaller]["bytes"] < rows["fp32"]["bytes"]
    assert capsys.readouterr().out.count("MiB") == len(quick)


def test_a_loss_that_is_no_number_stops_with_the_step(tmp_path: Path) -> None:
    """And nothing of it is saved."""
    with pytest.raises(ExampleError, match=r"the loss is (nan|inf) at step \d+ .*smaller --learning-rate than 1e\+37"):
        classified(tmp_path, "--learning-rate", "1e37")
    assert not (tmp_path / "classify-rnn" / "checkpoint.pt").exists()


def test_the_end_of_memory_comes_with_advice(tmp_path: Path) -> None:
    """The next smaller batch, accumulation, and what this example has to save memory."""
    words = ["--length", "16384", "--batch-size", "256", "--models", str(tmp_path)]
    with pytest.raises(ExampleError, match=r"batches of 256: --batch-size 128 --accumulate 2 .*--recompute"):
        transformer.run(transformer.options(words))


@pytest.mark.parametrize("damage", ["truncated", "empty", "text"])
def test_a_checkpoint_that_is_not_whole_is_named(tmp_path: Path, damage: str) -> None:
    """And how to go on without it."""
    file = classified(tmp_path, "--epochs", "1").folder / "checkpoint.pt"
    content = {"truncated": file.read_bytes()[:-1000], "empty": b"", "text": b"hello"}[damage]
    file.write_bytes(content)
    with pytest.raises(ExampleError, match=r"is damaged .*--fresh starts from the beginning"):
        classified(tmp_path)
    assert file.read_bytes() == content


def test_a_checkpoint_of_another_training_is_refused_with_the_difference(tmp_path: Path) -> None:
    """It stays as it is."""
    classified(tmp_path, "--epochs", "1", "--name", "mine")
    with pytest.raises(ExampleError, match=r"another training \(cell 'rnn' instead of 'gru', model .*another --name"):
        classified(tmp_path, "--name", "mine", "--cell", "gru")
    classified(tmp_path, "--name", "mine")


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """Writing past that size fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_checkpoint_that_can_not_be_saved_leaves_the_old_one(whole: Path, tmp_path: Path) -> None:
    """One line, no half file, and the next start resumes from the old one and gives the same trace."""
    file = classified(tmp_path, "--epochs", "1").folder / "checkpoint.pt"
    old = file.read_bytes()
    with files_at_most(100_000), pytest.raises(ExampleError, match=r"can't save .*saved before is as it was"):
        classified(tmp_path)
    assert file.read_bytes() == old
    assert not list(file.parent.glob(".checkpoint*"))
    assert losses(classified(tmp_path).folder) == losses(whole)


def test_a_folder_that_can_not_be_written_is_said_before_any_work(tmp_path: Path) -> None:
    """With whose it must be."""
    (tmp_path / "file").touch()
    with pytest.raises(ExampleError, match=r"can't write to .*must belong to uid \d+"):
        classified(tmp_path / "file")


@pytest.mark.parametrize(
    ("device", "said"),
    [("tpu", "expected cpu, cuda"), ("cuda:x", "expected cpu, cuda"), ("cuda", "verify --only gpu")],
)
def test_a_device_that_is_not_there_is_never_replaced_by_the_cpu(tmp_path: Path, device: str, said: str) -> None:
    """It is an error."""
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ExampleError, match=said):
        classified(tmp_path, "--device", device)


def test_too_little_data_for_a_batch_is_said(tmp_path: Path) -> None:
    """With both numbers."""
    with pytest.raises(ExampleError, match=r"521 samples to learn from make no step of 3 batch\(es\) of 200"):
        classified(tmp_path, "--batch-size", "200", "--accumulate", "3")
