"""What models and people read of a verdict."""

import pytest

from feedback import bar, doubts, feedback, hint, left, overview, report
from kernelbench.judge import STATUSES, Verdict

CORRECT = Verdict(
    status="correct",
    correct=True,
    speedup=2.512,
    reference_ms=0.5,
    kernel_ms=0.199,
    coverage=0.876,
    kernels=[
        {"name": "chain_kernel", "ms": 0.15, "share": 0.75, "launches": 1, "own": True},
        {"name": "aten::add", "ms": 0.05, "share": 0.25, "launches": 2, "own": False},
    ],
)
COMPILE = "line 21, in forward: chain[(1,)](x)\nline 13, in chain: x = tl.does_not_exist(x)\nAttributeError: no attribute 'does_not_exist'"
MESSAGES = {
    "no_code": "No complete code block that defines class ModelNew was found.",
    "compile_error": COMPILE,
    "runtime_error": "line 9, in forward: raise ValueError('no such luck')\nValueError: no such luck",
    "wrong": "2318 of 4800 values are wrong, the first at (0, 2): got 0.28, expected 0.29 (largest difference 0.187)",
    "hack": "The output stays right without chain_kernel: a kernel launched for show.",
    "timeout": "No answer within 30 s in the phase 'call'; the process was killed.",
    "unsupported": "inline assembly is not simulated",
    "gym_error": "the referee died",
}
VERDICTS = {status: Verdict(status=status, message=text) for status, text in MESSAGES.items()} | {"correct": CORRECT}


def words(text: str) -> int:
    return len(text.split())


def test_feedback_tells_what_a_model_needs():
    assert VERDICTS.keys() == set(STATUSES)
    texts = {status: feedback(verdict, 10_000, len) for status, verdict in VERDICTS.items()}
    assert all(MESSAGES[status] in texts[status] for status in MESSAGES)
    assert len({text.partition("\n")[0] for text in texts.values()}) == len(STATUSES)
    for part in (
        "speed-up 2.51",
        "0.199 ms",
        "0.5 ms",
        "88%",
        "chain_kernel",
        "aten::add",
        "yours",
        "library",
        "75.0%",
        "25.0%",
    ):
        assert part in texts["correct"]
    assert all("answer with" in text for status, text in texts.items() if status != "correct")


def test_the_one_line_form():
    assert feedback(CORRECT, 1000, len, brief=True) == "correct, speed-up 2.5, coverage 0.9"
    assert {s: feedback(v, 1000, len, brief=True) for s, v in VERDICTS.items() if s != "correct"} == {
        "no_code": "no code",
        "compile_error": "compile error",
        "runtime_error": "runtime error",
        "wrong": "wrong output",
        "hack": "hack: no own kernel",
        "timeout": "timeout",
        "unsupported": "unsupported",
        "gym_error": "gym error",
    }


LONG = {
    "many lines": Verdict(
        status="compile_error", message=COMPILE + "\n" + "\n".join(f"word{i} and more" for i in range(400))
    ),
    "one long line": Verdict(status="runtime_error", message="x" * 5000),
    "spaces": Verdict(status="wrong", message=" \n " * 500),
    "many kernels": Verdict(**CORRECT.to_json() | {"kernels": CORRECT.kernels * 10}),
    "no message": Verdict(status="wrong"),
}


@pytest.mark.parametrize("name", [*VERDICTS, *LONG])
def test_the_budget_holds_for_every_budget(name):
    verdict = (VERDICTS | LONG)[name]
    for count in (len, words):
        whole = feedback(verdict, 10**9, count)
        for budget in range(201):
            text = feedback(verdict, budget, count)
            assert count(text) <= budget
            assert text == whole or count(whole) > budget  # cut only where it must be
        assert feedback(verdict, count(whole), count) == whole


def test_what_a_cut_text_keeps():
    """The head and the advice before the message; of that its beginning, where the candidate's line is, and its end."""
    text = feedback(LONG["many lines"], 400, len)
    assert text.startswith("The code does not compile.\n\nline 21, in forward") and "x = tl.does_not_exist(x)" in text
    assert "\n...\n" in text and "word399 and more\n\nCorrect it and answer with the whole code again." in text
    assert len(text) > 390
    text = feedback(LONG["many kernels"], 300, len)
    assert "speed-up 2.51" in text and "88%" in text and "Make it faster" in text


def test_the_report_for_people():
    verdict = Verdict(
        **CORRECT.to_json()
        | {
            "speedup_ci": [2.4, 2.6],
            "timing": "simulated",
            "device": "simulated H200",
            "sandbox": {"a": "on", "b": "not permitted"},
        }
    )
    text = report(verdict)
    for part in (
        "correct",
        "speed-up 2.51 [2.40, 2.60]",
        "eager, simulated",
        "coverage ##########################....  87.6% (raw 0.0%)",
        "own",
        "chain_kernel",
        "sandbox off: b: not permitted",
    ):
        assert part in text
    assert "a: on" not in text
    text = report(Verdict(status="hack", hack="decoy", message="for show", kernel_ms=1.0, reference_ms=2.0))
    assert text.startswith("hack (decoy)") and "no speed-up counts" in text and "for show" in text


# Figures by hand: 8 MB and 2 GFLOP at 4 TB/s and 50 TFLOP/s
ROOF = {
    "bytes": 8_000_000,
    "flops": 2_000_000_000,
    "gbps": 40.0,
    "tflops": 10.0,
    "peak_gbps": 4000.0,
    "peak_tflops": 50.0,
    "bound": "compute",
    "floor_ms": 0.04,
    "share": 0.2,
    "reference_share": 0.08,
}
OWN = {"name": "mine", "ms": 0.2, "share": 1.0, "launches": 1, "own": True}
GEMM = {"name": "gemm", "ms": 0.1, "share": 0.5, "launches": 1, "own": False}


def with_roof(**changes) -> Verdict:
    fields = {"kernels": [OWN], "reference_kernels": [GEMM], "roofline": ROOF, "launch": 0.1}
    return Verdict(**CORRECT.to_json() | fields | changes)


def test_the_bottleneck_in_one_line():
    assert hint(CORRECT) == ""
    assert hint(with_roof()).startswith("Compute-bound, far from the roof: 10 of 50 TFLOP/s")
    assert hint(with_roof(roofline=ROOF | {"share": 0.85})).startswith("Compute-bound and near the roof")
    memory = ROOF | {"bound": "memory", "share": 0.3}
    assert hint(with_roof(roofline=memory)).startswith("Memory-bound, far from the roof: ")
    assert hint(with_roof(roofline=memory | {"share": 0.9})).startswith(
        "Memory-bound and near the roof: 40 of 4000 GB/s"
    )
    half = [OWN | {"share": 0.5}, GEMM]
    assert hint(with_roof(kernels=half)) == "The most time that is left to the library: gemm, 50%."
    text = hint(with_roof(kernels=half, kernel_ms=0.012, launch=0.75))
    assert text == "Launch-bound: 75% of the 12 us are launches and gaps; only fewer kernels would help."
    assert hint(with_roof(kernel_ms=0.012, launch=0.75)).endswith("with one kernel little is left to gain.")
    assert not hint(with_roof(kernel_ms=0.012, launch=0.4)).startswith("Launch") and "Launch" not in hint(
        with_roof(launch=0.9)
    )


def test_what_is_left_to_the_library():
    other = GEMM | {"name": "copy"}
    assert left(with_roof()) == "" and left(CORRECT) == ""
    assert left(with_roof(kernels=[OWN, GEMM])) == "Still the library's, as in the original: gemm."
    assert left(with_roof(kernels=[OWN, other])) == "Library calls that the original does not make: copy."
    text = left(with_roof(kernels=[GEMM, other]))
    assert text == "Still the library's, as in the original: gemm; library calls that the original does not make: copy."


def test_both_profiles_are_in_the_feedback_and_the_rest_is_summed():
    many = [OWN | {"name": f"kernel {i}", "ms": 0.01 * (20 - i)} for i in range(10)]
    text = feedback(with_roof(kernels=many, baseline="compile"), 10_000, len)
    assert "0.1500 ms 100.0%     1 x  yours    kernel 5" in text and "kernel 6" not in text
    assert "   0.5000 ms in 4 more\nThat of torch.compile:\n   0.1000 ms  50.0%" in text  # 0.14 + 0.13 + 0.12 + 0.11
    assert "torch.compile 0.5 ms" in text and "Compute-bound" in text


def test_a_model_is_told_of_tf32_where_it_matters():
    tail = 'tl.dot needs input_precision="ieee"'
    wrong = VERDICTS["wrong"].to_json()
    assert tail in feedback(VERDICTS["wrong"], 10_000, len)
    for other in ({"tf32": True}, {"precision": "bf16"}, {"message": "the output has shape (2, 3), expected (3, 2)"}):
        assert tail not in feedback(Verdict(**wrong | other), 10_000, len)


def test_the_report_says_how_it_was_measured():
    text = report(with_roof(timing="measured", kernel_ms=0.012, launch=0.75, speedup_ci=[2.4, 2.6]))
    first, *lines = text.splitlines()
    assert first == "correct: 0.0120 ms against 0.5000 ms (eager, measured, fp32, TF32 off): speed-up 2.51 [2.40, 2.60]"
    assert "roofline ######........................  20.0% (10 of 50 TFLOP/s)" in lines
    assert f"launches {bar(0.75)}  75.0% of 12 us" in lines and "of PyTorch" in lines
    assert "(compile, measured, fp32, TF32 on)" in report(with_roof(timing="measured", tf32=True, baseline="compile"))
    assert "(eager, measured, bf16)" in report(with_roof(timing="measured", precision="bf16"))


def test_doubts_about_the_clock():
    quiet = {"sm_mhz": [1950, 1980], "throttled": [], "others": 0, "stretch": 1.0, "contended": False, "missing": None}
    assert doubts(with_roof(clock=quiet)) == doubts(CORRECT) == []

    def said(**changes) -> str:
        (text,) = doubts(with_roof(clock=quiet | changes))
        return text

    assert "held back while it was timed: power cap (SM clock 1950 to 1980 MHz)" in said(throttled=["power cap"])
    text = said(contended=True, stretch=1.4, others=2)
    assert "took 1.40 times as long; 2 other processes hold it" in text
    assert "1.30 times as long while it was timed: the GPU's clock was lower" in said(contended=None, stretch=1.3)
    assert "1 other processes hold the GPU, and were quiet" in said(others=1)
    assert said(missing="clocks are unknown: no library") == "clocks are unknown: no library"
    assert "1.100 times what it took" in said(drift=1.1) and doubts(with_roof(clock=quiet | {"drift": 0.98})) == []


def test_bars():
    assert [bar(x, 4) for x in (-1, 0, 0.5, 1, 2)] == ["....", "....", "##..", "####", "####"]


def test_many_verdicts_in_a_table():
    lines = overview({"a.py": CORRECT, "longer.py": VERDICTS["wrong"]}).splitlines()
    assert lines[1].split() == ["a.py", "correct", "2.51", "88%", "#########."]
    assert lines[2].startswith("longer.py  wrong          2318 of 4800 values") and lines[3] == "1 of 2 are correct"
