"""Everything that decides a training: one frozen, validated config, kept in the run's folder.

    TrainingConfig
    ├── model       the decoder (heedful.model.DecoderConfig)
    ├── data        where the batches come from; whoever makes them reads it
    ├── optimiser   AdamW, or Muon for the matrices and AdamW for the rest
    ├── schedule    warm-up, then cosine | warm-up-stable-decay | constant
    └── compute     precision, lanes, compilation, device

This module needs no torch.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from heedful.errors import ConfigError, InputError
from heedful.model.config import DecoderConfig, preset
from heedful.settings import Settings

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Momentum = Annotated[float, Field(ge=0.0, lt=1.0)]
MAX_CONFIG_BYTES = 64 * 2**10
_NAME = re.compile(r"[a-z_]+(\.[a-z_]+)*")


class Optimiser(Settings):
    """How gradients become steps."""

    table: ClassVar[str | None] = "optimiser"

    kind: Literal["adamw", "muon"] = "adamw"
    """`muon` orthogonalises the steps of the blocks' matrices; the rest goes to AdamW."""
    learning_rate: PositiveFloat = 1e-3
    """The highest rate."""
    matrix_learning_rate: PositiveFloat | None = None
    """The highest rate of Muon; its steps are scaled to the size of AdamW's. None: the same."""
    betas: tuple[Momentum, Momentum] = (0.9, 0.95)
    """How slowly AdamW's means of the gradient and of its square change."""
    eps: PositiveFloat = 1e-8
    """Added to the root of AdamW's second mean."""
    momentum: Momentum = 0.95
    """Of Muon."""
    weight_decay: NonNegativeFloat = 0.1
    """Of matrices, embeddings among them; never of biases and gains."""


class Schedule(Settings):
    """How the learning rates change from step to step, as a share of the highest."""

    table: ClassVar[str | None] = "schedule"

    kind: Literal["cosine", "wsd", "constant"] = "cosine"
    """`wsd`: warm up, stay, and decay linearly over the last part."""
    warmup: NonNegativeInt = 100
    """Steps until the rate is at its highest."""
    floor: Share = 0.1
    """Where a decay ends."""
    decay: Annotated[float, Field(gt=0.0, le=1.0)] = 0.2
    """The share of all steps in which `wsd` decays."""


class Compute(Settings):
    """How the work is laid on the machine. `auto` measures first, and writes down its choice."""

    table: ClassVar[str | None] = "compute"

    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the products; weights and their steps are always float32."""
    lanes: Literal["auto"] | PositiveInt = "auto"
    """Threads that each take a part of every batch, with one core each."""
    compile: Literal["auto"] | bool = "auto"
    """Whether torch compiles the decoder."""
    micro_rows: PositiveInt | None = None
    """Rows that a lane computes at once. None: its whole part of the batch."""
    threads: PositiveInt | None = None
    """Threads of torch. None: as torch finds it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: a GPU where there is one."""


class TrainingConfig(Settings):
    """One training, completely.

    >>> from heedful.model.config import preset
    >>> TrainingConfig(model=preset("tiny"), steps=1_000).schedule.kind
    'cosine'
    """

    table: ClassVar[str | None] = ""

    model: DecoderConfig
    data: dict[str, Any] = Field(default_factory=dict)
    """Where the batches come from; read by whatever makes them."""
    steps: PositiveInt
    """Steps of the optimiser."""
    accumulate: PositiveInt = 1
    """Batches whose gradients make one step."""
    optimiser: Optimiser = Optimiser()
    schedule: Schedule = Schedule()
    clip: PositiveFloat | None = 1.0
    """The longest gradient; a longer one is shortened. None: any length."""
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Share of each target that is spread over the whole vocabulary."""
    average: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Decay of a moving average of the weights, which is then evaluated. None: no average."""
    seed: NonNegativeInt = 0
    """Decides the first weights and every dropout."""
    evaluate_every: PositiveInt = 500
    """Steps between two evaluations."""
    save_every: PositiveInt = 500
    """Steps between two checkpoints; the last step is always saved."""
    log_every: PositiveInt = 10
    """Steps between two lines of metrics."""
    tensorboard: bool = True
    """Whether event files for TensorBoard are written too."""
    compute: Compute = Compute()

    def model_post_init(self, _context: object) -> None:
        """Check the settings against one another."""
        if self.schedule.kind != "constant" and self.schedule.warmup >= self.steps:
            raise ConfigError(
                "schedule.warmup",
                f"is {self.schedule.warmup}, of {self.steps} steps in all",
                expected="fewer steps than the training has",
                hint=f"set it to {self.steps // 10}, or train longer",
            )
        _check_plain(self.data, "data")

    def to_dict(self) -> dict[str, Any]:
        """Return the config as JSON holds it; `TrainingConfig.of` reads it back."""
        plain: dict[str, Any] = self.model_dump(mode="json")
        return plain


def read_config(path: Path) -> TrainingConfig:
    """Read a training from a TOML file, in which nothing is left to its data."""
    return config_of(read_values(path))


def read_values(path: Path) -> dict[str, Any]:
    """Read the settings of a TOML file as they are written, unchecked."""
    where = str(path)
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "there is no such file"
        raise InputError(where, problem, expected="a TOML file was expected")
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise InputError(
            where,
            f"has {path.stat().st_size:,} bytes",
            expected=f"at most {MAX_CONFIG_BYTES:,} are read",
        )
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(where, f"is not UTF-8 (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(where, f"is not valid TOML ({error})") from None


def with_changes(values: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return settings in which some are replaced, each written as `name = value` is in TOML.

    Text needs no quotes, since a shell takes them away.

    >>> with_changes({"steps": 600, "data": {"rows": 32}}, ["data.rows=8", "optimiser.kind=muon"])
    {'steps': 600, 'data': {'rows': 8}, 'optimiser': {'kind': 'muon'}}
    """
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()) or "\n" in value:
            raise InputError(
                "--set",
                f"{change!r:.60} sets nothing",
                expected="name=value was expected",
                hint="write, for instance, steps=100 or data.rows=8",
            )
        try:
            setting = tomllib.loads(change)
        except tomllib.TOMLDecodeError:
            setting = tomllib.loads(f"{name} = {json.dumps(value.strip())}")
        values = merged(values, setting)
    return values


def config_of(values: dict[str, Any]) -> TrainingConfig:
    """Return the training that a mapping describes; its model may start from a preset.

    >>> config_of({"steps": 200, "model": {"preset": "tiny", "layers": 3}}).model.layers
    3
    """
    model = values.get("model")
    if not isinstance(model, dict):
        raise ConfigError(
            "model",
            "is missing" if model is None else f"is {model!r:.60}",
            expected="a table [model] was expected",
            hint='write, for instance, [model] and preset = "tiny"',
        )
    if "preset" in model:
        changes = {name: value for name, value in model.items() if name != "preset"}
        base = preset(str(model["preset"])).model_dump()
        model = merged(base, changes)
    return TrainingConfig.of({**values, "model": model})


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return settings with changes; tables inside are merged too."""
    both = dict(base)
    for name, value in changes.items():
        known = both.get(name)
        # Positions of another kind have other settings: those of the old kind do not stay.
        if (
            isinstance(known, dict)
            and isinstance(value, dict)
            and value.get("kind", known.get("kind")) == known.get("kind")
        ):
            both[name] = merged(known, value)
        else:
            both[name] = value
    return both


def _check_plain(value: Any, where: str) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            _check_plain(item, f"{where}.{name}")
    elif isinstance(value, list):
        for item in value:
            _check_plain(item, where)
    elif not isinstance(value, str | int | float | bool | None):
        raise ConfigError(
            where,
            f"is a {type(value).__name__}",
            expected="text, numbers, true or false were expected",
        )
