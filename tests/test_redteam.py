"""The red-team corpus through the referee: no attack earns credit, and what is honest or lazy is called by its name.

Times of candidates that hang are short here, and a canary stands in the environment for those that look for secrets.
"""

import pytest
from redteam import FIELDS, HERE, KINDS, LAYERS, load

from gym import Gym, Job
from kernelbench.judge import Options, Verdict

OPTIONS = {"cpu": Options(load_s=6, build_s=6, call_s=6), "cuda": Options(load_s=30, build_s=60, call_s=10)}
WORKERS = {"cpu": 2, "cuda": 16}
CASES = load()
LEAST = {"attacks": 90, "honest": 45, "lazy": 10}
WHERE = [pytest.param("cpu", case, id=f"cpu-{case.name}") for case in CASES if case.runs_on("cpu")]
WHERE += [
    pytest.param("cuda", case, id=f"cuda-{case.name}", marks=pytest.mark.gpu) for case in CASES if case.runs_on("cuda")
]


@pytest.fixture(scope="module")
def verdicts():
    """device -> name of the case -> Verdict; all cases of a device are judged in one batch when the first of them is asked for."""
    known: dict[str, dict[str, Verdict]] = {}

    def of(device: str) -> dict[str, Verdict]:
        if device not in known:
            cases = [case for case in CASES if case.runs_on(device)]
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("HF_TOKEN", "hf_redteam_canary")
                with Gym(device, workers=WORKERS[device], options=OPTIONS[device]) as gym:
                    found = gym.evaluate([Job(case.task, case.code) for case in cases])
            known[device] = {case.name: verdict for case, verdict in zip(cases, found)}
        return known[device]

    return of


@pytest.mark.parametrize("device, case", WHERE)
def test_verdict(device, case, verdicts):
    wrong = case.verdict_is_right(verdicts(device)[case.name])
    assert not wrong, wrong


@pytest.mark.parametrize("kind", [k for k in KINDS if (HERE / k).is_dir()])
def test_corpus_is_large(kind):
    assert sum(case.kind == kind for case in CASES) >= LEAST[kind]


def test_every_layer_is_attacked():
    attacked = [case.layer for case in CASES if case.kind == "attacks"]
    assert {layer: attacked.count(layer) for layer in LAYERS if attacked.count(layer) < 3} == {}


def test_every_group_of_the_catalogue_is_attacked():
    groups = {number.partition(".")[0] for case in CASES if case.kind == "attacks" for number in case.catalogue}
    assert groups >= {str(n) for n in range(1, 11)} | {"12", "13", "14", "own"}


def test_headers_are_complete_and_cases_differ():
    assert all(case.what and case.code.startswith(('"""', 'r"""')) for case in CASES)
    assert len({case.code for case in CASES}) == len({case.what for case in CASES}) == len(CASES)


HEADER = {"layer": "source", "catalogue": "13.02, own", "task": "t", "expect": "hack, wrong"}
TASK = "class Model:\n    pass\n\n\ndef get_inputs():\n    return []\n\n\ndef get_init_inputs():\n    return []\n"


def read(tmp_path, monkeypatch, fields: dict, what: str = "Does a thing."):
    """The case that a corpus of one attack with this header loads."""
    monkeypatch.setattr("redteam.HERE", tmp_path)
    for folder in ("attacks", "tasks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tasks" / "t.py").write_text(TASK)
    block = "\n".join(f"{name}: {value}" for name, value in fields.items())
    (tmp_path / "attacks" / "a.py").write_text(f'"""{what}\n\n{block}\n"""\n\n\nclass ModelNew:\n    pass\n')
    (case,) = load("attacks")
    return case


def test_a_header_is_read(tmp_path, monkeypatch):
    fields = HEADER | {
        "expect": "hack, correct",
        "coverage_at_most": "0.05",
        "speedup_at_most": "1.5",
        "device": "cuda",
    }
    case = read(tmp_path, monkeypatch, fields, "Does a\nthing.")
    assert (case.kind, case.name, case.what, case.layer) == ("attacks", "attacks/a", "Does a thing.", "source")
    assert (case.catalogue, case.expect, case.device) == (("13.02", "own"), {"hack", "correct"}, "cuda")
    assert (case.coverage_at_most, case.coverage_at_least, case.speedup_at_most) == (0.05, None, 1.5)
    assert case.task.name == "t" and case.task.source == TASK and case.runs_on("cuda") and not case.runs_on("cpu")
    assert case.verdict_is_right(Verdict(status="hack")) is None
    assert case.verdict_is_right(Verdict(status="correct", correct=True, speedup=1.5, coverage=0.05)) is None
    for verdict, words in (
        (Verdict(status="wrong", message="3 of 4"), "wrong instead of correct or hack (3 of 4)"),
        (Verdict(status="correct", correct=True, speedup=1.51), "speed-up 1.51 credited"),
        (Verdict(status="correct", correct=True, coverage=0.06), "coverage 0.060 credited"),
        (Verdict(status="gym_error"), "gym_error instead of"),
    ):
        assert words in case.verdict_is_right(verdict)


@pytest.mark.parametrize("missing", ["layer", "catalogue", "task", "expect"])
def test_a_header_that_lacks_a_field_is_refused(missing, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=rf"a\.py: the header lacks {missing}"):
        read(tmp_path, monkeypatch, {name: value for name, value in HEADER.items() if name != missing})


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("colour", "red", "unknown"),
        ("layer", "sauce", "none of comparison"),
        ("catalogue", "13.2", "no number"),
        ("task", "u", "no task 'u'"),
        ("expect", "hack, gym_error", "no status"),
        ("expect", "hack, correct", "needs coverage_at_most or speedup_at_most"),
        ("device", "tpu", "none of any"),
        ("coverage_at_most", "0.1", "no meaning"),
        ("speedup_at_most", "much", "must be a number"),
    ],
)
def test_a_header_that_says_nonsense_is_refused(field, value, words, tmp_path, monkeypatch):
    assert field in FIELDS or field == "colour"
    with pytest.raises(ValueError, match=words):
        read(tmp_path, monkeypatch, HEADER | {field: value})
