"""Generation: prompts' ids -> sampled ids with their log-probabilities, by what the model and its device allow.

`engine.py` (continuous batching) for half-precision models on a GPU that it supports; Hugging Face's `generate` for all others: on the CPU,
for the tiny policy, and for architectures that the engine does not know.
"""

import torch
import transformers
from transformers import PreTrainedModel

from engine import Engine, Request, supports


def engine_for(model: PreTrainedModel, **settings) -> Engine | None:
    """An Engine (`settings`: its own) where one can run the model, else None."""
    half = model.dtype in (torch.bfloat16, torch.float16)
    return Engine(model, **settings) if model.device.type == "cuda" and half and supports(model) else None


class _Scores(transformers.LogitsProcessor):
    """Keeps the log-probability of every sampled token while generate runs, holding one step's (B, V) at a time; the
    logits pass through unchanged. Must be the first processor, so that it sees them before temperature and top-p."""

    def __init__(self, temperature: float):
        self.temperature = temperature
        self.last: torch.Tensor | None = None  # (B, V) of the previous step
        self.logp: list[torch.Tensor] = []  # (B,) each

    def __call__(self, input_ids, scores):
        self.take(input_ids[:, -1])
        self.last = (scores.float() / self.temperature).log_softmax(-1)
        return scores

    def take(self, tokens):
        if self.last is not None:
            self.logp.append(self.last.gather(1, tokens[:, None])[:, 0])


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    requests: list[Request],
    *,
    stop_ids: set[int],
    pad_id: int,
    temperature: float,
    top_p: float,
    seed: int,
) -> None:
    """One batch through Hugging Face generate: fills in new and logp of each request.

    new ends with the stop token where one was sampled. log-probs are those of the policy at `temperature` before top-p
    (what token_logprobs computes); temperature 0 is greedy, with log-probs at 1. Nothing of the model's own
    generation_config is used. Deterministic in `seed` on one device; the global generators are left as they were.
    """
    prompts = [request.ids for request in requests]
    width = max(map(len, prompts))
    device = model.device
    ids = torch.tensor([[pad_id] * (width - len(p)) + p for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    sampling = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0} if temperature > 0 else {}
    config = transformers.GenerationConfig(
        max_new_tokens=max(request.limit for request in requests),
        eos_token_id=sorted(stop_ids),
        pad_token_id=pad_id,
        **({"do_sample": False} | sampling),
    )
    scores = _Scores(temperature if temperature > 0 else 1.0)
    own, model.generation_config = model.generation_config, config  # generate fills gaps from the model's own
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            out = model.generate(
                ids,
                attention_mask=mask,
                generation_config=config,
                logits_processor=transformers.LogitsProcessorList([scores]),
            )
    finally:
        model.generation_config = own
    scores.take(out[:, -1])
    new = out[:, width:].tolist()  # (B, T)
    logp = torch.stack(scores.logp, 1).tolist()  # (B, T)
    for request, row, row_logp in zip(requests, new, logp, strict=True):
        stop = next((t for t, token in enumerate(row) if token in stop_ids), len(row))
        n = min(stop + 1, request.limit)
        request.new, request.logp = row[:n], row_logp[:n]
