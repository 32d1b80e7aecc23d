"""What a torch operator costs on the simulated GPU: bytes and flops, by its arguments. A distinct input is read once, an output written once."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

_FREE = tuple("empty empty_like empty_strided new_empty new_empty_strided _unsafe_view resize_ set_".split())
_FILL = tuple(
    "zero_ fill_ copy_ normal_ uniform_ bernoulli_ exponential_ zeros_like ones_like full_like rand_like randn_like new_zeros new_ones".split()
)
_PICK = ("embedding", "index", "index_select", "gather", "take")
_FLOPS = dict(flop_registry)  # as it is now
_RECORDS = ("_record_function_enter", "_record_function_enter_new", "_record_function_exit")  # of the profiler


@functools.cache
def free(func: Any) -> bool:
    """Views and uninitialised tensors launch nothing."""
    view = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    plain = func.overloadpacket.__name__ in _FREE and not func._overloadname.endswith("out")
    return view or record(func) or plain


def record(func: Any) -> bool:
    return func.namespace == "profiler" and func.overloadpacket.__name__ in _RECORDS


def torch_traffic(func: Any, args: tuple, kwargs: dict, out: Any) -> tuple[int, int, int]:
    """Bytes, fp32 flops and 16-bit flops of an aten op: distinct inputs read once, outputs written once, broadcast dimensions not counted."""

    def tensors(tree: Any) -> list[tuple[tuple, int]]:
        found = [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
        dense = [math.prod(n for n, stride in zip(x.shape, x.stride()) if stride or not n) for x in found]
        return [((x.data_ptr(), x.shape), n * x.element_size()) for x, n in zip(found, dense)]

    name = func.overloadpacket.__name__
    written = sum(size for _, size in tensors(out))
    if not func._schema.returns:  # what is written in place
        named = {**dict(zip((a.name for a in func._schema.arguments), args)), **kwargs}
        changed = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        written = sum(size for _, size in tensors([named.get(name) for name in changed]))
    read = dict(tensors((args[1:] if name in _FILL else args, {k: v for k, v in kwargs.items() if k != "out"})))
    if name in _PICK:
        table = tensors(args[0])[0][0]
        read[table] = min(read[table], written)
    flops = 0
    if func.overloadpacket in _FLOPS:
        complex_ = any(isinstance(x, torch.Tensor) and x.is_complex() for x in args)
        flops = _FLOPS[func.overloadpacket](*args, **kwargs, out_val=out) * (4 if complex_ else 1)
    elif name == "_scaled_dot_product_flash_attention_for_cpu":
        flops = sdpa_flop_count(*(x.shape for x in args[:3]))
    elif name in ("_native_multi_head_attention", "_transformer_encoder_layer_fwd"):
        batch, length, width = args[0].shape
        flops = 8 * args[0].numel() * width + 4 * args[0].numel() * length
        flops += 4 * args[0].numel() * args[14].shape[0] if name.startswith("_transformer") else 0
    elif name.startswith("_embedding_bag"):
        flops = 2 * args[1].numel() * args[0].shape[-1]
    elif not _light(func):
        flops = _bound([x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)], out, "conv" in name)
    half = any(isinstance(x, torch.Tensor) and x.element_size() == 2 for x in args)
    return sum(read.values()) + written, 0 if half else flops, flops if half else 0


# parts of the names of operators that do a few flops for each element
_LIGHT = re.compile(
    "norm|softmax|pool|pad|upsample|cum|sort|topk|index|gather|scatter|embedding|mask|copy|clone|cat|stack|fill|zero|_like|new_|rand|bernoulli|"
    "exponential|dropout|roll|flip|repeat|(?<![a-z])tri[lu](?![a-z])|unique|where|arange|linspace|full|ones|empty|scalar|loss|hot|bucketize|search|hist|bincount|kth|"
    "median|mode|minmax|arg|var|std|mean|sum|prod|all|any|foreach|diag|item|resize|set_|relu|glu|shuffle|col2im|im2col|fold|trace|cross|quantize|"
    "complex|real|imag|fft|rot90|take|(?<![a-z])put|equal|split|nan|grid|lerp|cdist_backward|cast|to_|range|eye|dist$|max|min|logsumexp|logcumsumexp|digamma"
)


@functools.cache
def _light(func: Any) -> bool:
    tags = {tag.name for tag in func.tags}
    return bool(tags & {"pointwise", "reduction", "view_copy"}) or bool(_LIGHT.search(func.overloadpacket.__name__))


def _bound(given: list[torch.Tensor], out: Any, convolution: bool) -> int:
    """Flops of an operator that nobody counts: those of a convolution with the second tensor as its weight, or of a product of the three
    largest tensors (2 sqrt(MK KN MN) = 2MKN)."""
    made = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
    if convolution and len(given) > 1 and made and given[1].dim() > 2:
        return 2 * made[0].numel() * given[1].numel() // given[1].shape[0]
    sizes = sorted((x.numel() for x in [*given, *made]), reverse=True)[:3] or [0]
    return 2 * math.isqrt(math.prod((sizes * 3)[:3] if len(sizes) < 3 else sizes))
