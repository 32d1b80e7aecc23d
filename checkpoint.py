"""Checkpoints of a training run: sharded, whole or not at all, resumable on another number of processes.

    OUT/checkpoints/step_N/
        config.json, model*.safetensors, tokenizer   the policy as it samples: what from_pretrained, eval.py and sft.py load
        train/                                       torch.distributed.checkpoint: fp32 weights and AdamW's moments, a file per process
        state.json                                   written last

A checkpoint is written beside its place and renamed once everything is on the disk; the last two are kept. OUT must be on a disk
that all nodes share. No process ever holds more of the whole model than one tensor and one file of the export.
"""

import copy
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.tensor import DTensor
from transformers import PreTrainedTokenizerBase

from processes import RANK, WORLD, from_rank_0

EXPORT_FILE = 5 * 2**30  # bytes of one safetensors file


class RunError(ValueError):
    """Something the user can mend, the same on every process; its text is all that is printed."""


def checkpoints(out: Path) -> list[Path]:
    """The whole checkpoints of a run, oldest first."""
    return sorted(file.parent for file in (out / "checkpoints").glob("step_[0-9]*/state.json"))


def make_room(out: Path, policy, dtype: torch.dtype) -> None:
    """Sees to it that the next checkpoint fits on the disk: the older of two makes way. Errors: RunError where it does not."""
    size = sum(p.numel() for p in policy.parameters()) * (12 + dtype.itemsize)
    trouble = None
    if RANK == 0:
        while (free := shutil.disk_usage(out).free) < 1.05 * size + 2**20 and len(checkpoints(out)) > 1:
            _remove(checkpoints(out)[0])
        if free < 1.05 * size + 2**20:
            trouble = RunError(
                f"{out} has {free / 2**30:.1f} GiB free, a checkpoint takes {size / 2**30:.1f} (and three are there for a "
                f"moment). Make room, then continue from the last checkpoint with --resume {out}, or choose another --out."
            )
    if trouble := from_rank_0(trouble):
        raise trouble


def save(
    out: Path,
    state: dict,
    policy,
    tokenizer: PreTrainedTokenizerBase,
    optimizer,
    dtype: torch.dtype,
    beat: Callable[[], None] = lambda: None,
) -> None:
    """out/checkpoints/step_N, N = state["step"]. state goes into state.json; dtype is the export's. Every process must call it.

    Errors: RunError where the disk does not let it; the checkpoints before it are as they were.
    """
    final = out / "checkpoints" / f"step_{state['step']:06d}"
    new = final.with_name(f".{final.name}")
    make_room(out, policy, dtype)
    if RANK == 0:
        for left_over in final.parent.glob(".step_*"):
            shutil.rmtree(left_over, ignore_errors=True)
        new.mkdir(parents=True, exist_ok=True)
    from_rank_0(None)  # nobody writes before that
    tensors, trouble = {"policy": get_model_state_dict(policy)}, None
    if optimizer.state:  # before its first step, asking for the state would make one, with a step counted
        tensors["optimizer"] = get_optimizer_state_dict(policy, optimizer)
    try:
        with warnings.catch_warnings(action="ignore"):  # that it is a single process, each time
            dcp.save(tensors, checkpoint_id=new / "train", no_dist=WORLD == 1)
        beat()
        export(policy, tokenizer, new, dtype, beat)
    except CheckpointException as error:  # the same on every process
        trouble = _first(error)
    except OSError as error:
        trouble = error
    if RANK == 0 and not trouble:
        try:
            state = state | {"processes": WORLD, "optimizer": "optimizer" in tensors}
            (new / "state.json").write_text(json.dumps(state))
            for file in new.rglob("*.*"):
                _flush(file)
            shutil.rmtree(final, ignore_errors=True)
            new.rename(final)
            for old in checkpoints(out)[:-2]:
                _remove(old)
        except OSError as error:
            trouble = error
    trouble = trouble and f"{type(trouble).__name__}: {trouble}"
    if trouble := from_rank_0(trouble):  # nobody goes on before it is there
        if RANK == 0:
            shutil.rmtree(new, ignore_errors=True)
        raise RunError(
            f"The checkpoint of step {state['step']} could not be written ({trouble}). The ones before it are whole: make room or "
            f"mend the disk, then continue with --resume {out}"
        )


def load(folder: Path, policy, optimizer, lr: float, weight_decay: float) -> None:
    """Fills policy and optimizer, sharded or not, from a checkpoint. Errors: RunError where its files are damaged."""
    tensors = {"policy": get_model_state_dict(policy)}
    if json.loads((folder / "state.json").read_text())["optimizer"]:
        tensors["optimizer"] = get_optimizer_state_dict(policy, optimizer)
    try:
        with warnings.catch_warnings(action="ignore"):
            dcp.load(tensors, checkpoint_id=folder / "train", no_dist=WORLD == 1)
    except CheckpointException as error:
        raise RunError(damaged(folder, _first(error))) from None
    set_model_state_dict(policy, tensors["policy"])
    if "optimizer" in tensors:
        set_optimizer_state_dict(policy, optimizer, tensors["optimizer"])
    for group in optimizer.param_groups:
        group["lr"], group["weight_decay"] = lr, weight_decay


def damaged(folder: Path, why) -> str:
    return f"{folder} is damaged ({type(why).__name__}: {why}): delete that folder, then --resume goes on from the one before it."


@torch.no_grad()
def export(
    policy,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    dtype: torch.dtype,
    beat: Callable[[], None] = lambda: None,
) -> None:
    """Writes what from_pretrained loads into `folder`, floats in `dtype`: a sharded tensor is gathered alone, a file of
    EXPORT_FILE bytes is held at a time. Every process must call it, process 0 writes. Errors: OSError, on every process."""
    lasting = policy.state_dict().keys()
    named = dict((*policy.named_parameters(), *policy.named_buffers()))  # tied tensors once, under their first name
    named = {name: tensor for name, tensor in named.items() if name in lasting}
    files, room = [[]], EXPORT_FILE
    for name, tensor in named.items():
        size = tensor.numel() * (dtype if tensor.is_floating_point() else tensor.dtype).itemsize
        if files[-1] and size > room:
            files, room = [*files, []], EXPORT_FILE
        files[-1].append(name)
        room -= size
    trouble, places = None, {}
    for number, names in enumerate(files, 1):
        file = f"model-{number:05d}-of-{len(files):05d}.safetensors" if len(files) > 1 else "model.safetensors"
        held = {}
        for name in names:
            tensor = named[name].detach()
            tensor = tensor.to(dtype if tensor.is_floating_point() else tensor.dtype)
            tensor = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            if RANK == 0 and not trouble:
                held[name] = tensor.contiguous().cpu()
            beat()
        if RANK == 0 and not trouble:
            try:
                save_file(held, folder / file, metadata={"format": "pt"})
            except (OSError, SafetensorError) as error:  # the others are waiting for process 0 in the next gather
                trouble = OSError(str(error))
            places |= dict.fromkeys(names, file)
    if RANK == 0 and not trouble:
        config = copy.deepcopy(policy.config)
        config.dtype, config.architectures = dtype, [type(policy).__name__.removeprefix("FSDP")]
        try:
            if len(files) > 1:
                size = sum((folder / file).stat().st_size for file in set(places.values()))
                index = {"metadata": {"total_size": size}, "weight_map": places}
                (folder / "model.safetensors.index.json").write_text(json.dumps(index))
            tokenizer.save_pretrained(folder)
            policy.generation_config.save_pretrained(folder)
            config.save_pretrained(folder)
        except OSError as error:
            trouble = error
    if trouble := from_rank_0(trouble):
        raise trouble


def _first(error: CheckpointException) -> BaseException:
    return next(iter(error.failures.values()))[0]


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    """Not whole from the first moment on."""
    (folder / "state.json").unlink()
    shutil.rmtree(folder)
