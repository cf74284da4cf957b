"""A run that was stopped and resumed is the run that was not."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_training import Arrays, Numbers, small_config

from heedful.errors import InputError, RunError
from heedful.model import Decoder, load
from heedful.training import (
    Compute,
    Evaluation,
    Hooks,
    Optimiser,
    TrainingConfig,
    TrainingResult,
    checkpoint,
    compare_runs,
    held_out_loss,
    list_runs,
    no_better,
    resume,
    train,
    trained_decoder,
)
from heedful.training.folder import read_metrics


class Stopping(Numbers):
    """Batches that end the process's work, as a power cut would, when one is asked for."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def batch(self, index: int) -> Arrays:
        if index == self.at:
            raise KeyboardInterrupt
        return super().batch(index)


def interrupted(config: TrainingConfig, folder: Path, *moments: int) -> TrainingResult:
    """Train, stop without warning at these batches, and go on each time."""
    first, *others = moments
    with pytest.raises(KeyboardInterrupt):
        train(config, Stopping(first), folder)
    for moment in others:
        with pytest.raises(KeyboardInterrupt):
            resume(folder, Stopping(moment))
    return resume(folder, Numbers())


def evaluating(decoder: Decoder, step: int) -> dict[str, float]:
    """An evaluation that draws random numbers: they must not be missed by the training."""
    torch.rand(17)
    assert not decoder.training
    return {**held_out_loss(Numbers(seed=9), 1)(decoder, step), "step": step}


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lanes": {"compute": Compute(lanes=2, precision="float32", compile=False)},
    "micro rows": {"compute": Compute(lanes=1, micro_rows=2, precision="float32", compile=False)},
    "muon": {"optimiser": Optimiser(kind="muon")},
    "average": {"average": 0.9},
    "accumulated": {"accumulate": 3, "label_smoothing": 0.1},
    "bfloat16": {"compute": Compute(lanes=1, precision="bfloat16", compile=False)},
    "bfloat16 in lanes": {
        "compute": Compute(lanes=2, precision="bfloat16", compile=False, micro_rows=2)
    },
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_resume_is_bit_identical(tmp_path: Path, changes: dict[str, Any]) -> None:
    config = small_config(**changes)
    whole = train(config, Numbers(), tmp_path / "whole")
    assert whole.finished
    assert whole.epoch > 2
    moments = [moment * config.accumulate for moment in (6, 7, 11)]
    pieces = interrupted(config, tmp_path / "pieces", *moments)
    assert pieces.resumed_from == 8
    assert pieces.weights_sha256 == whole.weights_sha256
    one, two = (
        checkpoint.read(tmp_path / run / "checkpoints" / "step-00000014")
        for run in ("whole", "pieces")
    )
    assert one.state == two.state
    assert one.training.keys() == two.training.keys()
    for name, tensor in one.training.items():
        # The checker of types that runs under pytest draws from Python's own random numbers.
        assert torch.equal(tensor, two.training[name]) or name.endswith("/python"), name


def test_metrics_hold_every_step_once(tmp_path: Path) -> None:
    config = small_config()
    train(config, Numbers(), tmp_path / "whole")
    interrupted(config, tmp_path / "pieces", 6, 11)
    kept = ("step", "loss", "gradient_norm", "learning_rate", "tokens", "epoch")
    one, two = (
        [{name: line[name] for name in kept} for line in read_metrics(tmp_path / run)]
        for run in ("whole", "pieces")
    )
    assert one == two
    assert [line["step"] for line in one] == list(range(1, 15))


def test_a_metrics_line_that_was_cut_is_dropped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(small_config(), Stopping(6), tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "los')
    resume(tmp_path / "run", Numbers())
    lines = (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 15))


def test_evaluations_leave_no_trace_in_the_training(tmp_path: Path) -> None:
    plain = train(small_config(), Numbers(), tmp_path / "plain")
    hooks = Hooks(evaluate=evaluating)
    watched = train(small_config(), Numbers(), tmp_path / "watched", hooks=hooks)
    assert watched.weights_sha256 == plain.weights_sha256
    assert [made.step for made in watched.evaluations] == [5, 10, 14]
    assert watched.evaluations[-1].values["loss"] < watched.evaluations[0].values["loss"]


def test_the_average_is_what_is_evaluated_and_handed_out(tmp_path: Path) -> None:
    seen: list[torch.Tensor] = []

    def evaluate(decoder: Decoder, _step: int) -> dict[str, float]:
        seen.append(decoder.embedding.weight.detach().clone())
        return {"x": 0.0}

    config = small_config(average=0.5)
    train(config, Numbers(), tmp_path / "run", hooks=Hooks(evaluate=evaluate))
    assert torch.equal(trained_decoder(tmp_path / "run").embedding.weight, seen[-1])
    latest = load(tmp_path / "run" / "checkpoints" / "step-00000014").decoder
    assert not torch.equal(latest.embedding.weight, seen[-1])


def test_early_stopping_is_a_function_of_the_evaluations(tmp_path: Path) -> None:
    def stop(evaluations: Any) -> bool:
        return len(evaluations) == 2

    hooks = Hooks(evaluate=evaluating, stop=stop)
    whole = train(small_config(), Numbers(), tmp_path / "whole", hooks=hooks)
    assert (whole.stopped_by, whole.step, whole.finished) == ("evaluation", 10, True)
    with pytest.raises(KeyboardInterrupt):
        train(small_config(), Stopping(7), tmp_path / "pieces", hooks=hooks)
    pieces = resume(tmp_path / "pieces", Numbers(), hooks=hooks)
    assert pieces.weights_sha256 == whole.weights_sha256
    again = resume(tmp_path / "pieces", Numbers(), hooks=hooks)
    assert (again.step, again.weights_sha256) == (10, whole.weights_sha256)


def test_no_better_waits_its_rounds() -> None:
    rule = no_better("loss", 1)
    seen = [Evaluation(step=step, values={"loss": loss}) for step, loss in ((1, 3.0), (2, 2.0))]
    assert not rule(seen)
    assert rule([*seen, Evaluation(step=3, values={"loss": 2.0})])
    with pytest.raises(InputError):
        no_better("loss", 0)


def test_given_weights_are_where_it_starts(tmp_path: Path) -> None:
    config = small_config(steps=2, schedule={"kind": "constant", "warmup": 0})
    start = Decoder(config.model, seed=77).state_dict()
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(config, Stopping(1), run, hooks=Hooks(initial=start))
    with pytest.raises(InputError, match="began from weights that were given"):
        resume(run, Numbers())
    resume(run, Numbers(), hooks=Hooks(initial=start))
    trained = trained_decoder(run).state_dict()
    rate = config.optimiser.learning_rate
    for name, value in start.items():
        # The first steps of AdamW have the size of the rate, whatever the gradient.
        assert float((trained[name] - value).abs().max()) < 2.2 * rate


def test_the_loss_falls(tmp_path: Path) -> None:
    config = small_config(steps=60, optimiser=Optimiser(learning_rate=1e-2), save_every=60)
    train(config, Numbers(), tmp_path / "run")
    losses = [line["loss"] for line in read_metrics(tmp_path / "run")]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_and_saves(tmp_path: Path, number: signal.Signals) -> None:
    class Signalling(Numbers):
        def batch(self, index: int) -> Arrays:
            if index == 5:
                signal.raise_signal(number)
            return super().batch(index)

    before = signal.getsignal(number)
    stopped = train(small_config(), Signalling(), tmp_path / "run")
    assert (stopped.finished, stopped.stopped_by, stopped.step) == (False, number.name, 6)
    assert signal.getsignal(number) is before
    whole = train(small_config(), Numbers(), tmp_path / "whole")
    assert resume(tmp_path / "run", Numbers()).weights_sha256 == whole.weights_sha256


def test_a_finished_run_stays_as_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = train(small_config(), Numbers(), run)
    kept = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    again = resume(run, Numbers())
    assert (again.finished, again.resumed_from) == (True, 14)
    assert (again.loss, again.seconds, again.tokens) == (done.loss, done.seconds, done.tokens)
    assert kept == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_no_training_uses_more_than_the_machine_has(tmp_path: Path, precision: Any) -> None:
    shares: list[float] = []
    config = small_config(
        steps=6, compute=Compute(lanes=1, precision=precision, compile=False), save_every=6
    )
    hooks = Hooks(report=lambda progress: shares.append(progress.utilisation))
    result = train(config, Numbers(), tmp_path / "run", hooks=hooks)
    assert all(0.0 < share <= 1.0 for share in [*shares, result.utilisation])


def test_other_data_is_refused_on_resume(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(small_config(), Stopping(6), tmp_path / "run", data={"corpus": "a"})
    with pytest.raises(InputError, match="first batch"):
        resume(tmp_path / "run", Numbers(seed=1), data={"corpus": "a"})
    with pytest.raises(InputError, match="batches"):
        resume(tmp_path / "run", Numbers(batches=4), data={"corpus": "a"})
    with pytest.raises(InputError, match="corpus"):
        resume(tmp_path / "run", Numbers(), data={"corpus": "b"})


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    train(small_config(steps=4), Numbers(), tmp_path / "run")
    with pytest.raises(InputError, match="heed resume"):
        train(small_config(), Numbers(), tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(InputError, match="other files"):
        train(small_config(), Numbers(), tmp_path / "other")
    with pytest.raises(InputError, match="is a file"):
        train(small_config(), Numbers(), tmp_path / "other" / "thesis.tex")
    with pytest.raises(InputError, match="is no run"):
        resume(tmp_path / "nothing", Numbers())


def test_data_that_the_model_cannot_read_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    def with_arrays(change: Callable[[Arrays], Arrays]) -> Numbers:
        class Changed(Numbers):
            def batch(self, index: int) -> Arrays:
                return change(super().batch(index))

        return Changed()

    cases = {
        "context": Numbers(width=13),
        "vocabulary": with_arrays(lambda b: Arrays(b.tokens + 9, b.targets, b.documents)),
        "holds no batch": Numbers(batches=0),
        "shape": with_arrays(lambda b: Arrays(b.tokens, b.targets[:, 1:], b.documents)),
        "whole numbers": with_arrays(lambda b: Arrays(b.tokens * 1.0, b.targets, b.documents)),
    }
    for text, feed in cases.items():
        with pytest.raises(InputError, match=text):
            train(small_config(), feed, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_noticed_at_the_start(tmp_path: Path, monkeypatch: Any) -> None:
    usage = type("Usage", (), {"free": 1_000})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    with pytest.raises(RunError, match="free disk"):
        train(small_config(), Numbers(), tmp_path / "run")


def test_runs_are_listed_and_compared(tmp_path: Path) -> None:
    hooks = Hooks(evaluate=evaluating)
    train(small_config(), Numbers(), tmp_path / "one", hooks=hooks)
    train(small_config(seed=1), Numbers(), tmp_path / "two", hooks=hooks)
    with pytest.raises(KeyboardInterrupt):
        train(small_config(), Stopping(6), tmp_path / "three")
    (tmp_path / "three" / "config.json").write_text("{", encoding="utf-8")
    listed = {Path(run.run).name: run for run in list_runs(tmp_path).runs}
    assert {name: run.state.partition(":")[0] for name, run in listed.items()} == {
        "one": "finished",
        "two": "finished",
        "three": "unreadable",
    }
    assert listed["one"].evaluation["step"] == 14
    compared = compare_runs(tmp_path / "one", tmp_path / "two")
    assert [(one.name, one.first, one.second) for one in compared.config] == [("seed", 0, 1)]
    assert compared.same_weights is False
    assert not compared.machine
    assert compare_runs(tmp_path / "one", tmp_path / "one").same_weights is True
    with pytest.raises(InputError):
        list_runs(tmp_path / "nowhere")
