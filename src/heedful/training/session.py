"""Everything that changes while a decoder is trained, in one object that can be saved.

A session takes one step at a time and knows nothing of folders: `loop` decides when to save.

From gradients to weights lead the optimisers, the schedule of their rates, and an average of the
weights. AdamW is torch's; Muon takes the matrices of the blocks. Together they act as one
optimiser, whose state is a flat table of named tensors: that is what a checkpoint holds, on one
machine or on many.

Muon's step is the momentum of a matrix with all singular values brought near one, by a few
products (Newton-Schulz). torch's Muon rounds these products to bfloat16, whatever the training
does: on a processor without such instructions that took nine tenths of a step. Here they have the
precision of the training; in bfloat16 the two agree to the bit (a test). In float32 a long matrix
goes through its rounds as the square of its shorter side, which is cheaper.

The share of the highest learning rate in step s, with w warm-up steps of S in all, s counted from
0, and a floor f, is a function of the step alone:

    warm-up    (s + 1) / w                                  for s < w
    cosine     f + (1 − f) (1 + cos π u) / 2                u = (s − w) / (S − w)
    wsd        1, then 1 − (1 − f) (s − d) / (S − d)        from d = S − decay · S on
    constant   1
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from heedful.errors import ConfigError, InputError, RunError
from heedful.model import Decoder, flops_per_token
from heedful.model.cost import unlearned_flops
from heedful.training import config as settings
from heedful.training import randomness
from heedful.training.checkpoint import Contents
from heedful.training.config import Schedule, TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.engine import Choice, Lanes, Single, median_seconds
from heedful.training.feed import Feed, rows_of
from heedful.training.hooks import Adapt, Evaluate, Evaluation
from heedful.training.loss import Objective
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
        flops -= unlearned_flops(config.model) * (real - count)
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


class Optimisers:
    """One or two optimisers over the parameters of a decoder, by their names."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        setting: settings.Optimiser,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self.names: dict[Tensor, str] = {value: name for name, value in parameters.items()}
        matrices = [
            parameter
            for name, parameter in parameters.items()
            if setting.kind == "muon" and name.startswith("blocks.") and parameter.ndim == 2
        ]
        chosen = set(matrices)
        rest = [parameter for parameter in parameters.values() if parameter not in chosen]
        self.parts: list[torch.optim.Optimizer] = [_adamw(rest, setting)]
        self.rates = [setting.learning_rate]
        if matrices:
            rate = setting.matrix_learning_rate or setting.learning_rate
            self.parts.append(
                Muon(
                    matrices,
                    lr=rate,
                    momentum=setting.momentum,
                    weight_decay=setting.weight_decay,
                    precision=precision,
                )
            )
            self.rates.append(rate)

    def step(self, share: float) -> None:
        """Take one step at this share of the highest rates."""
        for part, rate in zip(self.parts, self.rates, strict=True):
            for group in part.param_groups:
                group["lr"] = rate * share
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Return the state of every parameter, as `parameter/entry`."""
        return {
            f"{self.names[parameter]}/{entry}": value
            for part in self.parts
            for parameter, entries in part.state.items()
            for entry, value in entries.items()
            if isinstance(value, Tensor)
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state; tensors are laid out as their parameters are."""
        found: dict[str, dict[str, Tensor]] = {}
        for key, value in state.items():
            name, _, entry = key.rpartition("/")
            found.setdefault(name, {})[entry] = value
        strange = sorted(set(found) - set(self.names.values()))
        if strange:
            raise InputError(
                "checkpoint",
                f"holds the state of {strange[0]!r:.80}, which this model does not have",
                hint="resume with the config of the run",
            )
        for part in self.parts:
            for group in part.param_groups:
                for parameter in group["params"]:
                    entries = found.get(self.names[parameter])
                    if entries is not None:
                        part.state[parameter] = entries


def _adamw(parameters: list[nn.Parameter], setting: settings.Optimiser) -> torch.optim.Optimizer:
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": setting.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    whole = all(type(parameter.data) is Tensor for parameter in parameters)
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=setting.learning_rate,
        betas=setting.betas,
        eps=setting.eps,
        # One pass over memory; parameters that are spread over machines know only the other way.
        fused=whole,
        foreach=None if whole else True,
    )


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised (https://kellerjordan.github.io/posts/muon/), for matrices.

    With gradient G and momentum m, in one step of rate η and weight decay λ:

        B ← m B + (1 − m) G
        W ← (1 − η λ) W − 0.2 η √max(rows, columns) · orthogonalised(m B + (1 − m) G)

    The factor makes a step as large as AdamW's (arXiv:2502.16982), so that both take like rates.
    """

    def __init__(
        self,
        matrices: list[nn.Parameter],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        precision: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.precision = precision

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(matrix.grad)
                average = state["momentum_buffer"].lerp_(matrix.grad, 1 - momentum)
                update = matrix.grad.lerp(average, momentum).to(self.precision)
                matrix.mul_(1 - rate * group["weight_decay"])
                size = 0.2 * math.sqrt(max(matrix.shape))
                matrix.add_(orthogonalised(update), alpha=-rate * size)


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients of x, x³ and x⁵: steep at 0, and between 0.7 and 1.2 soon after (Muon's own)."""
ROUNDS = 5
WORTH_SQUARING = 1.5
"""How many times as long as high a matrix must be for its square to be the cheaper one."""


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return the matrix with every singular value brought to about one (0.7 to 1.2).

    >>> _, values, _ = torch.linalg.svd(orthogonalised(torch.diag(torch.tensor([9.0, 1.0]))))
    >>> [0.6 < value < 1.3 for value in values.tolist()]
    [True, True]
    """
    wide = matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide / wide.norm().clamp(min=1e-7)  # no singular value is above 1 now
    rows, columns = wide.shape
    # bfloat16 keeps 8 bits, too few for squares of squares: rounded products keep to the rounds.
    by_squares = matrix.dtype.itemsize >= 4 and columns >= WORTH_SQUARING * rows
    wide = (_by_squares if by_squares else _by_rounds)(wide)
    return wide.mT if matrix.shape[0] > matrix.shape[1] else wide


def _by_rounds(wide: Tensor) -> Tensor:
    """Return X after five rounds of X ← (a I + b G + c G²) X with G = X Xᵀ."""
    x, cubic, quintic = NEWTON_SCHULZ
    for _ in range(ROUNDS):
        gram = wide @ wide.mT
        wide = torch.addmm(
            wide, torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic), wide, beta=x
        )
    return wide


def _by_squares(wide: Tensor) -> Tensor:
    """Return the same from the square matrix G alone: a third fewer operations for long matrices.

    F = a I + b G + c G² commutes with G, so that the next G is F G F; and the product of all F is
    applied to X once, at the end.
    """
    x, cubic, quintic = NEWTON_SCHULZ
    gram, factors = wide @ wide.mT, None
    for round_ in range(ROUNDS):
        factor = torch.addmm(gram, gram, gram, beta=cubic, alpha=quintic)
        factor.diagonal().add_(x)
        factors = factor if factors is None else factor @ factors
        if round_ < ROUNDS - 1:
            gram = factor @ gram @ factor
    assert factors is not None
    return factors @ wide


def rate_share(schedule: Schedule, step: int, steps: int) -> float:
    """Return the share of the highest learning rate that step number `step` takes.

    >>> shares = [rate_share(Schedule(warmup=2), step, 10) for step in (0, 1, 2)]
    >>> [round(share, 3) for share in shares]
    [0.5, 1.0, 1.0]
    """
    if step < schedule.warmup:
        return (step + 1) / schedule.warmup
    if schedule.kind == "constant":
        return 1.0
    floor = schedule.floor
    if schedule.kind == "cosine":
        done = (step - schedule.warmup) / max(steps - schedule.warmup, 1)
        return floor + (1.0 - floor) * (1.0 + math.cos(math.pi * min(done, 1.0))) / 2.0
    start = max(steps - round(schedule.decay * steps), schedule.warmup)
    if step < start:
        return 1.0
    return 1.0 - (1.0 - floor) * min((step - start) / max(steps - start, 1), 1.0)


class MovingAverage:
    """The average of some parameters, by their names."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decay: float) -> None:
        self.parameters = dict(parameters)
        self.decay = decay
        self.values = {name: value.detach().clone() for name, value in parameters.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are now."""
        current = [self.parameters[name].detach() for name in self.values]
        torch._foreach_lerp_(list(self.values.values()), current, 1.0 - self.decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the decoder have the averaged weights while the block runs."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def state(self) -> dict[str, Tensor]:
        """Return the average of each parameter."""
        return dict(self.values)

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take over a saved average."""
        for name, value in self.values.items():
            value.copy_(state[name])

    @torch.no_grad()
    def _exchange(self) -> None:
        # Values move, not tensors: lanes and wrappers hold on to the parameters' storage.
        for name, parameter in self.parameters.items():
            kept = parameter.detach().clone()
            parameter.copy_(self.values[name])
            self.values[name].copy_(kept)
