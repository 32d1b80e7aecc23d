"""The policy: which models there are, loading, token log-probabilities of padded rows, saving.

Any Hugging Face causal language model whose logits are `lm_head(hidden)` works, by hub id, folder or alias. `tiny` is
our own: a Qwen3-shaped model of about 0.7 M parameters with its own tokenizer, made by `python sft.py`.

packed.py computes, weights.py shards and copies, plan.py says what fits. Shapes: B rows, T tokens.
"""

import contextlib
import dataclasses
import json
import math
import os
import shutil
from functools import partial
from pathlib import Path

import httpx
import huggingface_hub
import torch
import torch.distributed as dist
import transformers
from safetensors import SafetensorError
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.distributed.fsdp import FSDPModule
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

from packed import score
from weights import full

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
        "micro_tokens": 18_432,
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
        "steps": 20,
        "lr": 5e-4,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_prompt": 512,
        "max_response": 128,
        "context": 1_024,
        "eval_context": 1_024,
        "dtype": "fp32",
        "micro_tokens": 16_384,
        "rollout_batch": 256,
        "eval_every": 0,
        "eval_samples": 1,
        "eval_top_p": 1.0,
        "save_every": 5,
    },
}

# Real kernels take processes, contexts and compilations: fewer of them, so that the default job keeps to a quarter of an hour.
PRESETS["tiny-gpu"] = PRESETS["tiny"] | {"eval_tasks": ("toy/test:128",), "steps": 20, "lr": 8e-4}

TINY_FOLDER = Path(__file__).resolve().parent / "runs" / "tiny"  # where `python sft.py` puts the cold-started policy
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"


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


def _from_config(config, dtype: torch.dtype, seed: int = 0, device: torch.device | str = "cpu") -> PreTrainedModel:
    """Made where it will live: 15 billion random numbers take minutes on the CPU."""
    with torch.random.fork_rng(), torch.device(device):
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
        policy, tokenizer = _random_policy(model, dtype, device)
    else:
        policy, tokenizer = _pretrained(model, dtype)
    for field in ("final_logit_softcapping", "logit_scale", "logits_scaling"):
        if getattr(policy.config, field, None) not in (None, 1, 1.0):
            raise ModelError(
                f"{model} transforms its logits ({field}), which our log-probabilities do not: use another model."
            )
    if policy.get_output_embeddings().bias is not None:
        raise ModelError(f"{model} adds a bias to its logits, which our log-probabilities do not: use another model.")
    return policy.to(device).eval(), tokenizer


def load_config(model: str, random_init: bool = False) -> PreTrainedConfig:
    """What the model is, without its weights. Raises ModelError as load_policy does."""
    if random_init:
        return _random_config(model)
    source = _source(model)
    try:
        return AutoConfig.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        if Path(source).exists():
            raise ModelError(f"{source} cannot be loaded as a causal language model: {_first_line(error)}") from None
        return _from_hub(source, partial(AutoConfig.from_pretrained, source))


def _source(model: str) -> str:
    """The folder or hub id behind a name."""
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
    return source


def _pretrained(model: str, dtype: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    source = _source(model)
    try:
        tokenizer, policy = _from_files(source, dtype, local=True)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        if Path(source).exists():
            raise ModelError(f"{source} cannot be loaded as a causal language model: {_first_line(error)}") from None
        tokenizer, policy = _from_hub(source, partial(_from_files, source, dtype, local=False))
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


def _from_hub(source: str, fetch):
    """fetch(), once the hub has been asked for the model, since from_pretrained retries for most of a minute without a
    network."""
    try:
        huggingface_hub.model_info(source, timeout=10)
        return fetch()
    except huggingface_hub.errors.RepositoryNotFoundError:
        raise ModelError(f"There is no model {source} on the hub (or it is private: run `hf auth login`).") from None
    except (OSError, ValueError, KeyError, httpx.HTTPError) as error:
        raise ModelError(
            f"{source} is not in the local cache and could not be fetched ({_first_line(error)}): where there is a "
            f"network, run `hf download {source}`; or give a folder, or try --random-init."
        ) from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _random_policy(model: str, dtype: torch.dtype, device) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if model == "tiny":
        policy, tokenizer = tiny_policy([])
        return policy.to(dtype), tokenizer
    config = _random_config(model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(ALIASES.get(model, model), local_files_only=True)
    except (OSError, ValueError):
        tokenizer = train_tokenizer([], 0)
    return _from_config(config, dtype, device=device), tokenizer


def _random_config(model: str) -> PreTrainedConfig:
    source = ALIASES.get(model, model)
    name = source.lower().removesuffix("-base").rpartition("qwen3-")[2].removeprefix("hkust-nlp/drkernel-")
    if model == "tiny":
        return tiny_policy([])[0].config
    if (Path(source) / "config.json").is_file():
        return AutoConfig.from_pretrained(source)
    if name not in QWEN3:
        raise ModelError(
            f"--random-init knows tiny, folders with a config.json, drkernel-8b and -14b, and qwen-{', qwen-'.join(QWEN3)}; "
            f"not {model}."
        )
    return _qwen3_config(*QWEN3[name])


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


# ------------------------------------------------------------------------------------------------------ scoring, saving


def token_logprobs(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    temperature: float = 1.0,
    wanted: torch.Tensor | None = None,
) -> torch.Tensor:
    """Entry (b, t) = log p(ids[b, t] | ids[b, <t]) at `temperature`, fp32, (B, T); differentiable.

    ids (B, T); mask (B, T) of real tokens, padded on either side; wanted (B, T), the positions to score (default: all
    real ones). First real tokens, padding and positions not wanted are 0. Works on a sharded model: every rank must call
    it.
    """
    mask = mask.bool()
    wanted = mask if wanted is None else mask & wanted.bool()
    scorer = model.score if isinstance(model, FSDPModule) else partial(score, model)
    lengths = [length for length in mask.sum(1).tolist() if length]
    logp, _ = scorer(ids[mask], lengths, wanted[mask], temperature)
    return torch.zeros(ids.shape, dtype=torch.float32, device=ids.device).masked_scatter(mask, logp)


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
    rank, world = (dist.get_rank(), dist.get_world_size()) if isinstance(model, FSDPModule) else (0, 1)
    state = {}
    for name, tensor in model.state_dict().items():
        whole = full(tensor).detach()
        if rank == 0:
            state[name] = whole.cpu() if world > 1 else whole  # a single process has it all where it is
    if rank == 0:
        transformers.utils.logging.disable_progress_bar()
        with replacing(Path(folder)) as new:
            model.save_pretrained(new, state_dict=state, max_shard_size="4GB")
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
