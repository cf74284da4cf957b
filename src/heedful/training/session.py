"""Everything that changes while a decoder is trained, in one object that can be saved.

A session takes one step at a time and knows nothing of folders: `loop` decides when to save.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from heedful.errors import ConfigError, InputError, RunError
from heedful.model import Decoder, flops_per_token
from heedful.training import randomness
from heedful.training.checkpoint import Contents
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice, Lanes, Single, median_seconds
from heedful.training.feed import Feed, rows_of
from heedful.training.hooks import Adapt, Evaluate, Evaluation
from heedful.training.loss import Objective
from heedful.training.optim import MovingAverage, Optimisers, rate_share
from heedful.training.randomness import Stream, draw_from


@dataclass(frozen=True)
class TrainingStep:
    """What one step did."""

    loss: float
    gradient_norm: float
    rate_share: float
    real: int
    """Tokens that are not padding."""
    flops: int
    """Operations of the model for them."""
    heard: int
    """The signal that some rank has heard; 0 for none."""


class Session:
    """A decoder in training: weights, optimiser, average, random streams, place in the data."""

    def __init__(
        self,
        config: TrainingConfig,
        feed: Feed,
        process: SingleProcess,
        choice: Choice,
        initial: Mapping[str, Tensor] | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        self.config, self.feed, self.process, self.choice = config, feed, process, choice
        self.device = device_of(config)
        randomness.seed_all(config.seed + process.rank)
        self.decoder = new_decoder(config, initial)
        if adapt is not None:
            adapt(self.decoder)
        self.decoder.to(self.device)
        self.streams = [Stream(config.seed, process.rank, lane) for lane in range(choice.lanes)]
        self.engine = self._engine()
        named = self.decoder.named_parameters()
        self.parameters = {name: value for name, value in named if value.requires_grad}
        rounded = torch.bfloat16 if choice.precision == "bfloat16" else torch.float32
        self.optimisers = Optimisers(self.parameters, config.optimiser, rounded)
        self.average = None
        if config.average is not None:
            self.average = MovingAverage(self.parameters, config.average)
        self.engine.train()
        self.step = 0
        self.tokens = 0
        self.evaluations: list[Evaluation] = []

    @property
    def batch(self) -> int:
        """The number of the next batch: the whole state of the data."""
        return self.step * self.config.accumulate

    def take_step(self, heard: Callable[[], int] = int) -> TrainingStep:
        """Take one step; refuse to, if its loss or its gradient is not finite.

        `heard` gives the signal that this rank has heard: ranks tell one another on the way.
        """
        config = self.config
        arrays = [self.feed.batch(self.batch + part) for part in range(config.accumulate)]
        batches = [rows_of(batch) for batch in arrays]
        count = sum(batch.learned for batch in batches)
        real = sum(int(np.count_nonzero(np.asarray(batch.documents) >= 0)) for batch in arrays)
        mine = [self.process.share(batch).to(self.device) for batch in batches]
        total = self.engine.gradients(mine, count)
        total, signals = self.process.add_up(total, float(heard()))
        loss = total / max(count, 1)
        norm = self._clip()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise _not_finite(self.step, loss, norm)
        share = rate_share(config.schedule, self.step, config.steps)
        self.optimisers.step(share)
        if self.average is not None:
            self.average.update()
        self.step += 1
        self.tokens += real
        width = batches[0].tokens.shape[1]
        flops = flops_per_token(config.model, width, training=True) * real
        # Logits are computed for learned tokens alone.
        flops -= 6 * config.model.width * config.model.vocabulary * (real - count)
        return TrainingStep(loss, norm, share, real, flops, int(signals))

    def evaluate(self, evaluate: Evaluate) -> Evaluation:
        """Let a callable look at the decoder (its average, if there is one), without a trace."""
        averaged = nullcontext() if self.average is None else self.average.applied()
        with randomness.untouched(self.streams), averaged, torch.no_grad():
            self.engine.train(False)
            try:
                found = evaluate(self.decoder, self.step)
            finally:
                self.process.settle(self.decoder)
                self.engine.train()
        values = {str(name): float(value) for name, value in found.items()}
        evaluation = Evaluation(step=self.step, values=self.process.from_first(values))
        self.evaluations.append(evaluation)
        return evaluation

    def contents(self) -> Contents:
        """Return everything that a checkpoint must hold."""
        whole = self.process.collected
        training = {f"optimiser:{k}": v for k, v in whole(self.optimisers.state()).items()}
        if self.average is not None:
            training |= {f"average:{k}": v for k, v in whole(self.average.state()).items()}
        states = self.process.all_states(randomness.states(self.streams))
        training |= {f"random:{name}": state for name, state in states.items()}
        epoch, place = divmod(self.batch, len(self.feed))
        state = {
            "step": self.step,
            "epoch": epoch,
            "place": place,
            "tokens": self.tokens,
            "rate_share": rate_share(self.config.schedule, self.step, self.config.steps),
            "evaluations": [evaluation.to_dict() for evaluation in self.evaluations],
        }
        model = whole({name: value.detach() for name, value in self.parameters.items()})
        return Contents(model=model, training=training, state=state)

    @torch.no_grad()
    def restore(self, contents: Contents) -> list[str]:
        """Go on from a checkpoint; return what cannot be as it was."""
        state, like = contents.state, self.process.like
        batch = int(state["epoch"]) * len(self.feed) + int(state["place"])
        self.step, rest = divmod(batch, self.config.accumulate)
        if rest or self.step != state["step"]:
            raise InputError(
                "data",
                f"has {len(self.feed)} batches an epoch, which does not fit step {state['step']}",
                expected="the data of the run",
                hint="resume with the data and config with which the run began",
            )
        self.tokens = int(state["tokens"])
        self.evaluations = [Evaluation(**entry) for entry in state["evaluations"]]
        for name, parameter in self.parameters.items():
            parameter.copy_(like(contents.model[name], parameter))
        saved = {}
        for key, value in contents.part("optimiser").items():
            saved[key] = like(value, self.parameters[key.rpartition("/")[0]])
        self.optimisers.restore(saved)
        if self.average is not None:
            kept, values = contents.part("average").items(), self.average.values
            self.average.restore({name: like(value, values[name]) for name, value in kept})
        return self._restore_random(contents.part("random"))

    def close(self) -> None:
        """End the threads."""
        self.engine.close()

    def _engine(self) -> Lanes | Single:
        config, choice = self.config, self.choice
        objective = Objective(self.decoder, config.label_smoothing, choice.precision)
        rows = config.compute.micro_rows
        if choice.compiled or self.device.type != "cpu":
            wrapped, exchange = self.process.wrap(objective)
            wrapped = _compiled(wrapped) if choice.compiled else wrapped
            return Single(wrapped, micro_rows=rows, ranks=self.process.ranks, exchange=exchange)
        if self.process.ranks == 1:
            return Lanes(objective, self.streams, micro_rows=rows)
        draw_from(self.decoder, self.streams[0])
        wrapped, exchange = self.process.wrap(objective)
        return Single(wrapped, micro_rows=rows, ranks=self.process.ranks, exchange=exchange)

    def _clip(self) -> float:
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        total = torch.nn.utils.get_total_norm(gradients)
        norm = float(self.process.whole({"norm": total})["norm"])
        if self.config.clip is not None and self.config.clip < norm < math.inf:
            torch._foreach_mul_(gradients, self.config.clip / norm)
        return norm

    def _restore_random(self, saved: dict[str, Tensor]) -> list[str]:
        before = f"{self.process.rank}/"
        mine = {
            name.removeprefix(before): state
            for name, state in saved.items()
            if name.startswith(before)
        }
        lanes = sum(name.startswith("lane.") for name in mine)
        if lanes == len(self.streams):
            randomness.restore(mine, self.streams)
            return []
        # Other ranks or lanes than before: their dropout starts anew, from the step.
        for lane, stream in enumerate(self.streams):
            fresh = Stream(self.config.seed, self.process.rank, lane, self.step)
            stream.restore(fresh.state())
        return [f"random streams: {lanes} saved for rank {self.process.rank}, others begun anew"]


def new_decoder(config: TrainingConfig, initial: Mapping[str, Tensor] | None) -> Decoder:
    """Return the decoder that a training starts from."""
    decoder = Decoder(config.model, seed=config.seed)
    if initial is None:
        return decoder
    own = decoder.state_dict()
    for name, value in own.items():
        if name not in initial or initial[name].shape != value.shape:
            found = tuple(initial[name].shape) if name in initial else "missing"
            raise InputError(
                "initial",
                f"{name} is {found}",
                expected=f"a tensor of shape {tuple(value.shape)}, as the model has it",
            )
        value.copy_(initial[name])
    return decoder


def _compiled(objective: nn.Module) -> Callable[..., Tensor]:
    # That tables of rotations are cached is told to everybody, and nobody can act on it.
    warnings.filterwarnings("ignore", message=r"Dynamo detected a call to a `functools\.lru_cache`")
    compiled: Callable[..., Tensor] = torch.compile(objective)
    return compiled


def device_of(config: TrainingConfig) -> torch.device:
    """Return where the config wants the work to be done."""
    wanted = config.compute.device
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "compute.device", "is cuda, but torch sees no GPU", hint='use device = "auto"'
        )
    return torch.device("cpu" if wanted == "cpu" or not torch.cuda.is_available() else "cuda")


def measured(config: TrainingConfig, feed: Feed, choice: Choice) -> float:
    """Return how long the gradient of the first batch takes this way, on a decoder of its own."""
    trial = Session(config, feed, SingleProcess(), choice)
    try:
        return median_seconds(trial.engine.gradients, rows_of(feed.batch(0)).to(trial.device))
    finally:
        trial.close()


def _not_finite(step: int, loss: float, norm: float) -> RunError:
    what = "loss" if not math.isfinite(loss) else "gradient"
    return RunError(
        f"step {step + 1}",
        f"the {what} is not finite (loss {loss:g}, gradient norm {norm:g})",
        expected="no step was taken and nothing was saved",
        hint="lower the learning rate, warm up longer or clip harder, then start again; "
        "the last checkpoint is from before this step",
    )
