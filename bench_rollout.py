"""Generation beside what the hardware allows: `python bench.py rollout`.

Floors: a decode step cannot take less than its bytes (weights, keys and values) over the measured copy bandwidth, a prefill not less than
its FLOPs over 60 % of `--peak`. Random weights: nearly every answer runs to its limit.
"""

import itertools
import time
from dataclasses import dataclass
from typing import Literal

import torch
from transformers import AttentionInterface, GenerationConfig

import attention
import rewards
from engine import PREFILL, WINDOW, Engine, Request, supports
from kernelbench import Task
from kernelbench.judge import Verdict
from mfu import between, kernels, on_gpu, trace_of
from model import load_policy, token_logprobs
from packed import head_size
from rollout import rollout


@dataclass
class Rollout:
    """Decode, prefill, a three-turn batch, log-probs against the trainer's, idle gaps. The figures aimed at:
    --model qwen-0.6b --sequences 64 --prompt 512 --new 256, and --model qwen-14b --sequences 128 --prompt 1024 --new 512."""

    model: str = "qwen-0.6b"
    """alias, hub id or folder"""
    weights: bool = False
    """load the weights; default: random ones in the model's shape"""
    sequences: int = 64
    """generated at once"""
    prompt: int = 512
    """tokens"""
    new: int = 256
    """tokens of each answer"""
    samples: int = 16
    """per prompt, in the three-turn batch"""
    turns: int = 3
    """of that batch; 0 for none"""
    engine: Literal["ours", "hf"] = "ours"
    """hf: Hugging Face's generate_batch with our attention; its decode rate alone"""
    compile: bool = True
    """the layers (hf: the decode step)"""
    peak: float = 790.0
    """TFLOP/s of bf16 matrix products"""
    check: int = 8000
    """tokens whose log-probs are compared"""
    device: str = "cuda"
    """cpu: for trying the command; nothing it prints is a figure"""

    def run(self):
        dtype = None if self.device == "cuda" else torch.float32
        self.policy, self.tokenizer = load_policy(self.model, self.device, dtype, random_init=not self.weights)
        if not supports(self.policy):
            raise SystemExit(f"bench.py: the engine does not know {self.model}'s architecture")
        self.bandwidth = copy_bandwidth(self.device)
        print(f"{self.model} on {device_name(self.device)}; copy bandwidth {self.bandwidth / 1e12:.2f} TB/s")
        self.seconds("first use (compilation)", self.batch, Request(self.ids(0), min(self.new, 2 * WINDOW)))
        if self.engine == "hf":
            return self.hugging_face()
        requests = self.decode()
        if self.device == "cuda":
            self.kernel()
        self.prefill()
        self.mismatch(requests)
        self.gaps()
        if self.turns:
            self.three_turns()

    def ids(self, seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(
            3, min(self.policy.config.vocab_size, 30_000), (self.prompt,), generator=generator
        ).tolist()

    def open(self, **changes) -> Engine:
        settings = {"slots": self.sequences, "context": self.prompt + self.new, "stop_ids": set(), "share": 0.85}
        settings["compiled"] = self.compile and self.device == "cuda"
        return Engine(self.policy, **(settings | changes))

    def batch(self, *requests: Request) -> None:
        with self.open() as engine:
            engine.generate(list(requests), 0)

    def seconds(self, what: str, function, *args) -> float:
        wait(self.device)
        begin = time.perf_counter()
        function(*args)
        wait(self.device)
        seconds = time.perf_counter() - begin
        print(f"{what}: {seconds:.2f} s")
        return seconds

    def decode_floor(self, sequences: int, first: float, last: float) -> float:
        """Seconds of a step with that many sequences, of lengths that grow from first to last."""
        weights = sum(p.numel() * p.itemsize for p in self.policy.base_model.layers.parameters())
        weights += self.policy.get_output_embeddings().weight.nbytes
        return (weights + sequences * (first + last) / 2 * key_value_bytes(self.policy)) / self.bandwidth

    def prefill_flops(self, lengths: list[int]) -> float:
        config = self.policy.config
        matrices = sum(p.numel() for p in self.policy.base_model.layers.parameters() if p.dim() == 2)
        heads = config.num_attention_heads * head_size(config) * config.num_hidden_layers
        return sum(2 * matrices * n + 2 * heads * n * n for n in lengths)

    def decode(self) -> list[Request]:
        """Whole windows in the steady state, all slots busy, and the call as a whole."""
        requests = [Request(self.ids(i), self.new) for i in range(self.sequences)]
        with self.open() as engine:
            engine.generator.manual_seed(0)
            for request in requests:
                engine.submit(request)
            engine._admit()
            engine._grow()
            engine._settle(engine._launch())  # the graph is there
            wait(self.device)
            begin, before = time.perf_counter(), engine.counts["sampled"]
            for _ in engine.stream():
                pass
            wait(self.device)
            seconds, sampled = time.perf_counter() - begin, engine.counts["sampled"] - before
        step = seconds / (sampled / self.sequences)
        floor = self.decode_floor(self.sequences, self.prompt + WINDOW, self.prompt + self.new)
        print(
            f"decode, {self.sequences} x ({self.prompt} + {self.new}): {sampled / seconds:,.0f} tok/s, {1e3 * step:.2f} ms a step; "
            f"the floor is {1e3 * floor:.2f} ms ({self.sequences / floor:,.0f} tok/s): {floor / step:.0%} of it"
        )
        again = [Request(self.ids(i), self.new) for i in range(self.sequences)]
        seconds = self.seconds("the whole call, prefill and capture included", self.batch, *again)
        print(f"  {self.sequences * self.new / seconds:,.0f} tok/s")
        return requests

    def kernel(self) -> None:
        """The decode kernel alone over the caches of all layers, at full length: what of the copy bandwidth it gets, by how it is cut."""
        with self.open() as engine:
            pages = [engine._take(engine.per_sequence) for _ in range(self.sequences)]
            lengths = engine._to_device([self.prompt + self.new] * self.sequences)
            config, table = self.policy.config, engine._to_device(pages)
            shape = self.sequences, config.num_attention_heads, head_size(config)
            q = torch.randn(shape, dtype=self.policy.dtype, device=self.device)
            size = self.sequences * (self.prompt + self.new) * key_value_bytes(self.policy)
            for programs, stages in itertools.product((512, 1024, 2048, 4096), (3, 5)):

                def layers(programs=programs, stages=stages):
                    for k, v in zip(engine.k, engine.v, strict=True):
                        attention.paged_attention(q, k, v, table, lengths, 0.1, programs, stages)

                layers()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    layers()
                rate = size / median([timed(self.device, graph.replay) for _ in range(5)])
                print(
                    f"decode kernel, {programs} programs, {stages} stages: {rate / 1e12:.2f} TB/s, {rate / self.bandwidth:.0%}"
                )

    def prefill(self) -> None:
        """Prompts of this length, as many as are prefilled at a time."""
        count = max(1, PREFILL // self.prompt)
        with self.open(slots=count) as engine:
            work = [(self.ids(i), 0, engine._take(-(-self.prompt // engine.page))) for i in range(count)]
            engine._prefill(work)
            seconds = median([timed(self.device, lambda: engine._prefill(work)) for _ in range(5)])
        flops = self.prefill_flops([self.prompt] * count)
        rate = flops / seconds / 1e12
        tokens = count * self.prompt
        print(
            f"prefill, {count} x {self.prompt}: {tokens / seconds:,.0f} tok/s, {rate:.0f} TFLOP/s: {rate / self.peak:.0%} of peak"
        )

    def mismatch(self, requests: list[Request]) -> None:
        """d = log π of a plain forward (SDPA, not compiled) - log π of the sampler, over the sampled tokens."""
        mine = requests[: max(1, self.check // self.new)]
        d, kept = [], []
        for r in mine:
            row = torch.tensor([r.ids + r.new], device=self.device)
            with torch.no_grad():
                old = token_logprobs(self.policy, row, torch.ones_like(row))[0, len(r.ids) :].cpu()
            new = torch.tensor(r.logp)
            d.append(old - new)
            kept.append(bool(rewards.keep_by_mismatch(old[None], new[None], torch.ones(1, len(new)))[0]))
        d = torch.cat(d).double()
        print(
            f"log-probs over {len(d)} tokens: mean |difference| {d.abs().mean():.2e}, geometric ratio {d.mean().exp():.6f}, "
            f"largest {d.abs().max():.2e}; MRS keeps {sum(kept)}/{len(kept)} rollouts of {self.new} tokens"
        )

    def gaps(self) -> None:
        """Where the profiler sees the GPU idle, from a prefill to the end of some windows; and what a window's steps consist of."""
        if self.device != "cuda":
            return
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]

        def requests(windows: int) -> list[Request]:
            return [Request(self.ids(i), min(self.new, windows * WINDOW)) for i in range(self.sequences)]

        with self.open() as engine:
            engine.generate(requests(1), 0)  # captures
            with torch.profiler.profile(activities=kinds) as profile:
                engine.generate(requests(6), 0)
                wait(self.device)
            print_gaps(on_gpu(trace_of(profile)))
            for request in requests(2):
                engine.submit(request)
            engine._admit()
            engine._grow()
            wait(self.device)
            with torch.profiler.profile(activities=kinds) as profile:
                engine._settle(engine._launch())
                wait(self.device)
        print("\n".join(kernels(on_gpu(trace_of(profile)), WINDOW, "decode step")))

    def three_turns(self) -> None:
        """Prompts x samples through rollout(), with a gym that answers at once."""
        prompts = max(1, self.sequences // self.samples)
        tasks = [Task(f"task {i}", self.tokenizer.decode(self.ids(i))) for i in range(prompts)]
        context = (self.prompt * 4 + self.new + 2000) * self.turns
        how = {"samples": self.samples, "turns": self.turns, "style": "brief", "max_prompt": 10**9, "context": context}

        def go():
            return rollout(self.policy, self.tokenizer, tasks, AtOnce(), **how, max_response=self.new, seed=0)

        groups = go()  # graphs' compilation of other shapes
        wait(self.device)
        begin = time.perf_counter()
        groups = go()
        wait(self.device)
        seconds, floor, live = time.perf_counter() - begin, 0.0, [t for group in groups for t in group]
        for k in range(self.turns):
            turns = [t.turns[k] for t in live]
            fresh = [len(group[0].turns[0].prompt_ids) for group in groups] if k == 0 else []
            for t in live if k else []:
                fresh.append(len(t.turns[k].prompt_ids) - len(t.turns[k - 1].prompt_ids) - len(t.turns[k - 1].ids))
            floor += self.prefill_flops(fresh) / (0.6e12 * self.peak)
            mean, longest = sum(len(t.prompt_ids) for t in turns) / len(turns), max(len(t.ids) for t in turns)
            floor += longest * self.decode_floor(len(turns), mean, mean + longest)
        tokens = sum(len(turn.ids) for t in live for turn in t.turns)
        print(
            f"{self.turns} turns, {prompts} prompts x {self.samples}: {tokens} tokens in {seconds:.2f} s; "
            f"the floors of prefill and decode together {floor:.2f} s: {floor / seconds:.0%}"
        )

    def hugging_face(self) -> None:
        """generate_batch, its manager kept, with our kernels in the place of flash-attn's."""
        from transformers.generation.configuration_utils import CompileConfig, ContinuousBatchingConfig

        use_our_attention(self.policy)
        blocks = -(-(self.prompt + self.new) // 256) + 1
        config = ContinuousBatchingConfig(
            num_blocks=self.sequences * (blocks + 1),
            max_batch_tokens=max(self.sequences, 8192),
            max_requests_per_batch=self.sequences,
            max_blocks_per_request=blocks,
            return_logprobs=True,
            use_async_batching=False,
            decode_compile_config=CompileConfig(mode="default", fullgraph=False, dynamic=False)
            if self.compile
            else None,
        )
        inputs = [self.ids(i) for i in range(self.sequences)]
        took = []
        for new in (self.new, self.new // 2, self.new):  # the first one warms up
            how = GenerationConfig(max_new_tokens=new, do_sample=True, top_k=0, top_p=1.0, eos_token_id=-1)
            settings = {"continuous_batching_config": config, "persistent_manager": True, "warmup": False}
            wait(self.device)
            begin = time.perf_counter()
            self.policy.generate_batch(inputs, how, max_new_tokens=new, **settings)
            wait(self.device)
            took.append(time.perf_counter() - begin)
        step = (took[2] - took[1]) / (self.new - self.new // 2)
        print(
            f"generate_batch: first call {took[0]:.2f} s, then {took[2]:.2f} s; {1e3 * step:.2f} ms a step, "
            f"{self.sequences / step:,.0f} tok/s"
        )


class AtOnce:
    """A gym that finds no code in any answer."""

    def evaluate(self, jobs, progress: bool = False):
        return [Verdict(status="no_code") for _ in jobs]


def use_our_attention(model) -> None:
    """Our kernels as the pair (varlen, with_kvcache) that transformers' continuous batching takes from flash-attn. It takes its fast path
    for decoding only where the name looks like one of flash-attn's."""
    from transformers import modeling_flash_attention_utils as flash
    from transformers.integrations.flash_paged import paged_attention_forward

    def varlen(q, k, v, cu_q, cu_k, longest_q, longest_k, softmax_scale, causal, window_size):
        return attention.prefill(q, k, v, cu_q, cu_k, longest_q, longest_k, softmax_scale)

    name = "paged|drkernel_flash_2"
    AttentionInterface.register(name, paged_attention_forward)
    flash._loaded_implementation, flash._flash_varlen_fn, flash._flash_with_kvcache_fn = name, varlen, with_kvcache
    model.config._attn_implementation = name


def with_kvcache(q, k_cache, v_cache, k, v, cache_seqlens, softmax_scale, causal, window_size, block_table):
    """q, k, v (B, 1, heads, D) of new tokens at cache_seqlens; -1 and a table of -1 pad the batch: they write to the last page."""
    pages, page = k_cache.shape[:2]
    at = cache_seqlens.clamp(min=0)
    own = block_table.gather(1, (at // page).long()[:, None])[:, 0]
    slots = torch.where(cache_seqlens >= 0, own, pages - 1) * page + at % page
    attention.write(k[:, 0], v[:, 0], k_cache, v_cache, slots)
    return attention.decode(q[:, 0], k_cache, v_cache, block_table, cache_seqlens + 1, softmax_scale)[:, None]


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(device: str, function) -> float:
    wait(device)
    begin = time.perf_counter()
    function()
    wait(device)
    return time.perf_counter() - begin


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "the CPU"


def copy_bandwidth(device: str, size: int = 1 << 30) -> float:
    """Bytes read and written per second by the copy of a tensor far larger than the caches."""
    a = torch.zeros(size if device == "cuda" else size >> 5, dtype=torch.int32, device=device)
    b = torch.empty_like(a)
    b.copy_(a)
    return 2 * a.nbytes / median([timed(device, lambda: b.copy_(a)) for _ in range(9)])


def key_value_bytes(model) -> int:
    """Per token of a sequence."""
    config = model.config
    return 2 * config.num_hidden_layers * config.num_key_value_heads * head_size(config) * model.dtype.itemsize


def print_gaps(busy: list[tuple[float, float, str]], least: float = 10.0) -> None:
    """busy: (start, end, name) of what ran on the GPU, in us, sorted."""
    gaps = [(length, last, then) for length, _, last, then in between(busy) if length >= least]
    whole, idle = max(end for _, end, _ in busy) - busy[0][0], sum(gap for gap, *_ in gaps)
    print(
        f"idle: {idle / 1e3:.2f} of {whole / 1e3:.2f} ms ({idle / whole:.1%}) in {len(gaps)} gaps of {least:.0f} us or more"
    )
    for gap, before, after in sorted(gaps, reverse=True)[:8]:
        print(f"  {gap:8.0f} us  after {before[:50]}  before {after[:50]}")
