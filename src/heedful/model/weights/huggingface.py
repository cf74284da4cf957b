"""Models as folders: `config.json`, `model.safetensors` (one or sharded), `tokenizer.json`.

Two forms share the layout. `huggingface` is what `transformers` opens, for the families it
knows. `heedful` holds any decoder of this package: its own config under `model_type: heedful`,
and its own parameter names; only it may hold matrices in 8 bits, each row with a scale:

    NAME int8 (rows, columns), NAME.scale bfloat16 (rows, 1): the matrix is their product

Older ones have scales in float32.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.errors import ConfigError, InputError, RunError
from heedful.files import SHIPPED, SHIPPED_TOKENIZER, fsync_path, json_bytes
from heedful.model.config import DecoderConfig
from heedful.model.decoder import Decoder
from heedful.model.weights.checkpoint import (
    Checkpoint,
    TensorHeader,
    TensorSource,
    check_name,
    check_size,
)
from heedful.model.weights.families import (
    TensorSlice,
    family_for,
    family_of,
    tensor_map,
    with_rotary_layout,
)
from heedful.tokenization import Tokenizer

Form = Literal["huggingface", "heedful"]
GENERATION = "generation_config.json"
SHARD_BYTES = 5_000_000_000
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
DTYPES = ("F64", "F32", "F16", "BF16")
SCALE = ".scale"
"""How the name of the scales of a matrix in 8 bits ends."""
SCALE_DTYPES = ("BF16", "F32")
MAX_JSON_BYTES = 64 * 2**20


def open_folder(folder: Path) -> Checkpoint:
    """Open a folder of either form."""
    written = read_json(folder / "config.json")
    where = str(folder / "config.json")
    own = written.get("model_type") == "heedful"
    try:
        if own:
            config = DecoderConfig.of(written.get("heedful"))
        else:
            family = family_of(written.get("model_type"), where)
            config = family.read(written)
    except ConfigError as error:
        raise error.at(f"{where}: {error.where}") from None
    source = SafetensorsFiles(folder)
    check_size(config, source)
    ignored: tuple[str, ...] = ()
    if own:
        with torch.device("meta"):
            tensors = {name: TensorSlice(name) for name in Decoder(config).state_dict()}
    else:
        tensors = tensor_map(config, family.names)
        tensors, ignored = _as_stored(config, tensors, source)
    ends = _ends(folder, written)
    return Checkpoint(
        path=folder,
        format="heedful" if own else "huggingface",
        family="heedful" if own else family.name,
        config=config,
        tensors=tensors,
        source=source,
        tokenizer=_tokenizer(folder, ends),
        ends=ends,
        ignored=ignored,
    )


def write_folder(
    decoder: Decoder,
    folder: Path,
    *,
    tokenizer: Tokenizer | None = None,
    form: Form | None = None,
    dtype: torch.dtype | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> Form:
    """Write a decoder; return the form: `huggingface` where a family can hold it.

    The folder appears complete or not at all: it is written beside its place, then renamed.
    """
    check_new_folder(folder)
    if tokenizer is not None and tokenizer.size > decoder.config.vocabulary:
        raise InputError(
            "tokenizer",
            f"has {tokenizer.size} ids",
            expected=f"the embedding has {decoder.config.vocabulary}",
        )
    written, tensors, form = _contents(decoder, form)
    if dtype is torch.int8:
        if form != "heedful":
            raise InputError(
                "dtype", "is int8", expected="only the form heedful holds matrices in 8 bits"
            )
        tensors = in_8_bits(tensors)
    elif dtype is not None:
        tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    kind = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    written |= {"dtype": kind, "torch_dtype": kind}
    # Families have defaults of their own, such as 50256: none is right for another tokenizer.
    marks = (None, None) if tokenizer is None else (tokenizer.begin, tokenizer.end)
    written |= {"bos_token_id": marks[0], "eos_token_id": marks[1]}
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.resolve().parent))
    try:
        _write_weights(unfinished, tensors, shard_bytes)
        _write_json(unfinished / "config.json", written)
        if tokenizer is not None:
            _write_tokenizer(unfinished, tokenizer, decoder.config.context)
        for path in unfinished.iterdir():
            path.chmod(0o644)
            fsync_path(path)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
        fsync_path(folder.resolve().parent)
    except OSError as error:
        raise RunError(str(folder), f"could not be written ({error.strerror})") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return form


def in_8_bits(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Round every matrix to whole numbers from -127 to 127, with one scale for each row.

    No entry is off by more than half its row's scale: about the largest entry of the row / 254.
    """
    made: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim < 2:
            made[name] = tensor
            continue
        rows = tensor.detach().float()
        largest = rows.abs().amax(dim=-1, keepdim=True)
        # 16 bits less of a scale cost nothing, because the row is divided by what is stored. The
        # largest entry becomes 126.5 to 127.5 scales, so it is stored as 127 in any case.
        scale = (largest / 127).clamp_min(torch.finfo(torch.float32).tiny).bfloat16()
        made[name] = (rows / scale.float()).round().clamp(-127, 127).to(torch.int8)
        made[name + SCALE] = scale
    return made


def check_new_folder(folder: Path) -> None:
    """Refuse a path that is taken, or that has no folder around it."""
    if folder.exists():
        raise InputError(
            str(folder), "exists already", hint="choose another path, or remove it first"
        )
    if not folder.resolve().parent.is_dir():
        raise InputError(str(folder), f"the folder {folder.resolve().parent} does not exist")


def _contents(
    decoder: Decoder, form: Form | None
) -> tuple[dict[str, Any], dict[str, torch.Tensor], Form]:
    config, state = decoder.config, decoder.state_dict()
    if form != "heedful":
        try:
            family = family_for(config)
        except InputError:
            if form == "huggingface":
                raise
        else:
            config, state = with_rotary_layout(config, state, "half")
            written: dict[str, Any] = {
                "model_type": family.name,
                "architectures": [family.architecture],
            }
            tensors = {
                name: part.of(state[part.name]).contiguous()
                for name, part in tensor_map(config, family.names).items()
            }
            return written | family.write(config), tensors, "huggingface"
    written = {"model_type": "heedful", "heedful": config.model_dump(mode="json")}
    return written, {name: tensor.contiguous() for name, tensor in state.items()}, "heedful"


def _as_stored(
    config: DecoderConfig, tensors: dict[str, TensorSlice], source: SafetensorsFiles
) -> tuple[dict[str, TensorSlice], tuple[str, ...]]:
    """Fit the names to how old files wrote them, and say which tensors hold nothing new."""
    if "wte.weight" in source.entries:  # GPT-2 as first published
        tensors = {name.removeprefix("transformer."): part for name, part in tensors.items()}
    # Causal masks, rotary tables and a second copy of a tied head follow from the rest.
    endings = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq")
    ignored = [name for name in source.entries if name.endswith(endings) and name not in tensors]
    if config.tied and "lm_head.weight" in source.entries:
        ignored.append("lm_head.weight")
    return tensors, tuple(ignored)


def _ends(folder: Path, written: dict[str, Any]) -> tuple[int, ...]:
    generation = folder / GENERATION
    known = {**written, **(read_json(generation) if generation.is_file() else {})}
    end = known.get("eos_token_id")
    ends = end if isinstance(end, list) else [end]
    return tuple(number for number in ends if isinstance(number, int))


def _tokenizer(folder: Path, ends: tuple[int, ...]) -> Tokenizer | None:
    path = folder / "tokenizer.json"
    if folder in SHIPPED.values() and not path.is_file():
        path = SHIPPED_TOKENIZER
    return Tokenizer.read(path, end=ends[0] if ends else None) if path.is_file() else None


def _write_weights(folder: Path, tensors: dict[str, torch.Tensor], most: int) -> None:
    shards: list[dict[str, torch.Tensor]] = [{}]
    for name, tensor in tensors.items():
        used = sum(other.nbytes for other in shards[-1].values())
        if shards[-1] and used + tensor.nbytes > most:
            shards.append({})
        shards[-1][name] = tensor
    if len(shards) == 1:
        save_file(shards[0], folder / SINGLE, metadata={"format": "pt"})
        return
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(shard, file)
    total = sum(tensor.nbytes for tensor in tensors.values())
    _write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": places})


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, context: int) -> None:
    tokenizer.save(folder / "tokenizer.json")
    marks = {
        "bos_token": tokenizer.begin,
        "eos_token": tokenizer.end,
        "pad_token": tokenizer.end,  # what is padded is never read, so any token will do
    }
    named = {name: tokenizer.token(number) for name, number in marks.items() if number is not None}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "padding_side": "left",
        **named,
    }
    _write_json(folder / "tokenizer_config.json", settings)
    ids = {f"{name}_id": number for name, number in marks.items() if number is not None}
    generation = {"do_sample": False, "max_length": context, **ids}
    _write_json(folder / GENERATION, generation)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_bytes(json_bytes(content))


class SafetensorsFiles(TensorSource):
    """The safetensors files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        single, index = folder / SINGLE, folder / INDEX
        if single.is_file():
            self._places = dict.fromkeys(_names(single), single)
        elif index.is_file():
            self.where = str(index)
            self._places = _indexed(index)
        else:
            raise _no_weights(folder)
        self.files = tuple(sorted(set(self._places.values())))
        found = {name: entry for path in self.files for name, entry in self._announced(path)}
        self._scaled = {
            name
            for name, entry in found.items()
            if entry.dtype == "I8" and self._has_scales(name, entry, found)
        }
        self.entries = {
            name: entry
            for name, entry in found.items()
            if name.removesuffix(SCALE) not in self._scaled or name in self._scaled
        }

    def read(self, name: str) -> Tensor:
        """Return one tensor in the dtype of the file; one in 8 bits times its scales."""
        tensor = self._stored(name)
        return tensor * self._stored(name + SCALE).float() if name in self._scaled else tensor

    def _stored(self, name: str) -> Tensor:
        with safe_open(self._places[name], framework="pt") as file:
            tensor: Tensor = file.get_tensor(name)
            return tensor

    def _has_scales(
        self, name: str, entry: TensorHeader, found: Mapping[str, TensorHeader]
    ) -> bool:
        """Check that a matrix in 8 bits has a scale for each of its rows."""
        shape = (*entry.shape[:-1], 1)
        if found.get(name + SCALE) not in [TensorHeader(shape, kind) for kind in SCALE_DTYPES]:
            raise InputError(
                self.where,
                f"{name} has 8 bits and no scales",
                expected=f"{name}{SCALE} with the shape {shape} in {' or '.join(SCALE_DTYPES)}",
            )
        return True

    def _announced(self, path: Path) -> list[tuple[str, TensorHeader]]:
        wanted = [name for name, place in self._places.items() if place == path]
        with safe_open(path, framework="pt") as file:
            absent = sorted(set(wanted) - set(file.keys()))
            if absent:
                raise InputError(
                    self.where,
                    f"{absent[0]!r:.80} is not in {path.name}, where the index puts it",
                    hint="download the folder again",
                )
            slices = {name: file.get_slice(name) for name in wanted}
            headers = [
                (name, TensorHeader(tuple(part.get_shape()), str(part.get_dtype())))
                for name, part in slices.items()
            ]
        for name, entry in headers:
            check_name(name, self.where)
            if entry.dtype not in (*DTYPES, "I8"):
                raise InputError(
                    self.where,
                    f"{name} has dtype {entry.dtype}",
                    expected=f"one of {', '.join(DTYPES)} was expected",
                )
        return headers


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a small JSON file holds."""
    where = str(path)
    if not path.is_file():
        raise InputError(where, "there is no such file")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise InputError(where, f"has {path.stat().st_size:,} bytes", expected="a small JSON file")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0][:80]
        raise InputError(where, f"is not valid JSON ({reason})") from None
    if not isinstance(content, dict):
        raise InputError(where, f"holds a {type(content).__name__}", expected="an object")
    return content


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (SafetensorError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:100]
        raise InputError(
            str(path),
            f"is damaged or cut short ({reason})",
            expected="a whole safetensors file",
            hint="copy or download it again",
        ) from None


def _indexed(index: Path) -> dict[str, Path]:
    where, content = str(index), read_json(index).get("weight_map")
    if not isinstance(content, dict) or not content:
        raise InputError(where, "has no weight_map", expected="the file of each tensor")
    for file in set(map(str, content.values())):
        # A plain name cannot leave the folder; a link of that name is the user's own doing.
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise InputError(
                where,
                f"names the file {file!r}",
                expected="a .safetensors file in the same folder",
                hint="do not trust this folder",
            )
        if not (index.parent / file).is_file():
            raise InputError(
                where, f"names {file}, which is not there", hint="download the folder again"
            )
        _names(index.parent / file)
    return {str(name): index.parent / str(file) for name, file in content.items()}


def _no_weights(folder: Path) -> InputError:
    pickled = sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt")
    )
    if pickled:
        return InputError(
            str(folder),
            f"holds pickled weights ({pickled[0]}), which can run code when they are opened",
            expected=f"{SINGLE}, or {INDEX}",
            hint="ask for the safetensors version of this model",
        )
    return InputError(str(folder), "holds no weights", expected=f"{SINGLE}, or {INDEX}")
