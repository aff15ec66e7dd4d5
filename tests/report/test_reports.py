from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from tests.report.synthetic import RUN, synthetic
from tests.results.records import record
from vgf_conformance.report import compare_table, summary_table, write_reports
from vgf_conformance.report.check import print_tables
from vgf_conformance.report.failure import causes_text, failure_text
from vgf_conformance.report.tally import NOTHING
from vgf_conformance.report.tolerance import tolerance_report
from vgf_conformance.results.baselines import Baseline, key_of
from vgf_conformance.results.compare import compare_runs
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, DelegateFacts, FirstWrong, Metrics, Record, Sensitivity
from vgf_conformance.results.store import ResultsWriter, read_results
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

NASTY = "</script><script>alert(1)</script><!-- ]]> & \" ' | ` \x00\x1b \udc80 \u2028 ünï ✗"
NAN = float("nan")


def written(tmp_path: Path, *records: Record, **more: Any) -> dict[str, str]:
    results = Results(runs=[RUN], records=list(records), **more)
    return {path.name: path.read_text("utf-8") for path in write_reports(results, tmp_path)}


def odd_records() -> list[Record]:
    blank = Metrics(elements=0, differing=0)
    odd = Metrics(1, 1, NAN, NAN, float("inf"), NAN, float("-inf"), NAN, (), NAN, NAN)
    return [
        record(case=""),
        record(sample="bare", verdict=Verdict.ERROR, stage=None, unexpected=True),
        record(
            sample="huge", verdict=Verdict.FAIL, message="x" * 1_000_000, log="y\n" * 500_000, unexpected=True
        ),
        record(
            sample="metrics",
            comparisons=[
                Comparison("a/b", Stage.RUN, 0, None, "", None),
                Comparison("a/b", Stage.RUN, 0, None, "", blank, headroom=NAN),
                Comparison(
                    "reference/eager", Stage.RUN, 0, False, "", odd, headroom=float("inf"), histogram=[0] * 40
                ),
                Comparison("reference/eager", Stage.RUN, 0, True, "", odd, headroom=-1.0, histogram=[1]),
            ],
        ),
        record(
            case=NASTY,
            sample=NASTY,
            verdict=Verdict.CRASH,
            message=NASTY,
            log=NASTY,
            repro=NASTY,
            expected=NASTY,
            operator=NASTY,
            notes=[NASTY],
            driver=NASTY,
            delegates=[DelegateFacts(NASTY, 0, {}, 0, 0)],
        ),
        record(
            sample="unexpected", verdict=Verdict.CRASH, message=NASTY, unexpected=True, expectation_note=NASTY
        ),
        record(profile="TOSA-1.1+FP+shape", scheme="made up", target="elsewhere", seconds={"other": 1.0}),
    ]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reports")
    return {path.name: path.read_text("utf-8") for path in write_reports(synthetic(2), folder)}


def page_data(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def test_no_results_make_reports(tmp_path: Path) -> None:
    paths = write_reports(Results(), tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["matrix.md", "tolerance.md", "junit.xml", "report.html"]
    assert summary_table(Results()) == "nothing was run"


def test_odd_records_make_reports(tmp_path: Path) -> None:
    pages = written(tmp_path, *odd_records(), warnings=[NASTY])
    assert len(JUnitXml.fromstring(pages["junit.xml"].encode())) == 1
    assert all(len(page) < 200_000 for page in pages.values())
    assert "\n3 unexpected, 3 causes:" in summary_table(Results(records=odd_records()))


def test_odd_records_make_reports_after_the_store_too(tmp_path: Path) -> None:
    """What was written and read back is reported as it was before, but for when it was written."""
    when = "2026-05-11T08:52:41.500+00:00"
    records = [dataclasses.replace(item, written=when) for item in odd_records()]
    with ResultsWriter(tmp_path, RUN) as writer:
        for item in records:
            writer.append(item)
    read = written(tmp_path / "read", *read_results([tmp_path]).records)
    assert read == written(tmp_path / "made", *records)


def test_a_folder_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is not a folder"):
        write_reports(Results(), tmp_path / "file")


def test_matrix_counts_cells(tmp_path: Path) -> None:
    known = {"verdict": Verdict.FAIL, "expected": "known: see issue"}
    matrix = written(
        tmp_path,
        *(record(sample=str(number)) for number in range(3)),
        *(record(sample=str(number), profile="INT", scheme="a8w8-pc") for number in range(2)),
        record(sample="2", profile="INT", scheme="a8w8-pc", **known),  # type: ignore[arg-type]
        record(
            sample="0",
            target="emulation",
            verdict=Verdict.CRASH,
            unexpected=True,
            message="died",
            repro="run it",
        ),
        record(sample="1", target="emulation"),
    )["matrix.md"]
    assert re.search(
        r"\| operator +\| FP none reference +\| FP none emulation +\| INT a8w8-pc reference +\|", matrix
    )
    assert re.search(r"\| add +\| 3/3 +\| ✗ 1 of 2 +\| 2/3 \(1 expected\) +\|", matrix)
    assert "**crash at lower**\n\n  ```\n  died\n  reproduce: run it\n  ```" in matrix
    assert re.search(r"\| add.*\| fail at lower +\| known: see issue +\|", matrix)
    assert re.search(r"\| lower +\| 2 +\| 1 +\|", matrix)
    assert "no driver here has VK\\_ARM\\_tensors" in matrix
    assert re.search(r"\| drivers\.reference +\| TOSA reference model 1\.0\.2", matrix)


def test_what_a_quantised_case_computes_in_floating_point_is_listed_once(tmp_path: Path) -> None:
    inside = [DelegateFacts("delegate 0", 1, {"TANH": 1}, 1, 1, floating={"TANH": 1, "ADD": 2})]
    rows = [
        record("tanh", "a", "FP+INT", "a8w8-pc", target, delegates=inside)
        for target in ("reference", "emulation")
    ]
    text = written(tmp_path, *rows, record("sigmoid", delegates=inside))["matrix.md"]
    section = text.partition("## Quantised, yet computed in floating point")[2].partition("\n## ")[0]
    assert re.search(r"\| tanh +\| a +\| FP\+INT a8w8-pc +\| TANH \(1\), ADD \(2\) +\|", section)
    assert section.count("TANH") == 1


def test_models_have_their_own_table(reports: dict[str, str]) -> None:
    models = reports["matrix.md"].partition("## Models")[2]
    assert re.search(
        r"\| mobilenet\\_v2 +\| rank1 .*\| 59/61 in 2 +\| aten.topk.default . 2: .*\| pass +\| pass ", models
    )


def test_markdown_tables_survive_markup(tmp_path: Path) -> None:
    pages = written(tmp_path, record(operator="a|b\n<script>", notes=["`x` <b>"]))
    assert "| a\\|b &lt;script>" in pages["matrix.md"]
    assert "<script>" not in pages["matrix.md"] + pages["tolerance.md"]


def test_tolerance_names_the_worst_sample_and_its_baseline() -> None:
    def measured(sample: str, headroom: float | None, ulp: float, sqnr: float) -> Record:
        metrics = Metrics(10, 1, max_abs=1e-7, max_ulp=ulp, sqnr_db=sqnr)
        metrics.worst_index, metrics.worst_actual, metrics.worst_expected = (0, 3), 1.5, ulp
        pair = Comparison("reference/eager", Stage.LOWER, 0, True, f"rule of {sample}", metrics, headroom)
        return record(sample=sample, comparisons=[pair])

    records = [
        measured("mild", 0.1, 1, 90),
        measured("worst", 0.875, 7, 120),
        measured("free", None, 99, 130),
    ]
    baseline = Baseline("reference", {}, {key_of(records[1]): 0.5})
    tolerance = tolerance_report(Results(records=records, baselines=[baseline]))
    row = next(line for line in tolerance.splitlines() if line.startswith("| add"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "add",
        "FP",
        "none",
        "reference",
        "7 ULP",
        "reference/eager",
        "rule of worst",
        "87.5 %",
        "50 %",
        "90",
        NOTHING,
        "worst",
        r"\[0, 3\]: 1.5, should be 7",
    ]


def test_junit_reads_back(tmp_path: Path) -> None:
    failing = record(
        sample="bad",
        verdict=Verdict.FAIL,
        unexpected=True,
        message="3 of 16 differ",
        repro="run bad",
        seconds={"lower": 1.5, "run": 0.5},
        comparisons=[
            Comparison("emulation/reference", Stage.RUN, 0, False, "exact", Metrics(16, 3, max_lsb=7.0))
        ],
    )
    pages = written(
        tmp_path,
        record(),
        failing,
        record(sample="dead", verdict=Verdict.CRASH, unexpected=True),
        record(sample="known", verdict=Verdict.FAIL, expected="a known one"),
        record(sample="healed", unexpected=True, expectation_note="expected fail at lower, but it passes"),
    )
    (suite,) = JUnitXml.fromstring(pages["junit.xml"].encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 2, 1, 1)
    assert '<property name="versions.torch" value="2.13.0"/>' in pages["junit.xml"]
    good, bad, dead, known, healed = suite
    assert (good.name, good.classname) == ("add[rank1-FP-none-reference]", "operators/test_elementwise.py")
    assert good.result == []
    assert bad.time == 2.0
    assert isinstance(bad.result[0], Failure)
    assert bad.result[0].message == "3 of 16 differ"
    assert "FAIL  emulation/reference at run: 7 LSB" in bad.result[0].text
    assert "reproduce: run bad" in bad.result[0].text
    assert isinstance(dead.result[0], Error)
    assert isinstance(known.result[0], Skipped)
    assert (known.result[0].message, known.result[0].type) == ("a known one", "pytest.xfail")
    assert isinstance(healed.result[0], Failure)
    assert "but it passes" in healed.result[0].message


def test_page_holds_every_id(reports: dict[str, str]) -> None:
    records = synthetic(2).records
    data = page_data(reports["report.html"])
    ids = [data["pool"][row[data["fields"].index("id")]] for row in data["rows"]]
    assert ids == [item.id for item in records]
    assert all(item.id in reports["report.html"] for item in records)


def test_page_is_self_contained(reports: dict[str, str]) -> None:
    page = reports["report.html"]
    assert "default-src 'none'" in page
    assert not re.search(r"<(?:link|img|iframe|base)\b|@import|url\(|\bsrc=|\bfetch\(", page)
    assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}


def test_page_cannot_be_broken_out_of(tmp_path: Path) -> None:
    page = written(tmp_path, *odd_records(), warnings=[NASTY])["report.html"]
    assert page.count("</script>") == 2
    assert "alert(1)</script>" not in page
    assert visible(NASTY) in page_data(page)["pool"]
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert sink not in page


def test_page_stores_what_repeats_once(reports: dict[str, str]) -> None:
    data = page_data(reports["report.html"])
    assert len({json.dumps(value, sort_keys=True) for value in data["pool"]}) == len(data["pool"])
    assert len(reports["report.html"]) / len(data["rows"]) < 1500


def test_summary_counts_and_shows_the_unexpected() -> None:
    text = summary_table(
        Results(
            records=[
                record(),
                record(sample="b", verdict=Verdict.FAIL, expected="known"),
                record(sample="c", verdict=Verdict.CRASH, unexpected=True, message="SIGSEGV", repro="run c"),
            ],
            warnings=["a torn line"],
        )
    )
    lines = text.splitlines()
    assert lines[0] == "a torn line"
    assert lines[1].split() == [
        "profile",
        "scheme",
        "target",
        "pass",
        "fail",
        "crash",
        "expected",
        "failures",
        "unexpected",
    ]
    assert lines[3].split() == ["FP", "none", "reference", "1", "1", "1", "1", "1"]
    assert lines[-6:] == [
        "1 unexpected, 1 cause:",
        "",
        "1 case: crash at lower",
        "  suites/operators/test_elementwise.py::add[c-FP-none-reference]",
        "    crash at lower: SIGSEGV",
        "    reproduce: run c",
    ]


def failing(sample: str, operator: str = "", **more: Any) -> Record:
    first = FirstWrong(Stage.LOWER, "delegate 0", operator, 3, "aten.add.Tensor", "exact", "2 of 3 elements")
    return record(
        sample=sample,
        verdict=Verdict.FAIL,
        unexpected=True,
        first_wrong=first if operator else None,
        **{"finding": Finding.WRONG, "repro": f"run {sample}", **more},
    )


def test_failures_are_shown_by_cause() -> None:
    """One stage, finding and first wrong operator are one cause, whatever case, profile and target."""
    large = [Comparison("reference/eager", Stage.LOWER, 0, False, "exact", Metrics(900, 3, max_abs=2.0))]
    records = [
        failing("large", "ADD", comparisons=large),
        failing("small", "ADD", profile="INT", target="emulation"),
        failing("other", "MUL"),
        failing("raised", finding=Finding.RAISED, message="shape (3, 4) of node_7 is refused\nat line 3"),
        failing("as_well", finding=Finding.RAISED, message="shape (5,) of node_8 is refused"),
        record(sample="healed", unexpected=True, expectation_note="it passes: remove entry 1"),
    ]
    text = causes_text(records)
    assert text.startswith("6 unexpected, 4 causes:\n")
    heads = [line for line in text.splitlines() if re.match(r"\d+ cases?: ", line)]
    assert heads == [
        "2 cases: fail at lower (raised)",
        "2 cases: fail at lower (wrong), first wrong: ADD",
        "1 case: unexpected pass",
        "1 case: fail at lower (wrong), first wrong: MUL",
    ]
    assert "  in add (2); FP none, INT none; on reference, emulation" in text
    # The smallest stands for each.
    assert re.findall("reproduce: run (.*)", text) == ["as_well", "small", "other"]


def test_check_explains_each_cause_once(capsys: pytest.CaptureFixture[str]) -> None:
    places = [("FP", "none", "reference"), ("FP", "none", "emulation"), ("INT", "a8w8-pc", "reference")]
    names = ("profile", "scheme", "target")
    records = [failing("inputs", "ADD", **dict(zip(names, place, strict=True))) for place in places]
    print_tables([*records, failing("inputs", "MUL", profile="INT", target="emulation")])
    told = capsys.readouterr().out
    assert re.findall(r"(.*): fail at lower \(wrong\): the TOSA graph is wrong", told) == [
        "FP none on reference and emulation; INT a8w8-pc on reference",
        "INT none on emulation",
    ]
    assert told.count("reproduce: run inputs") == 2


def test_failures_fit_a_screen() -> None:
    """Hundreds of cases with long messages and logs, of 30 causes."""
    long = "x" * 1000
    records = [
        failing(f"{number:03}", f"OPERATOR_{number % 30}", message=f"{long}\n" * 50, log=f"{long}\n" * 50)
        for number in range(300)
    ]
    lines = causes_text(records).splitlines()
    assert len(lines) < 80
    assert max(map(len, lines)) < 200
    assert lines[-1] == "  ... and 16 more causes: the reports list all cases"
    assert "  10 cases: fail at lower (wrong), first wrong: OPERATOR_4: run 004" in lines


def test_a_failure_shows_the_figures_of_what_is_worst(tmp_path: Path) -> None:
    """NaN for a number is worse than any number, and its figures are not those of the numbers around it."""
    spoilt = Metrics(9, 1, max_abs=1e-4, max_ulp=3.0, sqnr_db=78.0, nonfinite_mismatches=1)
    spoilt.worst_index, spoilt.worst_actual, spoilt.worst_expected = (4,), NAN, 0.25
    mild = Metrics(9, 2, max_abs=0.5, max_ulp=900.0, sqnr_db=31.0)
    pairs = [
        Comparison("reference/eager", Stage.LOWER, 0, False, "exact", mild, headroom=2.0),
        Comparison("reference/eager", Stage.LOWER, 1, False, "exact", spoilt, headroom=0.0),
        Comparison("reference/eager", Stage.LOWER, 2, True, "exact", Metrics(9, 0), headroom=0.0),
    ]
    item = failing("odd", comparisons=pairs)
    rows = [line.split() for line in failure_text(item).splitlines() if line.startswith("reference/eager")]
    assert rows == [
        ["reference/eager", "1", "exact", "NaN", "for", "0.25", "-∞", "dB", "∞", "%"],
        ["reference/eager", "0", "exact", "900", "ULP", "31", "dB", "200", "%"],
    ]
    pages = written(tmp_path, item)
    assert re.search(r"NaN for 0\.25 .*∞ %", pages["tolerance.md"])
    assert "NaN for 0.25, bound used ∞ %" in pages["junit.xml"]
    worst = next(
        value for value in page_data(pages["report.html"])["pool"] if "nonfinite_mismatches" in value
    )
    assert (worst["sqnr_db"], worst["headroom"]) == ("-inf", "inf")


def test_compare_table_says_what_changed() -> None:
    old = Results(records=[record()])
    new = Results(records=[record(verdict=Verdict.FAIL)])
    assert compare_table(compare_runs(old, old)) == "nothing changed"
    assert "new failures: 1\n" in compare_table(compare_runs(old, new))
    assert "pass -> fail at lower" in compare_table(compare_runs(old, new))


def test_sensitivity_is_reported_where_it_was_measured(tmp_path: Path) -> None:
    assert "sensitivity.md" not in written(tmp_path / "without", record())
    reports = written(
        tmp_path / "with",
        record(operator="aten.add.Tensor", sensitivity=Sensitivity(10, 2, 8)),
        record(
            operator="aten.add.Tensor",
            sample="other",
            sensitivity=Sensitivity(4, 1, 2, ["one element zeroed in output 0: within the tolerance"]),
        ),
        record(operator="aten.exp.default", sample="third"),
    )
    page = reports["sensitivity.md"]
    assert "10 of 11 faults caught (90.9 %) with 2 samples: 10 by the very sample" in page
    assert "3 more changed nothing" in page
    assert re.search(r"aten\.add\.Tensor .*\| 2 +\| 11 +\| 10 +\| 90\.9 % +\| 3", page)
    assert "one element zeroed in output 0: within the tolerance" in page
    assert "aten.exp.default" not in page


def test_a_fault_that_another_sample_of_the_case_catches_is_caught(tmp_path: Path) -> None:
    """Where its graph has the same operators, but for those that come with a sample's shapes."""

    def made(sample: str, operators: dict[str, int], sensitivity: Sensitivity) -> Record:
        delegate = DelegateFacts("tag0", 1, operators, 10, 10, {})
        return record(sample=sample, delegates=[delegate], sensitivity=sensitivity)

    reach = "FLOOR made CEIL (FLOOR 1): the sample's values do not reach it"
    output = "one element zeroed in output 0: within the tolerance"
    page = written(
        tmp_path,
        made("small", {"FLOOR": 1}, Sensitivity(3, 0, 1, [reach, output])),
        made("large", {"FLOOR": 1, "RESHAPE": 2}, Sensitivity(2, 0, 2, [], ["FLOOR made CEIL (FLOOR 1)"])),
        made("other", {"FLOOR": 2}, Sensitivity(2, 0, 1, [reach])),
    )["sensitivity.md"]
    assert "5 of 7 faults caught" in page
    assert "4 by the very sample" in page
    survivors = page.partition("## Survivors")[2]
    assert survivors.count("FLOOR made CEIL") == 1
    assert "other" in survivors
    assert "small" in survivors
