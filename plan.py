"""What a training run will hold in memory, before anything is loaded: a table per GPU, what layers keep, what would make it fit.

    python plan.py --model qwen-14b --gpus 1 --offload       a table for GPUs that need not be here

A run has two phases. Sampling holds the master weights, the sampler's copy, the KV cache and, unless offloaded, the moments. The update
holds the master, gradients, moments (unless offloaded), the sampler's copy (with --offload it is dropped and written anew), the layers
that are gathered and reduced, and activations. The larger phase must fit. What is left over in the update lets layers keep more for
their backward (packed.recompute), so that less is computed twice; what is left then, gathered weights between the micro-batches.

Sizes are bytes; P parameters over W GPUs, T tokens of a micro-batch, c bytes of the dtype that is computed in. What is estimated rather
than counted: a layer's temporary activations, and the share for contexts, libraries and fragmentation.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro
from torch.distributed import ReduceOp
from transformers import AutoModelForCausalLM, PreTrainedConfig

from model import ModelError, load_config, preset_of, resolve
from packed import ATTENTION, INPUT, LOGITS_AT_ONCE, PRODUCTS, head_size, layers_of
from processes import LOCAL_WORLD, WORLD, all_reduce, say

GIB = 2**30
OTHER = 3 * GIB  # CUDA's context, libraries, fragmentation
JUDGING = 6 * GIB  # processes of the gym on the same GPU
HOST_SPARE = 16 * GIB  # of host memory, for everything that is not moments
KV_SHARE = 0.9  # of what is free while sampling
MARGIN = 2 * GIB  # that layers leave free when they may keep more: a layer's activations are an estimate


class PlanError(ModelError):
    """A run that does not fit; the text names the flags with which it would."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a model that memory depends on."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    parameters: int
    layer: int  # parameters of one layer

    def kept(self, level: int, c: int) -> int:
        """Bytes per token that a layer keeps for its backward."""
        kept = c * self.hidden  # its input
        if level >= ATTENTION:
            kept += c * self.heads * self.head_dim + 4 * self.heads  # attention's output and its log-sum-exp
        if level >= PRODUCTS:  # queries, keys, values, the residual's product, gate and up
            kept += c * ((self.heads + 2 * self.kv_heads) * self.head_dim + self.hidden + 2 * self.intermediate)
        return kept

    def temporary(self, c: int) -> int:
        """Bytes per token while a layer is computed again and differentiated; estimated."""
        mlp, attention = 5 * self.intermediate, (5 * self.heads + 6 * self.kv_heads) * self.head_dim
        return c * (mlp + attention + 6 * self.hidden)

    def kv(self, c: int) -> int:
        """Bytes per token of the KV cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim * c


def shape_of(config: PreTrainedConfig) -> Shape:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    layers = layers_of(model)
    return Shape(
        layers=len(layers),
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
        head_dim=head_size(config),
        vocabulary=config.vocab_size,
        tied=model.get_output_embeddings().weight is model.get_input_embeddings().weight,
        parameters=sum(p.numel() for p in model.parameters()),
        layer=sum(p.numel() for p in layers[0].parameters()),
    )


@dataclass(frozen=True)
class Setup:
    """The flags and the machine."""

    gpus: int  # over all machines
    local_gpus: int  # that share this host's memory
    memory: int  # of each GPU
    host: int  # memory of this host that is free
    micro_tokens: int
    context: int
    offload: bool
    compute: int = 2  # bytes of the dtype that is computed in


@dataclass(frozen=True)
class Plan:
    sampling: dict[str, int]
    update: dict[str, int]
    keep: list[int]  # what each layer keeps for its backward
    gathered: bool  # whether weights stay gathered for the whole of the update
    sequences: int  # of `context` tokens that the KV cache holds at once
    first_dtype: torch.dtype  # of the first moment
    host: int  # moments in host memory, all GPUs of this host

    @property
    def peak(self) -> int:
        """Bytes of tensors at the peak of the update, which is compared with what the allocator counted."""
        return sum(self.update.values()) - OTHER

    def table(self) -> str:
        """GiB by phase."""
        rows = list(dict.fromkeys([*self.sampling, *self.update]))
        cells = [
            (row, *(f"{p[row] / GIB:8.1f}" if row in p else " " * 8 for p in (self.sampling, self.update)))
            for row in rows
        ]
        cells.append(("in all", *(f"{sum(p.values()) / GIB:8.1f}" for p in (self.sampling, self.update))))
        kept = [self.keep.count(level) for level in (INPUT, ATTENTION, PRODUCTS)]
        notes = [f"KV cache: {self.sequences} whole contexts at once"]
        notes.append(f"layers that keep their input: {kept[0]}, and attention: {kept[1]}, and products: {kept[2]}")
        if self.gathered:
            notes.append("weights stay gathered between micro-batches")
        if self.host:
            dtype = "bf16, the second in fp32" if self.first_dtype == torch.bfloat16 else "fp32"
            notes.append(f"moments: {self.host / GIB:.1f} GiB of host memory, the first in {dtype}")
        lines = [f"{'GiB per GPU':<34}sampling  update", *(f"{name:<34}{a}{b}" for name, a, b in cells)]
        return "\n".join([*lines, *notes])


def estimate(shape: Shape, setup: Setup) -> Plan:
    """The plan, whether it fits or not: `fit` refuses."""
    w, c, tokens = setup.gpus, setup.compute, setup.micro_tokens
    master, copy = 4 * shape.parameters // w, c * shape.parameters
    moments = 8 * shape.parameters // w
    first_dtype, host = torch.float32, 0
    if setup.offload:
        if moments * setup.local_gpus + HOST_SPARE > setup.host:
            first_dtype, moments = torch.bfloat16, 6 * shape.parameters // w
        host, moments = moments * setup.local_gpus, 0

    sampling = {"master weights, fp32": master, "rollout copy": copy, "moments, fp32": moments}
    sampling |= {"gym": JUDGING, "contexts, libraries": OTHER}
    free = max(0, setup.memory - sum(sampling.values()))
    sequences = int(KV_SHARE * free) // (shape.kv(c) * setup.context)
    sampling["KV cache"] = int(KV_SHARE * free)

    update = {
        "master weights, fp32": master,
        "rollout copy": 0 if setup.offload else copy,
        "moments, fp32": moments,
        "gradients, fp32": master,
        "contexts, libraries": OTHER,
        "a layer and the head at work": at_work(shape, w, c, tokens),
    }
    room = setup.memory - MARGIN - sum(update.values())
    keep = levels(shape, room // max(1, tokens), c)
    update["kept activations"] = sum(shape.kept(level, c) for level in keep) * tokens
    head = shape.vocabulary * shape.hidden
    at_end = head * ((3 if shape.tied else 4) * c + 8 + 4 // w)  # embedding and head are reduced last
    more = max(0, at_end - update["a layer and the head at work"] - update["kept activations"])
    update["a layer and the head at work"] += more
    if gathered := keep == [PRODUCTS] * shape.layers and room - more - update["kept activations"] >= copy:
        update["gathered weights"] = copy
    return Plan(sampling, update, keep, gathered, sequences, first_dtype, host)


def at_work(shape: Shape, w: int, c: int, tokens: int) -> int:
    """Bytes of what comes and goes: the most of the backward's begin, with logits, and of its first layer. The head's weights and their
    gradient are there in both."""
    logits = (
        3 * c * LOGITS_AT_ONCE + 5 * c * shape.hidden * tokens
    )  # a chunk, its gradient; hidden states before the head
    # weights gathered, for one layer and the next; their gradient, reduced in fp32. Among several GPUs the buffers of both, and the layer's before
    units = shape.layer * (2 * c + 4 if w == 1 else 4 * c + c + 8 + 4 // w)
    layer = units + (shape.temporary(c) + 2 * c * shape.hidden) * tokens
    return shape.vocabulary * shape.hidden * 2 * c + max(logits, layer)


def levels(shape: Shape, room: int, c: int) -> list[int]:
    """What each layer keeps, of `room` bytes per token: all their input, then as many as fit attention, then products."""
    costs = [shape.kept(level, c) for level in (INPUT, ATTENTION, PRODUCTS)]
    room -= shape.layers * costs[INPUT]
    attention = min(shape.layers, max(0, room) // (costs[ATTENTION] - costs[INPUT]))
    room -= attention * (costs[ATTENTION] - costs[INPUT])
    products = min(attention, max(0, room) // (costs[PRODUCTS] - costs[ATTENTION]))
    return [PRODUCTS] * products + [ATTENTION] * (attention - products) + [INPUT] * (shape.layers - attention)


def why_not(plan: Plan, setup: Setup) -> str | None:
    """What does not fit, in words; None where all does."""
    update, sampling = sum(plan.update.values()), sum(plan.sampling.values())
    if update > setup.memory:
        return f"the update needs {update / GIB:.0f} GiB of {setup.memory / GIB:.0f} per GPU"
    if plan.sequences < 1 or sampling > setup.memory:
        return f"sampling has no room for the KV cache of one rollout of {setup.context} tokens"
    if plan.host and plan.host + HOST_SPARE > setup.host:
        return (
            f"the moments need {plan.host / GIB:.0f} GiB of host memory, of {max(0, setup.host - HOST_SPARE) / GIB:.0f}"
        )
    return None


def fit(shape: Shape, setup: Setup) -> Plan:
    """The plan of a run that fits. Raises PlanError, which names the flags with which it would."""
    if setup.micro_tokens < setup.context:
        raise PlanError(
            f"--micro-tokens {setup.micro_tokens} does not hold the longest row: at least --context ({setup.context})."
        )
    plan = estimate(shape, setup)
    reason = why_not(plan, setup)
    if reason is None:
        return plan
    ways = {
        "--offload": replace(setup, offload=True),
        f"--micro-tokens {setup.context}": replace(setup, micro_tokens=setup.context),
        f"--offload --micro-tokens {setup.context}": replace(setup, offload=True, micro_tokens=setup.context),
    }
    half = setup.context // 2
    ways[f"--offload --context {half} --micro-tokens {half}"] = replace(
        setup, offload=True, context=half, micro_tokens=half
    )
    for n in (2, 4, 8, 16, 32):
        more = {"gpus": n * setup.gpus, "local_gpus": min(8, n * setup.local_gpus)}
        ways[f"{n * setup.gpus} GPUs"] = replace(setup, **more)
        ways[f"{n * setup.gpus} GPUs and --offload"] = replace(setup, **more, offload=True)
    fitting = [way for way, other in ways.items() if other != setup and why_not(estimate(shape, other), other) is None]
    flags, gpus = ([way for way in fitting if ("GPUs" in way) == many][:1] for many in (False, True))
    advice = f"It would fit with {' or with '.join(flags + gpus)}." if fitting else "Choose a smaller model."
    raise PlanError(f"It does not fit: {reason}. {advice}")


def of_run(args):
    """(arguments, plan) of train.py's run on GPUs: the plan is printed, and --offload turned on where the run does not fit without;
    no plan on the CPU and for the tiny policy. Raises PlanError. Every process must call it."""
    if args.device == "cpu" or preset_of(args.model) == "tiny":
        return args, None
    memory, host = all_reduce([torch.cuda.mem_get_info()[0], host_memory()], ReduceOp.MIN)
    compute = {"bf16": 2, "fp32": 4}[args.dtype]
    shape = shape_of(load_config(args.model, args.random_init))
    setup = Setup(WORLD, LOCAL_WORLD, int(memory), int(host), args.micro_tokens, args.context, args.offload, compute)
    offloaded = replace(setup, offload=True)
    if why_not(estimate(shape, setup), setup) and not why_not(estimate(shape, offloaded), offloaded):
        say("This run does not fit without --offload, which is therefore on.")
        setup = offloaded
    say(estimate(shape, setup).table())
    return replace(args, offload=setup.offload), fit(shape, setup)


def host_memory() -> int:
    """Bytes of host memory that are free to this process, of the machine and of its control group."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    limit, used = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        free = min(free, int(limit.read_text()) - int(used.read_text()))
    return free


def check_peak(plan: Plan) -> str:
    """After the first update: what the allocator counted beside the plan, in a sentence."""
    peak = torch.cuda.max_memory_allocated()
    return f"peak memory {peak / GIB:.1f} GiB per GPU, planned {plan.peak / GIB:.1f} ({peak / plan.peak - 1:+.0%})"


@dataclass
class Args:
    """A run's memory on GPUs that need not be here."""

    model: str = "qwen-14b"
    """alias, hub id that is cached, or folder; weights are not needed"""
    gpus: int = 1
    """GPUs of one host"""
    memory: float = 139.0
    """GiB of each GPU"""
    host: float | None = None
    """GiB of host memory; default: 128 per GPU"""
    micro_tokens: int | None = None
    """tokens per forward and backward"""
    context: int | None = None
    """tokens of a whole rollout"""
    offload: bool = False
    """moments in host memory, no rollout copy during the update"""


def main() -> None:
    args = tyro.cli(Args, description=__doc__)
    args = resolve(args, preset_of(args.model))
    try:
        config = load_config(args.model, random_init=True)
    except ModelError:
        config = load_config(args.model)
    host = int((args.host or 128 * args.gpus) * GIB)
    setup = Setup(args.gpus, args.gpus, int(args.memory * GIB), host, args.micro_tokens, args.context, args.offload)
    shape = shape_of(config)
    print(estimate(shape, setup).table())
    try:
        fit(shape, setup)
    except PlanError as error:
        sys.exit(f"plan.py: {error}")


if __name__ == "__main__":
    main()
