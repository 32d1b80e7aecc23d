"""The policy: which models there are, loading, sharding, token log-probabilities, saving.

Any Hugging Face causal language model whose logits are `lm_head(hidden)` works, by hub id, folder or alias. `tiny` is
our own: a Qwen3-shaped model of about 0.7 M parameters with its own tokenizer, made by `python sft.py`.

Shapes: B rows, T tokens, d hidden size, V vocabulary.
Not covered here: flash attention, activation offload, the memory plan.
"""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import types
from pathlib import Path

import httpx
import huggingface_hub
import torch
import torch.distributed as dist
import torch.nn.functional as F
import transformers
from safetensors import SafetensorError
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

SIZES = ("0.6b", "1.7b", "4b", "8b", "14b")
ALIASES = {f"qwen-{s}": f"Qwen/Qwen3-{s.upper()}" for s in SIZES}
ALIASES |= {f"qwen-{s}-base": f"Qwen/Qwen3-{s.upper()}-Base" for s in SIZES}
ALIASES |= {f"drkernel-{s}": f"hkust-nlp/drkernel-{s}" for s in ("8b", "14b")}

# (hidden, intermediate, layers, heads, tied embeddings); 8 key-value heads of 128 throughout. For --random-init only.
QWEN3 = {
    "0.6b": (1024, 3072, 28, 16, True),
    "1.7b": (2048, 6144, 28, 16, True),
    "4b": (2560, 9728, 36, 32, True),
    "8b": (4096, 12288, 36, 32, False),
    "14b": (5120, 17408, 40, 40, False),
}

# The default of every field that a script leaves at None.
PRESETS: dict[str, dict] = {
    "paper": {
        "style": "full",
        "tasks": ("level1", "level2", "level3"),
        "eval_tasks": ("level2",),
        "prompts": 16,
        "samples": 16,
        "turns": 3,
        "steps": 300,
        "lr": 1e-6,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_prompt": 10_240,
        "max_response": 8_192,
        "context": 18_432,
        "eval_context": 32_768,
        "dtype": "bf16",
        "micro_batch": 1,
        "rollout_batch": 64,
        "eval_every": 10,
        "eval_samples": 8,
        "eval_top_p": 0.95,
        "save_every": 10,
    },
    "tiny": {
        "style": "brief",
        "tasks": ("toy/train:4096",),
        "eval_tasks": ("toy/test:256",),
        "prompts": 8,
        "samples": 8,
        "turns": 3,
        "steps": 50,
        "lr": 5e-4,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_prompt": 512,
        "max_response": 128,
        "context": 1_024,
        "eval_context": 1_024,
        "dtype": "fp32",
        "micro_batch": 64,
        "rollout_batch": 256,
        "eval_every": 0,
        "eval_samples": 1,
        "eval_top_p": 1.0,
        "save_every": 5,
    },
}

# Real kernels take processes, contexts and compilations: fewer of them, so that the default job keeps to a quarter of an hour.
PRESETS["tiny-gpu"] = PRESETS["tiny"] | {"steps": 20, "eval_tasks": ("toy/test:96",)}

TINY_FOLDER = Path(__file__).resolve().parent / "runs" / "tiny"  # where `python sft.py` puts the cold-started policy
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
LOGITS_AT_ONCE = 2**27  # logits held at a time while scoring (0.5 GB in fp32)


class ModelError(ValueError):
    """A model that cannot be had; the text is the sentence shown to the user."""


def preset_of(model: str) -> str:
    """ "tiny" for the alias and for folders saved from the tiny policy, "paper" for everything else."""
    config = Path(model) / "config.json"
    if config.is_file():
        return json.loads(config.read_text()).get("drkernel_preset", "paper")
    return "tiny" if model == "tiny" else "paper"


def resolve(args, preset: str):
    """`args` (a dataclass) with each None field that PRESETS[preset] names filled in."""
    unset = [f.name for f in dataclasses.fields(args) if getattr(args, f.name) is None]
    return dataclasses.replace(args, **{name: PRESETS[preset][name] for name in unset if name in PRESETS[preset]})


# ---------------------------------------------------------------------------------------------------------------- tiny

# One pre-token is a whole line with the newline and the indent before it; numbers stand apart. A line of a kernel that
# repeats a line of the task is then the same few tokens, which is what a small model can learn to copy.
NUMBER = r"(?<![A-Za-z_0-9.])\d{2,}(?![A-Za-z_0-9.])"
LINES = rf"{NUMBER}|\n(?:(?!{NUMBER})[^\n])*|(?:(?!{NUMBER})[^\n])+"


def train_tokenizer(texts: list[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE over line-long pre-tokens: every text can be spelled (256 byte tokens), decoding is exact. With no
    texts it is a plain byte tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    lines = pre_tokenizers.Split(Regex(LINES), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([lines, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    specials = [AddedToken(s, special=True, normalized=False) for s in (PAD, START, END)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocab_size, len(alphabet) + len(specials)),
        special_tokens=specials,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )


def tiny_policy(
    texts: list[str],
    vocab_size: int = 1024,
    hidden: int = 128,
    layers: int = 2,
    heads: int = 4,
    rope_theta: float = 1_000.0,
    seed: int = 0,
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The untrained tiny policy (fp32, CPU) and a tokenizer trained on `texts`; about 0.7 M parameters. Deterministic
    in its arguments; the global generator is left as it was."""
    tokenizer = train_tokenizer(texts, vocab_size)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": rope_theta},
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        drkernel_preset="tiny",
    )
    return _from_config(config, torch.float32, seed), tokenizer


def _from_config(config, dtype: torch.dtype, seed: int = 0) -> PreTrainedModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")


# ------------------------------------------------------------------------------------------------------------- loading


def load_policy(
    model: str, device: torch.device | str, dtype: torch.dtype | None = None, random_init: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model in eval mode and its tokenizer.

    model        "tiny", an alias of ALIASES, a hub id, or a folder.
    dtype        None: bf16 on a GPU, fp32 on the CPU and for the tiny policy.
    random_init  Random weights in the model's shape, without any download; the tokenizer is the model's own where it is
                 cached already, else a byte tokenizer.
    Raises ModelError with a sentence that says what to do.
    """
    device = torch.device(device)
    if dtype is None:
        dtype = torch.bfloat16 if device.type == "cuda" and preset_of(model) == "paper" else torch.float32
    if random_init:
        policy, tokenizer = _random_policy(model, dtype)
    else:
        policy, tokenizer = _pretrained(model, dtype)
    for field in ("final_logit_softcapping", "logit_scale", "logits_scaling"):
        if getattr(policy.config, field, None) not in (None, 1, 1.0):
            raise ModelError(
                f"{model} transforms its logits ({field}), which our log-probabilities do not: use another model."
            )
    return policy.to(device).eval(), tokenizer


def _pretrained(model: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    source = str(TINY_FOLDER) if model == "tiny" else ALIASES.get(model, model)
    if model == "tiny" and not (TINY_FOLDER / "config.json").is_file():
        raise ModelError("The tiny policy has not been made yet: run `python sft.py` (a few minutes on one core).")
    folder = Path(source)
    if folder.exists() and not (folder / "config.json").is_file():
        raise ModelError(
            f"{source} holds no config.json: give the folder that save_pretrained (or our checkpoints) wrote."
        )
    if not folder.exists() and (source.count("/") != 1 or source.startswith(("/", ".", "~"))):
        raise ModelError(
            f"Unknown model {model!r}: it is no folder here, no hub id (owner/name), "
            f"and none of tiny, {', '.join(ALIASES)}."
        )
    try:
        tokenizer, policy = _from_files(source, dtype, local=True)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        if folder.exists():
            raise ModelError(f"{source} cannot be loaded as a causal language model: {_first_line(error)}") from None
        tokenizer, policy = _from_hub(source, dtype)
    if tokenizer.eos_token_id is None:
        raise ModelError(f"The tokenizer of {source} has no end-of-sequence token: use a model that has one.")
    return policy, tokenizer


def _from_files(source: str, dtype: torch.dtype, local: bool):
    transformers.utils.logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
    policy = AutoModelForCausalLM.from_pretrained(
        source, dtype=dtype, attn_implementation="sdpa", local_files_only=local
    )
    return tokenizer, policy


def _from_hub(source: str, dtype: torch.dtype):
    """As _from_files, fetched; asks the hub once first, since from_pretrained retries for most of a minute without a
    network."""
    try:
        huggingface_hub.model_info(source, timeout=10)
        return _from_files(source, dtype, local=False)
    except huggingface_hub.errors.RepositoryNotFoundError:
        raise ModelError(f"There is no model {source} on the hub (or it is private: run `hf auth login`).") from None
    except (OSError, ValueError, KeyError, httpx.HTTPError) as error:
        raise ModelError(
            f"{source} is not in the local cache and could not be fetched ({_first_line(error)}): where there is a "
            f"network, run `hf download {source}`; or give a folder, or try --random-init."
        ) from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _random_policy(model: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if model == "tiny":
        policy, tokenizer = tiny_policy([])
        return policy.to(dtype), tokenizer
    source = ALIASES.get(model, model)
    name = source.lower().removesuffix("-base").rpartition("qwen3-")[2]
    if (Path(source) / "config.json").is_file():
        config = AutoConfig.from_pretrained(source)
    elif name in QWEN3:
        config = _qwen3_config(*QWEN3[name])
    else:
        raise ModelError(
            f"--random-init knows tiny, folders with a config.json, and qwen-{', qwen-'.join(QWEN3)}; not {model}."
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError):
        tokenizer = train_tokenizer([], 0)
    return _from_config(config, dtype), tokenizer


def _qwen3_config(hidden: int, intermediate: int, layers: int, heads: int, tied: bool) -> Qwen3Config:
    return Qwen3Config(
        vocab_size=151_936,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40_960,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=tied,
    )


# ------------------------------------------------------------------------------------------------------------- scoring


def token_logprobs(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    temperature: float = 1.0,
    wanted: torch.Tensor | None = None,
) -> torch.Tensor:
    """Entry (b, t) = log p(ids[b, t] | ids[b, <t]) at `temperature`, fp32, (B, T); differentiable.

    ids (B, T); mask (B, T) of real tokens, padded on either side; wanted (B, T), the positions to score (default: all
    real ones). First real tokens, padding and positions not wanted are 0. The logits exist for LOGITS_AT_ONCE / V
    tokens at a time and are recomputed in the backward pass. Works on a sharded model: every rank must call it.
    """
    mask = mask.bool()
    wanted = mask if wanted is None else mask & wanted.bool()
    if isinstance(model, FSDPModule):
        return model.score_tokens(ids, mask, wanted, temperature)
    return _score_tokens(model, ids, mask, wanted, temperature)


def _score_tokens(model, ids, mask, wanted, temperature):
    padded_right = bool(
        (mask[:, :-1] | ~mask[:, 1:]).all()
    )  # then causality alone keeps real tokens from seeing padding
    hidden = model.base_model(
        input_ids=ids,
        attention_mask=None if padded_right else mask.long(),
        position_ids=(mask.long().cumsum(1) - 1).clamp_min(0),
        use_cache=False,
    ).last_hidden_state  # (B, T, d)
    pick = wanted[:, 1:] & mask[:, :-1]  # (B, T-1): position t-1 predicts token t
    hidden, targets = hidden[:, :-1][pick], ids[:, 1:][pick]  # (N, d), (N,)
    head = model.get_output_embeddings()
    size = max(1, LOGITS_AT_ONCE // model.config.vocab_size)
    if len(targets) <= size:
        scores = _head_logprobs(head, hidden, targets, temperature)
    else:
        chunks = zip(hidden.split(size), targets.split(size), strict=True)
        scores = torch.cat(
            [checkpoint(_head_logprobs, head, h, t, temperature, use_reentrant=False) for h, t in chunks]
        )
    out = torch.zeros(pick.shape, dtype=torch.float32, device=ids.device).masked_scatter(pick, scores)
    return F.pad(out, (1, 0))


def _head_logprobs(head, hidden, targets, temperature):
    """(N, d), (N,) -> (N,): log softmax(head(hidden) / temperature)[targets]."""
    logits = head(hidden).float() / temperature  # (N, V)
    return logits.gather(1, targets[:, None])[:, 0] - logits.logsumexp(1)


# ------------------------------------------------------------------------------------- sharding, copies, saving


def shard(model: PreTrainedModel, compute_dtype: torch.dtype, checkpointing: bool = False) -> PreTrainedModel:
    """FSDP2 over the default process group, in place: each layer, then the root. Weights, gradients and optimizer state
    keep the model's dtype; forward and backward run in `compute_dtype`; gradients are reduced in fp32 and averaged over
    the ranks."""
    mesh = init_device_mesh(model.device.type, (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=compute_dtype, reduce_dtype=torch.float32)
    layer_classes = set(model._no_split_modules or ())
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.train()  # transformers checkpoints in training mode only
    for module in list(model.modules()):
        if type(module).__name__ in layer_classes:
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.score_tokens = types.MethodType(_score_tokens, model)
    register_fsdp_forward_method(model, "score_tokens")  # the root's gather and pre-backward hooks run around it
    return model


def _full(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def refresh(sampler: PreTrainedModel, policy: PreTrainedModel) -> None:
    """Copies the weights of `policy` (sharded or not) into the plain model `sampler`, in place, one tensor at a time.
    Every rank must call it. Tied weights are one parameter on both sides."""
    target = dict(sampler.named_parameters())
    source = dict(policy.named_parameters())
    assert target.keys() == source.keys(), f"other parameters: {sorted(target.keys() ^ source.keys())[:4]}"
    for name, parameter in source.items():
        target[name].copy_(_full(parameter))


@torch.no_grad()
def perturb(model, sigma: float, seed: int) -> None:
    """θ <- θ (1 + σ ε), ε ~ N(0, 1): a sampler that is deliberately not quite the policy; the same on all processes."""
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.mul_(1 + sigma * torch.randn(p.shape, generator=generator).to(p))


@torch.no_grad()
def save_policy(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: str | Path) -> None:
    """Writes a folder that from_pretrained loads; the folder appears whole or not at all (and replaces one that is
    there). Every rank must call it; rank 0 writes. Raises OSError where the disk does not let it."""
    rank = dist.get_rank() if isinstance(model, FSDPModule) else 0
    state = {}
    for name, tensor in model.state_dict().items():
        full = _full(tensor)
        if rank == 0:
            state[name] = full.detach().cpu()
    if rank == 0:
        transformers.utils.logging.disable_progress_bar()
        with replacing(Path(folder)) as new:
            model.save_pretrained(new, state_dict=state)
            tokenizer.save_pretrained(new)
    if isinstance(model, FSDPModule):
        dist.barrier()


@contextlib.contextmanager
def replacing(folder: Path):
    """`with replacing(folder) as new`: write into `new`; on success it takes the folder's place, else it vanishes."""
    folder = folder.absolute()
    new, old = (folder.with_name(f".{folder.name}.{kind}-{os.getpid()}") for kind in ("new", "old"))
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def parameter_count(model: PreTrainedModel) -> int:
    """Parameters of the whole model, sharded or not; tied ones once."""
    return sum(math.prod(p.shape) for p in model.parameters())
