"""One machine or many: who takes which rows, and how weights are gathered and spread.

`torchrun` starts one process a rank. Every rank makes the same batch and takes every R-th row
of it, so that R ranks compute the very batch that one would. `ddp` keeps all weights on every
rank; `fsdp` spreads them (FSDP2). A checkpoint holds whole tensors, whoever wrote it: it can be
read by any number of ranks.

What spreads weights is imported by the methods that need it: it takes 1.5 s, and most trainings
have one process.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal

import safetensors.torch
import torch
import torch.distributed as torch_distributed
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from heedful.errors import ConfigError, RunError
from heedful.model import Decoder
from heedful.training.feed import IGNORE, Rows
from heedful.training.loss import Objective

Strategy = Literal["single", "ddp", "fsdp"]
TIMEOUT = timedelta(minutes=10)
LAST_MOMENT = 0.2


class SingleProcess:
    """One process: nothing to share."""

    strategy: Strategy = "single"
    rank = 0
    ranks = 1

    @property
    def first(self) -> bool:
        """Whether this rank writes the files."""
        return self.rank == 0

    def share(self, rows: Rows) -> Rows:
        """Return the rows that this rank computes."""
        return rows

    def wrap(self, objective: Objective) -> tuple[Any, Callable[[bool], None] | None]:
        """Return what to call, and what switches the exchange of gradients."""
        return objective, None

    def settle(self, decoder: Decoder) -> None:
        """Bring a decoder back to how training needs it, after others have used it."""

    def add_up(self, *values: float) -> list[float]:
        """Return the sums of numbers over all ranks."""
        return list(values)

    def from_first(self, value: Any) -> Any:
        """Return what the first rank has."""
        return value

    def all_states(self, states: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the random states of every rank, by `rank/source`."""
        return {f"0/{name}": state for name, state in states.items()}

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return tensors in full, wherever their parts are."""
        return dict(tensors)

    def collected(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return tensors in full to the rank that writes them, and nothing to the others."""
        return dict(tensors)

    def like(self, tensor: Tensor, reference: Tensor) -> Tensor:
        """Return a full tensor laid out as the reference is."""
        return tensor.to(reference.device)

    def close(self, *, well: bool) -> None:
        """Leave the group; `well` tells whether the others are still there."""


class Distributed(SingleProcess):
    """One of several processes that train one decoder."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.rank, self.ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        self.device = "cuda" if backend == "nccl" else "cpu"
        if backend == "nccl":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        store, rank, ranks = next(rendezvous("env://", timeout=TIMEOUT))
        # torchrun may start everybody again: those who died have left their addresses behind.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        own = PrefixStore(f"attempt {attempt}", store)
        torch_distributed.init_process_group(
            backend, store=own, rank=rank, world_size=ranks, timeout=TIMEOUT
        )

    def share(self, rows: Rows) -> Rows:
        """Return every R-th row; a rank without one gets a row from which nothing is learned."""
        if len(rows) > self.rank:
            return rows.take(slice(self.rank, None, self.ranks))
        one = rows.take(slice(0, 1))
        return Rows(one.tokens, torch.full_like(one.targets, IGNORE), one.documents)

    def wrap(self, objective: Objective) -> tuple[Any, Callable[[bool], None] | None]:
        """Return the objective with its gradients exchanged between the ranks."""
        if self.strategy == "ddp":
            together = DistributedDataParallel(objective)

            def exchange(on: bool) -> None:
                together.require_backward_grad_sync = on

            return together, exchange
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        decoder: Any = objective.decoder
        for block in decoder.blocks:
            fully_shard(block)
        fully_shard(decoder)
        for method in ("hidden", "logits"):
            register_fsdp_forward_method(decoder, method)
        return objective, decoder.set_requires_gradient_sync

    def settle(self, decoder: Decoder) -> None:
        """Let go of the weights that a forward pass without a backward pass has gathered.

        They would be stale after the next step, and the pass after it would still use them.
        """
        from torch.distributed.fsdp import FSDPModule

        for module in decoder.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def add_up(self, *values: float) -> list[float]:
        """Return the sums of numbers over all ranks."""
        sums = torch.tensor(values, dtype=torch.float64, device=self.device)
        torch_distributed.all_reduce(sums)
        return list(sums.tolist())

    def from_first(self, value: Any) -> Any:
        """Return what the first rank has."""
        return json.loads(self._gathered(json.dumps(value).encode())[0])

    def all_states(self, states: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the random states of every rank, by `rank/source`."""
        boxes = map(safetensors.torch.load, self._gathered(safetensors.torch.save(dict(states))))
        return {
            f"{rank}/{name}": state for rank, box in enumerate(boxes) for name, state in box.items()
        }

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return tensors in full; every rank must ask for the same ones."""
        from torch.distributed.tensor import DTensor

        return {
            name: tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            for name, tensor in tensors.items()
        }

    def collected(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return tensors in full, in main memory, to the first rank.

        They are gathered one after the other: a GPU never holds more than one that is whole.
        """
        from torch.distributed.tensor import DTensor

        found = {}
        for name, tensor in tensors.items():
            full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            if self.first:
                found[name] = full.cpu()
        return found

    def like(self, tensor: Tensor, reference: Tensor) -> Tensor:
        """Return a full tensor, spread as the reference is."""
        from torch.distributed.tensor import DTensor, distribute_tensor

        if isinstance(reference, DTensor) and tensor.shape == reference.shape:
            return distribute_tensor(tensor, reference.device_mesh, reference.placements)
        return tensor.to(reference.device)

    def close(self, *, well: bool) -> None:
        """Leave the group, all at once if all are well."""
        if well:
            torch_distributed.barrier()
        # The threads of gloo drop the tensors of the last exchange a moment after it ends, and
        # need Python's lock for it, which leaving would hold while it waits for these threads.
        time.sleep(LAST_MOMENT)
        torch_distributed.destroy_process_group()

    def _gathered(self, content: bytes) -> list[bytes]:
        """Return the bytes of every rank: torch's own way to do this would pickle them."""
        sizes = [int(size.item()) for size in self._gather(torch.tensor([len(content)]))]
        padded = torch.frombuffer(bytearray(content.ljust(max(sizes))), dtype=torch.uint8)
        parts = self._gather(padded)
        return [bytes(part.tolist()[:size]) for part, size in zip(parts, sizes, strict=True)]

    def _gather(self, tensor: Tensor) -> list[Tensor]:
        tensor = tensor.to(self.device)
        parts = [torch.empty_like(tensor) for _ in range(self.ranks)]
        torch_distributed.all_gather(parts, tensor)
        return parts


def join(strategy: Strategy) -> SingleProcess:
    """Return this process's place among those that `torchrun` started."""
    launched = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    if strategy == "single":
        if launched and int(os.environ["WORLD_SIZE"]) > 1:
            raise ConfigError(
                "--strategy",
                f"is single, but {os.environ['WORLD_SIZE']} processes were started",
                expected="ddp or fsdp",
                hint="add --strategy ddp, or start one process",
            )
        return SingleProcess()
    if not launched:
        raise ConfigError(
            "--strategy",
            f"is {strategy}, but this process was not started by torchrun",
            hint="torchrun --nproc-per-node 2 -m heedful train … --strategy " + strategy,
        )
    try:
        return Distributed(strategy)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise RunError("--strategy", f"the processes did not find one another ({reason})") from None
