"""Where the weights, gradients and moments live: FSDP2, the sampler's copy, moments in host memory, the phases of a step. And Muon.

On each GPU a step holds, of the P parameters of the model over W GPUs: the fp32 master P/W, which is what is trained and saved; in the
update the fp32 gradients P/W and, in fp32 or with --offload in host memory, the two moments; while sampling a whole copy in half
precision. Layers are gathered in half precision, one ahead of the other, where they compute, and stay so where `shard` is told to.
"""

import copy
import math
import types
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from mmap import PAGESIZE

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from transformers import PreTrainedModel

from packed import layers_of, recompute, score

PIECE = 2**26  # elements of a parameter that are updated at a time
SLOTS = 3  # pieces on their way: one comes, one is updated, one goes


def shard(
    model: PreTrainedModel,
    compute_dtype: torch.dtype,
    keep: Sequence[int] | None = None,
    compiled: bool = False,
    gathered: bool = False,
) -> PreTrainedModel:
    """FSDP2 over the default process group, in place: each layer, the embedding, then the rest. Weights, gradients and optimizer
    state keep the model's dtype; forward and backward run in `compute_dtype`; gradients are reduced in fp32 after each backward
    and averaged over the ranks. keep: what each layer keeps for its backward (packed.recompute); None: everything. gathered: what
    a pass has gathered serves the next ones too, until `reshard`, which whoever reads or changes parameters must call before."""
    mesh = init_device_mesh(model.device.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=compute_dtype, reduce_dtype=torch.float32)
    if keep is not None:
        recompute(model, keep, compiled)
    how = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": False if gathered else None}
    for layer in layers_of(model):
        fully_shard(layer, **how)
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    if embedding.weight is not head.weight:
        fully_shard(embedding, **how)
    fully_shard(model, **how)
    model.set_reshard_after_backward(not gathered)
    model.score = types.MethodType(score, model)
    register_fsdp_forward_method(model, "score")  # the root's gather and pre-backward hooks run around it
    return model


def reshard(policy: torch.nn.Module) -> None:
    """Frees what is gathered in half precision, of all layers; the parameters are the shards then. Nothing for a policy that is whole."""
    for module in policy.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


# --- The sampler's copy -----------------------------------------------------------------------------------------------


@torch.no_grad()
def rollout_copy(policy: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """A plain copy of an unsharded model with its parameters in `dtype`, one tensor at a time; buffers keep theirs."""
    copies = {id(p): torch.nn.Parameter(p.detach().to(dtype, copy=True), False) for p in policy.parameters()}
    return copy.deepcopy(policy, copies)


def full(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def refresh(sampler: PreTrainedModel, policy: PreTrainedModel) -> None:
    """Copies the weights of `policy` (sharded or not) into the plain model `sampler`, in place, one tensor at a time: each rank casts
    its shard to the sampler's dtype, then the shards are gathered. Gives back the memory that `drop` took. Every rank must
    call it. Tied weights are one parameter on both sides."""
    reshard(policy)  # what is still gathered would show its copy in half precision
    if any(p.untyped_storage().nbytes() == 0 for p in sampler.parameters()):
        torch.cuda.empty_cache()
    target, sizes = dict(sampler.named_parameters()), {}
    for p in target.values():  # several may be parts of one memory (engine.joined)
        memory, end = p.untyped_storage()._cdata, (p.storage_offset() + p.numel()) * p.itemsize
        sizes[memory] = max(end, sizes.get(memory, 0))
    source = dict(policy.named_parameters())
    assert target.keys() == source.keys(), f"other parameters: {sorted(target.keys() ^ source.keys())[:4]}"
    for name, parameter in source.items():
        storage = target[name].untyped_storage()
        if storage.nbytes() == 0:
            storage.resize_(sizes[storage._cdata])
        target[name].copy_(full(parameter.detach().to(target[name].dtype)))


def drop(sampler: PreTrainedModel) -> None:
    """Frees the sampler's weights while the policy is updated: `refresh` writes them anew, so they need not go anywhere."""
    for parameter in sampler.parameters():
        parameter.untyped_storage().resize_(0)
    torch.cuda.empty_cache()  # for blocks of other sizes; nothing without a GPU


# --- Moments in host memory ---------------------------------------------------------------------------------------------


@dataclass
class Piece:
    """PIECE elements of one parameter: weights and gradient on the device, moments on the host, all flat."""

    weight: Tensor
    grad: Tensor
    moments: tuple[Tensor, Tensor]
    step: int
    group: dict


class OffloadedAdamW(torch.optim.AdamW):
    """AdamW whose moments live in pinned host memory and pass through the device piece by piece: one comes, one is updated, one goes.

        m <- β1 m + (1-β1) g    v <- β2 v + (1-β2) g²    θ <- (1 - lr λ) θ - lr (m / (1-β1ᵗ)) / (√(v / (1-β2ᵗ)) + ε)

    first_dtype: of m. bf16 halves it, at a rounding of 0.4 % of what is a mean over ten steps. v stays in fp32: it changes by a
    thousandth a step, which bf16 does not hold."""

    def __init__(self, params, first_dtype: torch.dtype = torch.float32, **kwargs):
        super().__init__(params, **kwargs)
        self.first_dtype, self.pinned = first_dtype, []
        weakref.finalize(self, unpin, self.pinned).atexit = False

    @torch.no_grad()
    def step(self, closure=None) -> None:
        pieces = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    pieces += self._pieces(p, group)
        stream(pieces)

    def _pieces(self, p: Tensor, group: dict) -> Iterator[Piece]:
        state = self.state[p]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = self._zeros(p, self.first_dtype), self._zeros(p, torch.float32)
        state["step"] += 1
        weight, m, v = (local(x).view(-1) for x in (p, state["exp_avg"], state["exp_avg_sq"]))
        grad = local(p.grad).reshape(-1)
        for w, g, *moments in zip(*(x.split(PIECE) for x in (weight, grad, m, v)), strict=True):
            if len(w):
                yield Piece(w, g, tuple(moments), int(state["step"]), group)

    def _zeros(self, p: Tensor, dtype: torch.dtype) -> Tensor:
        """Sharded like p, in host memory, pinned where p is on a GPU."""
        memory = pages(local(p).numel() * dtype.itemsize)
        if p.is_cuda and len(memory):
            pin(memory)
            self.pinned.append(memory)
        host = memory.view(dtype).view(local(p).shape)
        if not isinstance(p, DTensor):
            return host
        spec = DTensorSpec(p.device_mesh, p.placements, TensorMeta(p.shape, p.stride(), dtype))
        return DTensor(host, spec, requires_grad=False)

    def load_state_dict(self, state_dict: dict) -> None:
        """As the parent's, but the moments stay where they are: on the host, in their own dtype."""
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({name: value for name, value in saved.items() if name != "params"})
            for p, number in zip(group["params"], saved["params"], strict=True):
                for name, value in state_dict["state"].get(number, {}).items():
                    if name not in self.state[p]:
                        self.state[p][name] = value
                    else:
                        local(self.state[p][name]).copy_(local(value))


def local(tensor: Tensor) -> Tensor:
    return tensor.detach().to_local() if isinstance(tensor, DTensor) else tensor.detach()


def pages(nbytes: int) -> Tensor:
    """Zeros that share no page with anything else, as bytes: what CUDA pins are whole pages, each once."""
    raw = torch.zeros(nbytes + 2 * PAGESIZE, dtype=torch.uint8)
    start = -raw.data_ptr() % PAGESIZE
    return raw[start : start + nbytes]


def pin(memory: Tensor) -> None:
    """torch's own pinned allocator would round sizes up to powers of two."""
    error = int(torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), -(-len(memory) // PAGESIZE) * PAGESIZE, 0))
    if error:
        raise MemoryError(f"CUDA cannot pin {len(memory) / 2**30:.2f} GiB of host memory (error {error})")


def unpin(pinned: list[Tensor]) -> None:
    for memory in pinned:
        torch.cuda.cudart().cudaHostUnregister(memory.data_ptr())


def stream(pieces: Sequence[Piece]) -> None:
    """Updates all pieces; the copies of their moments run beside the updates, SLOTS pieces at most on the device."""
    if not pieces:
        return
    device = pieces[0].weight.device
    cuda = device.type == "cuda"
    size = max(len(piece.weight) for piece in pieces)
    slots = [[torch.empty(size, dtype=x.dtype, device=device) for x in pieces[0].moments] for _ in range(SLOTS)]
    free: list = [None] * SLOTS  # the event after which a slot's content has gone back
    here, up, down = (torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()) if cuda else (None,) * 3

    def fetch(i: int):
        views = [slot[: len(pieces[i].weight)] for slot in slots[i % SLOTS]]
        with torch.cuda.stream(up):
            if free[i % SLOTS]:
                up.wait_event(free[i % SLOTS])
            for view, moment in zip(views, pieces[i].moments, strict=True):
                view.copy_(moment, non_blocking=True)
            return views, up.record_event() if cuda else None

    if cuda:
        up.wait_stream(here)  # the slots' memory may still be in use there
    coming = fetch(0)
    for i, piece in enumerate(pieces):
        (m, v), ready = coming
        if i + 1 < len(pieces):
            coming = fetch(i + 1)
        if cuda:
            here.wait_event(ready)
        adamw(piece.weight, piece.grad, m, v, piece.step, piece.group)
        if cuda:
            down.wait_event(here.record_event())
        with torch.cuda.stream(down):
            for moment, view in zip(piece.moments, (m, v), strict=True):
                moment.copy_(view, non_blocking=True)
            free[i % SLOTS] = down.record_event() if cuda else None
    if cuda:
        down.synchronize()


def adamw(weight: Tensor, grad: Tensor, m: Tensor, v: Tensor, step: int, group: dict) -> None:
    """One step of AdamW in place; all flat, on one device."""
    β1, β2 = group["betas"]
    first = m.float().lerp_(grad, 1 - β1)
    m.copy_(first)
    v.mul_(β2).addcmul_(grad, grad, value=1 - β2)
    denominator = v.sqrt().div_(math.sqrt(1 - β2**step)).add_(group["eps"])
    weight.mul_(1 - group["lr"] * group["weight_decay"])
    weight.addcdiv_(first, denominator, value=-group["lr"] / (1 - β1**step))


class Muon(torch.optim.Optimizer):
    """Momentum SGD whose update of a matrix is replaced by (about) the nearest semi-orthogonal one, found by five steps of a
    Newton-Schulz iteration (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon), at AdamW's update size (Liu et al.
    2025, arXiv 2502.16982). torch.optim.Muon iterates in bfloat16, which made four fifths of the cold start on a CPU without it."""

    def __init__(
        self, matrices: list[torch.nn.Parameter], lr: float, momentum: float = 0.95, weight_decay: float = 0.01
    ):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for p in group["params"]:
                if not self.state[p]:
                    self.state[p]["momentum"] = torch.zeros_like(p)
                mean = self.state[p]["momentum"]
                mean.lerp_(p.grad, 1 - momentum)
                update = orthogonal(p.grad.lerp(mean, momentum))  # Nesterov
                p.mul_(1 - lr * group["weight_decay"]).sub_(update, alpha=0.2 * lr * max(p.shape) ** 0.5)


def orthogonal(x: torch.Tensor) -> torch.Tensor:
    """(m, n) = U S Vᵀ -> about U Vᵀ: singular values above 0.2 % of the norm end in [0.65, 1.25]."""
    wide = x.shape[0] <= x.shape[1]
    x = (x if wide else x.T) / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (2.0315 * gram @ gram - 4.775 * gram) @ x
    return x if wide else x.T
