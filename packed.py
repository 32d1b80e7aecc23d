"""Packed rows: rows of different lengths end to end in one sequence, attention inside each row, log-probs and entropy of chosen tokens.

Transformers' own layers run on the packed sequence (1, T): position ids restart at each row, and the attention implementation "packed",
registered here, keeps the rows apart; no T x T mask is made. In half precision on a GPU it is torch's flash attention for rows of any
lengths, or, where rows are about equally long, cuDNN's on a padded grid (faster on Hopper); elsewhere it is
F.scaled_dot_product_attention on that grid. Not covered: sliding windows, attention sinks, dropout.

Shapes: T packed tokens, N rows, L longest row, H heads, D head dimension, d hidden size, V vocabulary, M scored tokens.
"""

import functools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from transformers import AttentionInterface, PreTrainedModel

LOGITS_AT_ONCE = 2**28  # elements of a chunk of logits (0.5 GiB in bf16)
GRID_COST = (
    1.3  # the padded grid is taken while attention on it costs at most this much more: by how much cuDNN is faster
)
GRID_STEP = 256  # its rows are multiples of this long, since cuDNN makes a plan for each shape


# --- Attention --------------------------------------------------------------------------------------------------------


def _grid(cu: Tensor, longest: int, tokens: int) -> Tensor:
    """(N, L): the token at each place of each row; beyond a row's end any other token."""
    return (cu[:-1, None] + torch.arange(longest, device=cu.device)).clamp(max=tokens - 1)


def _places(cu: Tensor, longest: int, tokens: int) -> Tensor:
    """(T,): where each token stands in the flattened grid; tokens that belong to no row stand anywhere."""
    token = torch.arange(tokens, device=cu.device, dtype=cu.dtype)
    row = (torch.searchsorted(cu, token, right=True) - 1).clamp(max=len(cu) - 2)
    return row * longest + (token - cu[row]).clamp(max=longest - 1)


def plain_attention(q: Tensor, k: Tensor, v: Tensor, cu: Tensor, longest: int, scale: float) -> Tensor:
    """Causal attention inside each row, (T, H, D), of operators that torch differentiates. q (T, H, D); k, v (T, H_kv, D)."""
    grid = _grid(cu, longest, len(q)).flatten()
    rows = (x.index_select(0, grid).unflatten(0, (-1, longest)).transpose(1, 2) for x in (q, k, v))  # (N, H, L, D)
    out = F.scaled_dot_product_attention(*rows, is_causal=True, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
    return out.transpose(1, 2).flatten(0, 1).index_select(0, _places(cu, longest, len(q)))


def _to_grid(cu: Tensor, longest: int, inside: int, *tensors: Tensor) -> list[Tensor]:
    """(T, H, ..) -> (N, H, L, ..): views where the rows fill the grid, else copies, with any values beyond a row's end."""
    if inside == (len(cu) - 1) * longest:
        return [x[:inside].unflatten(0, (-1, longest)).transpose(1, 2) for x in tensors]
    grid = _grid(cu, longest, len(tensors[0])).flatten()
    return [x.index_select(0, grid).unflatten(0, (-1, longest)).transpose(1, 2) for x in tensors]


def _from_grid(cu: Tensor, longest: int, inside: int, tokens: int, *tensors: Tensor) -> list[Tensor]:
    """(N, H, L, ..) -> (T, H, ..), zeros for tokens that belong to no row."""
    flat = [x.transpose(1, 2).flatten(0, 1) for x in tensors]
    if inside == (len(cu) - 1) * longest:
        return [torch.cat([x, x.new_zeros(tokens - inside, *x.shape[1:])]) if tokens > inside else x for x in flat]
    place = _places(cu, longest, tokens)
    return [_ended(x.index_select(0, place), inside) for x in flat]


def _ended(x: Tensor, inside: int) -> Tensor:
    x[inside:] = 0
    return x


@torch.library.custom_op("drkernel::attention", mutates_args=())
def attention(q: Tensor, k: Tensor, v: Tensor, cu: Tensor, how: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The same by the fastest kernel: (T, H, D), and the log-sum-exp of the scores (H, T) for the backward.

    cu (N+1,) int32, where rows start; how = [L, on the grid, cu[-1]] on the CPU. One operator to torch.compile, whatever the rows are.
    Tokens beyond cu[-1] belong to no row: their output and gradients are zero."""
    (longest, on_grid, inside), tokens = how.tolist(), len(q)
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    if on_grid:
        rows = _grid_forward(*_to_grid(cu, longest, inside, q, k, v), scale)
        out, lse = _from_grid(cu, longest, inside, tokens, *rows)
        return out.contiguous(), lse.t().contiguous()
    out, lse, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, cu, cu, longest, longest, 0.0, True, False, scale=scale
    )
    return _ended(out, inside), lse


@attention.register_fake
def _(q, k, v, cu, how, scale):
    return q.new_empty(q.shape), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


@torch.library.custom_op("drkernel::attention_backward", mutates_args=())
def attention_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, cu: Tensor, how: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    (longest, on_grid, inside), tokens = how.tolist(), len(q)
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    if on_grid:
        grad, q, k, v, out, lse = _to_grid(cu, longest, inside, grad.contiguous(), q, k, v, out, lse.t())
        if inside < (len(cu) - 1) * longest:
            beyond = torch.arange(longest, device=cu.device) >= cu.diff()[:, None]  # (N, L)
            grad = grad.masked_fill_(beyond[:, None, :, None], 0)
            lse = lse.masked_fill_(beyond[:, None], torch.inf)  # padding attends to nothing
        return tuple(_from_grid(cu, longest, inside, tokens, *_grid_backward(grad, q, k, v, out, lse, scale)))
    seed, none = torch.zeros(2, dtype=torch.uint64, device=q.device), q.new_empty(0)  # of dropout: there is none
    grads = torch.ops.aten._flash_attention_backward(
        grad.contiguous(), q, k, v, out, lse, cu, cu, longest, longest, 0.0, True, seed, none, scale=scale
    )
    return tuple(_ended(x, inside) for x in grads)


@attention_backward.register_fake
def _(grad, q, k, v, out, lse, cu, how, scale):
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _save(ctx, inputs, output):
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx, grad, _):
    q, k, v, cu, how, out, lse = ctx.saved_tensors
    return *attention_backward(grad, q, k, v, out, lse, cu, how, ctx.scale), None, None, None


attention.register_autograd(_backward, setup_context=_save)


def _grid_forward(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Causal attention (N, H, L, D) and log-sum-exp (N, H, L), by cuDNN or on the CPU; k and v may have fewer heads."""
    if q.is_cuda:
        out, lse, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(
            q, k, v, None, True, 0.0, True, False, scale=scale
        )
        return out, lse.view(q.shape[:3])
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True, scale=scale)


def _grid_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, scale: float
) -> Sequence[Tensor]:
    if q.is_cuda:
        seed = torch.zeros((), dtype=torch.long, device=q.device)  # of dropout: there is none
        lse = lse.contiguous().view(*lse.shape, *[1] * (_lse_dims() - 3))
        return torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            grad, q, k, v, out, lse, seed, seed, None, None, None, q.shape[2], q.shape[2], 0.0, True, scale=scale
        )
    groups = k.shape[1]
    k, v = (x.repeat_interleave(q.shape[1] // groups, 1) for x in (k, v))
    dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, q, k, v, out, lse, 0.0, True, scale=scale
    )
    return dq, *(x.unflatten(1, (groups, -1)).sum(2) for x in (dk, dv))


@functools.cache
def _lse_dims() -> int:
    """Dimensions of the log-sum-exp of cuDNN's kernel in this version of torch: (N, H, L) or (N, H, L, 1)."""
    x = torch.zeros(1, 1, 128, 64, dtype=torch.bfloat16, device="cuda")
    return torch.ops.aten._scaled_dot_product_cudnn_attention(x, x, x, None, True, 0.0, True, False)[1].dim()


@functools.cache
def _cudnn_is_faster() -> bool:
    return torch.cuda.get_device_capability()[0] in (9, 10) and (torch.backends.cudnn.version() or 0) > 91_500


def head_size(config) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def _how(lengths: Sequence[int], cuda: bool, head_dim: int) -> list[int]:
    """[L, whether to attend on the padded grid, tokens]."""
    longest, tokens = max(lengths), sum(lengths)
    if not cuda:
        return [longest, 1, tokens]
    padded = -(-longest // GRID_STEP) * GRID_STEP
    cheap = len(lengths) * padded**2 <= GRID_COST * sum(length**2 for length in lengths)
    return [padded, 1, tokens] if cheap and head_dim <= 128 and _cudnn_is_faster() else [longest, 0, tokens]


def packed_attention(module, query, key, value, attention_mask, scaling, sliding_window=None, cu=None, how=None, **kw):
    """transformers' attention interface: query (1, H, T, D) -> (1, T, H, D)."""
    if cu is None or sliding_window is not None or kw.get("s_aux") is not None or kw.get("softcap") is not None:
        raise NotImplementedError("packed rows know plain causal attention only: no windows, sinks or soft caps")
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    if q.is_cuda and q.dtype == torch.float32:
        return plain_attention(q, k, v, cu, int(how[0]), scaling)[None], None
    return attention(q, k, v, cu, how, scaling)[0][None], None


AttentionInterface.register("packed", packed_attention)  # without a mask function of that name no mask is made


# --- Log-probs and entropy ----------------------------------------------------------------------------------------------


def _statistics(logits: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """(M, V), (M,) -> log p(target), entropy, log-sum-exp of the logits, each (M,) in fp32."""
    x = logits.float() / temperature
    lse = x.logsumexp(-1)
    return x.gather(1, targets[:, None])[:, 0] - lse, lse - ((x - lse[:, None]).exp() * x).sum(-1), lse


def _gradient(logits: Tensor, targets: Tensor, lse: Tensor, grad: Tensor, temperature: float) -> Tensor:
    """d log p(target) / d logits = (1[v = target] - p_v) / temperature, times `grad` (M,): (M, V) in the logits' dtype."""
    p = (logits.float() / temperature - lse[:, None]).exp()
    hit = torch.arange(logits.shape[1], device=logits.device) == targets[:, None]
    return ((hit.float() - p) * (grad / temperature)[:, None]).to(logits.dtype)


class HeadLogprobs(torch.autograd.Function):
    """(M, d), (V, d), (M,) -> log softmax(hidden head^T / temperature)[targets] and the entropy (not differentiable), both (M,) fp32.

    Logits exist for LOGITS_AT_ONCE / V tokens at a time, in the forward pass and again in the backward pass."""

    @staticmethod
    def forward(ctx, hidden, head, targets, temperature):
        ctx.temperature, ctx.size = temperature, max(1, LOGITS_AT_ONCE // len(head))
        f = _fused(_statistics, hidden)
        chunks = zip(hidden.split(ctx.size), targets.split(ctx.size), strict=True)
        logp, entropy, lse = map(torch.cat, zip(*(f(h @ head.T, t, temperature) for h, t in chunks), strict=True))
        ctx.save_for_backward(hidden, head, targets, lse)
        ctx.mark_non_differentiable(entropy)
        return logp, entropy

    @staticmethod
    def backward(ctx, grad, _):
        hidden, head, targets, lse = ctx.saved_tensors
        f = _fused(_gradient, hidden)
        d_hidden = torch.empty_like(hidden)
        d_head = torch.zeros_like(head) if ctx.needs_input_grad[1] else None
        for at in range(0, len(hidden), ctx.size):
            part = slice(at, at + ctx.size)
            d_logits = f(hidden[part] @ head.T, targets[part], lse[part], grad[part], ctx.temperature)  # (m, V)
            torch.mm(d_logits, head, out=d_hidden[part])
            if d_head is not None:
                d_head.addmm_(d_logits.T, hidden[part])
        return d_hidden, d_head, None, None


_compiled = functools.cache(torch.compile)


def _fused(function, hidden: Tensor):
    """Compiled where logits are in half precision on a GPU, so that fp32 stays in registers."""
    return _compiled(function) if hidden.is_cuda and hidden.dtype != torch.float32 else function


def score(
    model: PreTrainedModel,
    ids: Tensor,
    lengths: Sequence[int],
    wanted: Tensor,
    temperature: float = 1.0,
    pad_to: int = 0,
    scored: int | None = None,
) -> tuple[Tensor, Tensor]:
    """log p(token | those before it in its row) at `temperature` (differentiable), and the entropy of what it was drawn from (not):
    (T,), fp32, of the tokens `wanted`, 0 elsewhere and at the first token of a row.

    ids (T,) of rows of these lengths, end to end; wanted (T,) bool. pad_to: tokens that belong to no row are added up to this
    number, so that shapes do not change with the batch. scored: how many tokens that makes, first ones aside, so that nobody waits
    for the GPU to count them. Every rank of a sharded model must call it (`model.score`, see weights.shard)."""
    tokens, device = len(ids), ids.device
    assert sum(lengths) == tokens == len(wanted), f"{sum(lengths)} tokens in rows, {tokens} ids, {len(wanted)} wanted"
    counts = torch.tensor(lengths, device=device)
    ends = counts.cumsum(0)
    cu = F.pad(ends, (1, 0)).int()  # (N+1,)
    positions = torch.arange(tokens, device=device) - (ends - counts).repeat_interleave(counts, output_size=tokens)
    how = torch.tensor(_how(lengths, ids.is_cuda, head_size(model.config)))
    if ids.is_cuda:
        torch._dynamo.mark_dynamic(cu, 0)
    spare = max(0, pad_to - tokens)
    hidden = _hidden(model, F.pad(ids, (0, spare))[None], F.pad(positions, (0, spare))[None], cu, how)  # (T', d)
    skipped = ~wanted | (positions == 0)
    pick = skipped.int().argsort(stable=True)[: len(skipped) - int(skipped.sum()) if scored is None else scored]  # (M,)
    scores = HeadLogprobs.apply(hidden[pick - 1], model.get_output_embeddings().weight, ids[pick], temperature)
    return tuple(hidden.new_zeros(tokens, dtype=torch.float32).index_put((pick,), x) for x in scores)


def _hidden(model, ids, positions, cu, how):
    """(T, d): the last hidden states of the packed sequence, with the model's own attention put back afterwards."""
    config, before = model.config, model.config._attn_implementation
    config._attn_implementation = "packed"
    try:
        out = model.base_model(input_ids=ids, position_ids=positions, use_cache=False, cu=cu, how=how)
    finally:
        config._attn_implementation = before
    return out.last_hidden_state[0]


# --- What a layer keeps for its backward, compiled layers -------------------------------------------------------------------

INPUT, ATTENTION, PRODUCTS = range(3)  # a layer keeps its input; and the attention's output; and products of matrices
ATTENTION_OP, PRODUCT_OP = torch.ops.drkernel.attention.default, torch.ops.aten.mm.default


def keep_attention():
    return create_selective_checkpoint_contexts([ATTENTION_OP])


def keep_products():
    return create_selective_checkpoint_contexts([ATTENTION_OP, PRODUCT_OP])


def layers_of(model: PreTrainedModel) -> list[torch.nn.Module]:
    return [module for module in model.modules() if type(module).__name__ in (model._no_split_modules or ())]


def recompute(model: PreTrainedModel, keep: Sequence[int], compiled: bool) -> None:
    """Each layer recomputes in its backward all but what `keep` says (INPUT, ATTENTION or PRODUCTS), and is compiled where
    `compiled`; in place. The model then takes packed rows only."""
    model.config._attn_implementation = "packed"  # at the recomputation too
    for layer, kept in zip(layers_of(model), keep, strict=True):
        forward = _checkpointed(layer.forward, kept)
        layer.forward = torch.compile(forward, fullgraph=True) if compiled else forward


def _checkpointed(forward, keep: int):
    """torch.compile wants the context function as a global name: hence three functions that are nearly the same."""

    def with_input(hidden, **kwargs):
        return checkpoint(forward, hidden, use_reentrant=False, **kwargs)

    def with_attention(hidden, **kwargs):
        return checkpoint(forward, hidden, use_reentrant=False, context_fn=keep_attention, **kwargs)

    def with_products(hidden, **kwargs):
        return checkpoint(forward, hidden, use_reentrant=False, context_fn=keep_products, **kwargs)

    return (with_input, with_attention, with_products)[keep]
