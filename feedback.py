"""What models and people read of a verdict: `feedback` for the next turn's prompt, `report` and `overview` for a terminal."""

from collections.abc import Callable

from kernelbench.judge import Verdict

HEADS = {
    "no_code": "No code: answer with one complete ```python block that defines class ModelNew.",
    "compile_error": "The code does not compile.",
    "runtime_error": "The code fails when it runs.",
    "wrong": "The output is wrong.",
    "hack": "Not accepted: the work must be done by your own Triton kernels.",
    "timeout": "Too slow: the run was ended.",
    "unsupported": "This cannot run on the machine that judges.",
    "gym_error": "The judging failed through no fault of the code.",
}
BRIEF = {status: status.replace("_", " ") for status in HEADS} | {"wrong": "wrong output"}
BASELINES = {"eager": "PyTorch", "compile": "torch.compile", "max-autotune": "torch.compile (max-autotune)"}
ROWS = 6  # of a profile that a model reads
LAUNCH_BOUND = 0.020  # ms: below it the launches' share is told


def feedback(verdict: Verdict, budget: int, count: Callable[[str], int], brief: bool = False) -> str:
    """The text about its kernel that the model reads; count(text) <= budget (tokens, as `count` counts them).

    brief: the one-line form of the tiny policy. The reward number is never shown.
    """
    if verdict.status == "correct":
        if brief:
            return f"correct, speed-up {verdict.speedup:.1f}, coverage {verdict.coverage:.1f}"
        baseline = BASELINES[verdict.baseline]
        head = (
            f"Correct. Your kernels take {verdict.kernel_ms:.4g} ms, {baseline} {verdict.reference_ms:.4g} ms: speed-up {verdict.speedup:.2f}. "
            f"Your own Triton kernels do {verdict.coverage:.0%} of the GPU time."
        )
        body = "\n".join(["GPU time per forward:", *_rows(verdict.kernels, ("yours  ", "library"))])
        if verdict.reference_kernels:
            body += "\n" + "\n".join([f"That of {baseline}:", *_rows(verdict.reference_kernels, ("", ""))])
        head += "".join(f"\n{line}" for line in (left(verdict), hint(verdict)) if line)
        tail = "Make it faster: fuse more operators into your own kernels, and move less memory."
    else:
        if brief:
            return "hack: no own kernel" if verdict.status == "hack" else BRIEF[verdict.status]
        head, body, tail = HEADS[verdict.status], verdict.message, "Correct it and answer with the whole code again."
        if (
            verdict.status == "wrong"
            and "values are wrong" in body
            and verdict.precision == "fp32"
            and not verdict.tf32
        ):
            tail = 'It is compared in full fp32: tl.dot needs input_precision="ieee". ' + tail
    text = "\n\n".join(part for part in (head, body, tail) if part)
    if count(text) <= budget:
        return text
    low, high = 0, len(body)  # the most of the body, from both ends, that fits
    while low < high:
        keep = (low + high + 1) // 2
        low, high = (keep, high) if count(_clipped(head, body, tail, keep)) <= budget else (low, keep - 1)
    text = _clipped(head, body, tail, low)
    while text and count(text) > budget:
        text = text[: len(text) * 3 // 4]
    return text


def _rows(kernels: list[dict], sides: tuple[str, str]) -> list[str]:
    rows = [
        f"{k['ms']:9.4f} ms {k['share']:6.1%} {k['launches']:5.3g} x  {sides[not k['own']]}  {k['name'][:60]}"
        for k in kernels[:ROWS]
    ]
    rest = kernels[ROWS:]
    return rows + [f"{sum(k['ms'] for k in rest):9.4f} ms in {len(rest)} more"] * bool(rest)


def _clipped(head: str, body: str, tail: str, keep: int) -> str:
    body = f"{body[: (keep + 1) // 2]}\n...\n{body[len(body) - keep // 2 :]}" if keep else "..."
    return "\n\n".join((head, body, tail))


def left(verdict: Verdict) -> str:
    """Which of the reference's kernels the candidate leaves to the library, and which others it calls there."""
    if not verdict.reference_kernels:
        return ""
    theirs = {k["name"] for k in verdict.reference_kernels}
    library = [k for k in verdict.kernels if not k["own"]]
    same, new = ([k["name"][:60] for k in library if (k["name"] in theirs) == kept] for kept in (True, False))
    parts = [f"still the library's, as in the original: {', '.join(same[:6])}"] * bool(same)
    parts += [f"library calls that the original does not make: {', '.join(new[:6])}"] * bool(new)
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def hint(verdict: Verdict) -> str:
    """The bottleneck in one line."""
    roof, ms = verdict.roofline, verdict.kernel_ms
    if not roof:
        return ""
    launch = verdict.launch or 0.0
    if ms < LAUNCH_BOUND and launch > 0.5:
        one = sum(k["launches"] for k in verdict.kernels) <= 1
        rest = "with one kernel little is left to gain" if one else "only fewer kernels would help"
        return f"Launch-bound: {launch:.0%} of the {ms * 1e3:.3g} us are launches and gaps; {rest}."
    largest = max((k for k in verdict.kernels if not k["own"]), key=lambda k: k["share"], default=None)
    if largest and largest["share"] > 0.3:
        return f"The most time that is left to the library: {largest['name'][:60]}, {largest['share']:.0%}."
    if roof["bound"] == "memory":
        rate = f"{roof['gbps']:.0f} of {roof['peak_gbps']:.0f} GB/s"
        if roof["share"] > 0.8:
            return (
                f"Memory-bound and near the roof: {rate}; only moving less than inputs, outputs and weights would help."
            )
        return (
            f"Memory-bound, far from the roof: inputs, outputs and weights, each moved once, make {rate}. "
            "Your code moves more than these, moves it slowly, or does other work."
        )
    rate = f"{roof['tflops']:.3g} of {roof['peak_tflops']:.3g} TFLOP/s"
    if roof["share"] > 0.8:
        return f"Compute-bound and near the roof: {rate} of a large matmul."
    return f"Compute-bound, far from the roof: {rate} of a large matmul; look at tile sizes, stages and the dot's operands."


# ---------------------------------------------------------------------------------------------------------------------------
# For people


def bar(share: float, width: int = 30) -> str:
    full = round(width * min(1.0, max(0.0, share)))
    return "#" * full + "." * (width - full)


def report(verdict: Verdict) -> str:
    """The verdict for people: what it is in one line, then why."""
    lines = [verdict.status + (f" ({verdict.hack})" if verdict.hack else "")]
    if verdict.kernel_ms:
        tf32 = f", TF32 {'on' if verdict.tf32 else 'off'}" if verdict.precision == "fp32" else ""
        kind = f"{verdict.baseline}, {verdict.timing}, {verdict.precision}{tf32}"
        speed = "no speed-up counts"
        if verdict.correct:
            low, high = verdict.speedup_ci or (verdict.speedup, verdict.speedup)
            speed = f"speed-up {verdict.speedup:.2f} [{low:.2f}, {high:.2f}]"
        lines[0] += f": {verdict.kernel_ms:.4f} ms against {verdict.reference_ms:.4f} ms ({kind}): {speed}"
        lines.append(f"coverage {bar(verdict.coverage)} {verdict.coverage:6.1%} (raw {verdict.coverage_raw:.1%})")
        lines += roof(verdict)
        lines += ["kernels", *_table(verdict.kernels)]
        if verdict.reference_kernels:
            lines += [f"of {BASELINES[verdict.baseline]}", *_table(verdict.reference_kernels)]
    if verdict.message:
        lines.append(verdict.message)
    if verdict.correct:
        lines += [line for line in (left(verdict), hint(verdict)) if line]
    lines += [f"note: line {f['line']}: {f['text']} ({f['rule']})" for f in verdict.findings]
    lines += [f"note: {text}" for text in doubts(verdict)]
    off = [f"{layer}: {state}" for layer, state in verdict.sandbox.items() if state != "on"]
    phases = ", ".join(f"{name} {s:.2f}" for name, s in verdict.seconds.items() if name != "total" and s >= 0.01)
    lines.append(
        f"on {verdict.device}, {verdict.seconds.get('total', 0):.2f} s"
        + (f" ({phases})" if phases else "")
        + (f"; sandbox off: {'; '.join(off)}" if off else "")
    )
    return "\n".join(lines)


def roof(verdict: Verdict) -> list[str]:
    """The roofline as bars: the least time that the work takes at the device's peaks over the time that it took."""
    r = verdict.roofline
    if not r:
        return []
    what = f"{r['gbps']:.0f} of {r['peak_gbps']:.0f} GB/s" if r["bound"] == "memory" else ""
    what = what or f"{r['tflops']:.3g} of {r['peak_tflops']:.3g} TFLOP/s"
    lines = [
        f"roofline {bar(r['share'])} {r['share']:6.1%} ({what})",
        f"the task {bar(r['reference_share'])} {r['reference_share']:6.1%} by {BASELINES[verdict.baseline]}",
    ]
    if verdict.kernel_ms < LAUNCH_BOUND and verdict.launch is not None:
        lines.append(f"launches {bar(verdict.launch)} {verdict.launch:6.1%} of {verdict.kernel_ms * 1e3:.3g} us")
    return lines


def _table(kernels: list[dict]) -> list[str]:
    return [
        f"  {k['ms']:9.4f} ms {k['launches']:5.3g} x {'own' if k['own'] else 'lib'} {bar(k['share'])} {k['name'][:50]}"
        for k in kernels
    ]


def doubts(verdict: Verdict) -> list[str]:
    """What was not as it should be while times were taken, in sentences."""
    clock, texts = verdict.clock, []
    if not clock:
        return []
    mhz = f" (SM clock {clock['sm_mhz'][0]} to {clock['sm_mhz'][1]} MHz)" if clock.get("sm_mhz") else ""
    if clock.get("throttled"):
        texts.append(f"the GPU was held back while it was timed: {', '.join(clock['throttled'])}{mhz}")
    if clock.get("contended"):
        who = f"; {clock['others']} other processes hold it" if clock.get("others") else ""
        texts.append(
            f"something else used the GPU while it was timed: a fixed wait took {clock['stretch']:.2f} times as long{who}"
        )
    elif clock.get("contended", False) is None:
        slow = f"a fixed wait took {clock['stretch']:.2f} times as long while it was timed"
        texts.append(f"{slow}: the GPU's clock was lower, or something else used it")
    elif clock.get("others"):
        texts.append(f"{clock['others']} other processes hold the GPU, and were quiet while it was timed")
    if clock.get("missing"):
        texts.append(clock["missing"])
    if abs(clock.get("drift", 1.0) - 1) > 0.03:
        texts.append(f"the reference takes {clock['drift']:.3f} times what it took when it was last kept")
    return texts


def overview(found: dict[str, Verdict]) -> str:
    """A table of many verdicts on one task."""
    width = max(map(len, found))
    lines = [f"{'kernel':{width}}  {'status':13}  speed-up  coverage"]
    for name, v in found.items():
        figures = (
            f"{v.speedup:8.2f}  {v.coverage:8.0%}  {bar(v.coverage, 10)}"
            if v.correct
            else (v.hack or v.message.partition(chr(10))[0])[:60]
        )
        lines.append(f"{name:{width}}  {v.status:13}  {figures}")
    return "\n".join([*lines, f"{sum(v.correct for v in found.values())} of {len(found)} are correct"])
