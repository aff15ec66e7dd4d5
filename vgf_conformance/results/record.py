"""The record: everything that one (case, sample, profile, scheme, target) left behind.

A results file is JSON Lines: one ``run`` line with the environment, then one
``case`` line for each record, appended and fsynced as it comes, and before the first
record of an operator one ``claims`` line with what the backend says of operators. A ``plan`` line
lists the ids of all cases that a run is to have, its other shards' too. A case
that could not be run, for want of a package, leaves a ``not_run`` line with the reason.
``schema.json`` beside this file is the contract; SCHEMA_VERSION grows with every change
that an older reader cannot take. Version 2 added the ``claims`` line, the ``dtypes`` of a
record and the ``tosa_dtypes`` of a delegate; version 3 the kind ``arithmetic``, the ``not_run`` line, and
what a record says of a model: ``about``, ``task`` and ``pte_bytes``; version 4 the ``plan`` line, a
run's ``shard``, the ``outputs`` and ``worker_bytes`` of a record, and the findings ``capability`` and
``dependent``; version 5 ``cached``, and ``wrong`` of metrics; version 6 the finding ``noisy``, a
comparison's ``finding`` and a record's ``visible``; version 7 ``accuracy``; version 8 the finding
``unquantised``, a record's ``passes``, and ``floating`` and ``requantised`` of a delegate; version 9 the
``became`` of a first wrong operator; version 10 ``quantise_fault``. Older files are read as well.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from vgf_conformance.vocabulary import Finding, Grade, Stage, Verdict

SCHEMA_VERSION = 10


@dataclass
class Metrics:
    """How far ``actual`` lies from ``expected``, over one output tensor.

    Absolute error in the tensor's units, ``max_ulp`` in units in the last place of
    the output's dtype, ``max_lsb`` in quantisation steps, ``sqnr_db`` in decibels
    (infinite where the two are equal), ``worst_index`` in logical coordinates. ``wrong`` counts the
    elements beyond the tolerance, where one is given for each element.
    ``None`` where a metric has no meaning for the dtype.
    """

    elements: int
    differing: int
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    max_lsb: float | None = None
    sqnr_db: float | None = None
    cosine: float | None = None
    worst_index: tuple[int, ...] | None = None
    worst_actual: float | None = None
    worst_expected: float | None = None
    nonfinite_mismatches: int = 0
    zero_sign_mismatches: int = 0
    wrong: int | None = None


@dataclass
class Comparison:
    """One neighbour pair of the order of trust, judged at the output that is worst.

    ``pair`` reads actual/expected (``reference/quantised``, ``emulation/reference``);
    ``rule`` names the tolerance (``exact``, ``tosa-1.0.2 EXP``, ``propagated``,
    ``sqnr >= 100 dB``, ``reported``); ``headroom`` is the share of the bound used, 0 to 1
    within it, ``None`` where nothing is judged. ``histogram`` counts elements by error,
    in bins that ``histogram_unit`` and ``comparison.metrics.HISTOGRAM_EDGES`` describe. ``finding`` is
    NOISY where all that fails, or would, is this harness's own limit to noise.
    """

    pair: str
    stage: Stage
    output: int
    passed: bool | None
    rule: str
    metrics: Metrics | None
    headroom: float | None = None
    delegate: str | None = None
    message: str = ""
    histogram: list[int] = field(default_factory=list)
    histogram_unit: str = ""
    finding: Finding | None = None


@dataclass(frozen=True)
class OutputDigest:
    """One output of a delegate call: its dtype, and the SHA-256 (hexadecimal) of its ``.npy`` file.

    Narrow floats are integers of their width in the file. Equal digests are equal bits.
    """

    dtype: str
    sha256: str


@dataclass
class Leftover:
    """An operator that was left to the CPU, with the partitioner's reason."""

    operator: str
    reason: str
    count: int = 1


@dataclass
class DelegateFacts:
    """What one delegate is made of: edge operators inside, TOSA operators with counts, sizes in bytes.

    ``tosa_dtypes`` counts the TOSA operators by the dtype that each works on (``{"ADD": {"int32": 2}}``).
    ``floating`` counts those that compute in floating point, without what only quantises and dequantises;
    ``requantised`` the RESCALEs by dtypes (``{"int32 to int8": 1}``).
    """

    name: str
    nodes: int
    tosa_operators: dict[str, int]
    tosa_bytes: int
    vgf_bytes: int
    tosa_dtypes: dict[str, dict[str, int]] = field(default_factory=dict)
    floating: dict[str, int] = field(default_factory=dict)
    requantised: dict[str, int] = field(default_factory=dict)


@dataclass
class Sensitivity:
    """Faults that were put into a right result or what made it, and what the comparison made of them.

    Those that change nothing are ``equivalent``; ``survivors`` says of each of the others that was not
    caught what it was and why (``fault: why``). ``mutants`` are the caught faults of the graph, or of the
    steps of quantisation.
    """

    tried: int = 0
    equivalent: int = 0
    caught: int = 0
    survivors: list[str] = field(default_factory=list)
    mutants: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """How many count."""
        return self.tried - self.equivalent

    def add(self, other: Sensitivity) -> None:
        """Count other faults too."""
        self.tried += other.tried
        self.equivalent += other.equivalent
        self.caught += other.caught
        self.survivors += other.survivors
        self.mutants += other.mutants


@dataclass
class FirstWrong:
    """The first TOSA operator that a failing model computes wrongly.

    ``stage`` is lower where the graph does not say what the PyTorch program does, run where the target
    does not compute what the graph says. ``position`` counts the operators of the delegate's graph from
    0; ``origin`` is the PyTorch operator with its module and source line; ``rule`` and ``message`` are
    those of its worst output; ``repro`` is the folder that shows it, empty where none was written.
    ``became`` are all TOSA operators of that PyTorch operator, ``CONV2D 5``, the one named first.
    """

    stage: Stage
    delegate: str
    operator: str
    position: int
    origin: str
    rule: str
    message: str
    repro: str = ""
    became: list[str] = field(default_factory=list)


@dataclass
class QuantiseFault:
    """What is wrong in the quantise stage.

    ``step`` is prepare (the program that was rewritten for annotation is another one), parameters (a scale, a
    zero point, a range or an axis is not what the scheme prescribes for what was observed) or convert (the
    converted program is not the prepared one, quantised). ``tensor`` is the first wrong value, by the name of
    the node that gives it, ``origin`` the PyTorch operator that is changed or reads it, with its module
    and source line, ``cause`` the pass that changed it. Each is empty where it is not known.
    """

    step: str
    tensor: str
    origin: str
    cause: str
    message: str


@dataclass
class Score:
    """The mean score of one program (eager, quantised, or a target's name) with its confidence interval."""

    program: str
    mean: float
    low: float
    high: float


@dataclass
class TaskResult:
    """How well each program does a model's task: eager first, then in the order of trust.

    ``drop`` is how far a mean may fall below eager's, with its ``reason``; ``interval`` says which
    confidence interval the scores have. ``message`` tells which program fell further, and is empty
    where none did.
    """

    metric: str
    unit: str
    examples: int
    interval: str
    drop: float
    reason: str
    scores: list[Score]
    message: str = ""


@dataclass
class Accuracy:
    """How near the outputs on the target come to eager's, whatever the verdict.

    ``sqnr_db`` is that of the worst floating-point output, in decibels (infinite where all are equal).
    ``calibrated`` says whether the sample was calibrated on; None where nothing is quantised. ``sample`` is
    its name: of several samples that share a record it may be another than the record's.
    """

    grade: Grade
    sqnr_db: float
    sample: str
    calibrated: bool | None = None


@dataclass(frozen=True)
class NotRun:
    """A case that could not be run, and why, with the remedy."""

    id: str
    reason: str


@dataclass
class Record:
    """What was run, what came out, and whose fault a difference is.

    ``id`` is the pytest node id (for ``check``: file, sample, profile, scheme, target).
    ``case`` is the operator's or model's name, ``kind`` is ``operator``, ``model``, ``tosa``
    (a conformance test of TOSA's own) or ``arithmetic`` (how a target computes, in ``notes``).
    ``dtypes`` are what it computed with, as claims name them: those of the inputs and weights,
    and where a scheme quantises them the scheme's (int8, int16, int4).
    ``outputs`` are those of the delegate calls on the target, call by call, as far as it came; the
    reference model's are not kept. ``visible`` are the intermediate results by which a noisy case was
    judged operator by operator: empty, or a list for each call, empty where it was not needed.
    ``stage`` and ``finding`` are set unless the verdict is pass; a pass has the finding NOISY or none.
    Times are seconds by stage. ``about`` tells a model's source, licence and weights, ``pte_bytes``
    the size of its .pte. ``worker_bytes`` is the size in memory of the worker that ran it, afterwards
    (0: not known).
    ``sensitivity`` is that of the comparison with a device, ``quantise_sensitivity`` of the quantise stage's.
    ``passes`` are those of the backend that changed a graph while it was lowered, by name.
    ``cached`` is when its artifact was lowered, where that was taken from the cache (ISO 8601, UTC).
    ``expected`` is the reason of the known failure that foresaw this verdict;
    ``expectation_note`` says why a known failure on file does not fit it. ``written`` is
    when the store wrote the record (ISO 8601, UTC).
    """

    id: str
    case: str
    sample: str
    kind: str
    suite: str
    profile: str
    scheme: str
    target: str
    verdict: Verdict
    stage: Stage | None = None
    finding: Finding | None = None
    message: str = ""
    file: str = ""
    operator: str = ""
    dtypes: list[str] = field(default_factory=list)
    tier: str = "smoke"
    driver: str = ""
    expected: str | None = None
    unexpected: bool = False
    expectation_note: str = ""
    comparisons: list[Comparison] = field(default_factory=list)
    outputs: list[list[OutputDigest]] = field(default_factory=list)
    visible: list[list[OutputDigest]] = field(default_factory=list)
    delegates: list[DelegateFacts] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    first_wrong: FirstWrong | None = None
    quantise_fault: QuantiseFault | None = None
    sensitivity: Sensitivity | None = None
    quantise_sensitivity: Sensitivity | None = None
    task: TaskResult | None = None
    accuracy: Accuracy | None = None
    about: dict[str, str] = field(default_factory=dict)
    pte_bytes: int = 0
    worker_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    artifact: str = ""
    cached: str = ""
    passes: list[str] = field(default_factory=list)
    repro: str = ""
    log: str = ""
    written: str = ""

    @property
    def suite_file(self) -> str:
        """The suite file, relative to ``suites/``: ``operators/test_elementwise.py``."""
        return (self.file or self.id.partition("::")[0]).removeprefix("suites/")

    @property
    def name(self) -> str:
        """The case's name with the id's bracket part: ``add[broadcast-FP-none-emulation]``."""
        return self.id.rpartition("::")[2] or self.id

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON values; NaN and infinities become strings."""
        document: dict[str, Any] = plain(dataclasses.asdict(self))
        return {"type": "case", **document}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Record:
        """The inverse of to_json, for a document that the schema accepts."""
        fields = {key: value for key, value in document.items() if key != "type"}
        fields["verdict"] = Verdict(fields["verdict"])
        fields["stage"] = Stage(fields["stage"]) if fields.get("stage") else None
        fields["finding"] = Finding(fields["finding"]) if fields.get("finding") else None
        fields["comparisons"] = [_comparison(item) for item in fields.get("comparisons", [])]
        fields["outputs"] = [[OutputDigest(**item) for item in call] for call in fields.get("outputs", [])]
        fields["visible"] = [[OutputDigest(**item) for item in call] for call in fields.get("visible", [])]
        fields["delegates"] = [DelegateFacts(**item) for item in fields.get("delegates", [])]
        fields["leftovers"] = [Leftover(**item) for item in fields.get("leftovers", [])]
        if first := fields.get("first_wrong"):
            fields["first_wrong"] = FirstWrong(**{**first, "stage": Stage(first["stage"])})
        if fault := fields.get("quantise_fault"):
            fields["quantise_fault"] = QuantiseFault(**fault)
        for name in ("sensitivity", "quantise_sensitivity"):
            if measured := fields.get(name):
                fields[name] = Sensitivity(**measured)
        if task := fields.get("task"):
            fields["task"] = _task(task)
        if accuracy := fields.get("accuracy"):
            fields["accuracy"] = _accuracy(accuracy)
        return cls(**fields)


def _comparison(document: dict[str, Any]) -> Comparison:
    metrics = document.get("metrics")
    return Comparison(
        **{
            **document,
            "stage": Stage(document["stage"]),
            "finding": Finding(document["finding"]) if document.get("finding") else None,
            "headroom": _number(document.get("headroom")),
            "metrics": None if metrics is None else _metrics(metrics),
        }
    )


def _task(document: dict[str, Any]) -> TaskResult:
    scores = [Score(**{key: _number(value) for key, value in score.items()}) for score in document["scores"]]
    return TaskResult(**{**document, "scores": scores})


def _accuracy(document: dict[str, Any]) -> Accuracy:
    return Accuracy(
        **{**document, "grade": Grade(document["grade"]), "sqnr_db": _number(document["sqnr_db"])}
    )


def _metrics(document: dict[str, Any]) -> Metrics:
    values = {key: _number(value) for key, value in document.items()}
    if values.get("worst_index") is not None:
        values["worst_index"] = tuple(values["worst_index"])
    return Metrics(**values)


def plain(value: Any) -> Any:
    """``value`` as JSON takes it: no numpy scalars, enums or tuples, no NaN, nothing that is no text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    value = getattr(value, "value", value)
    # What a worker wrote and was no UTF-8 has halves of surrogate pairs, which no encoding takes.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _number(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value
