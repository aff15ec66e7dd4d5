from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import pytest

from tests.results.records import record
from vgf_conformance.results.expectations import (
    CaseId,
    Expectations,
    load_expectations,
    update,
)
from vgf_conformance.results.record import Comparison, Metrics, Record
from vgf_conformance.results.severity import Severity
from vgf_conformance.vocabulary import Finding, Stage, UserError, Verdict

FILE = "operators/test_elementwise.py"
ENTRY = f"""
[[expectation]]
file = "{FILE}"
case = "add"
profile = "INT"
verdict = "fail"
stage = "lower"
reason = "rescale rounds twice"
evidence = "170 LSB at [0, 6]"
versions = {{ executorch = "1.0" }}
"""
VERSIONS = {"executorch": "1.5", "torch": "2.13"}


def load(folder: Path, *entries: str) -> Expectations:
    folder.mkdir(exist_ok=True)
    (folder / "known.toml").write_text("\n".join(entries))
    return load_expectations(folder)


def failing(**more: object) -> Record:
    return record(**{"profile": "INT", "verdict": Verdict.FAIL, **more})  # type: ignore[arg-type]


def test_a_folder_that_is_missing_or_empty_holds_none(tmp_path: Path) -> None:
    assert load_expectations(tmp_path / "none").entries == []
    assert load_expectations(tmp_path).entries == []


def test_find_matches_globs(tmp_path: Path) -> None:
    expectations = load(tmp_path, ENTRY)
    found = expectations.find(FILE, "add", "rank1", "INT", "a8w8-pc", "emulation")
    assert found is not None
    assert found.reason == "rescale rounds twice"
    assert found.source == "known.toml, entry 1"
    assert expectations.find(FILE, "add", "rank1", "FP", "none", "emulation") is None
    assert expectations.find(FILE, "Add", "rank1", "INT", "none", "emulation") is None


@pytest.mark.parametrize("field", ["file", "case", "verdict", "stage", "reason", "evidence", "versions"])
def test_a_required_field_must_be_given(tmp_path: Path, field: str) -> None:
    lines = [line for line in ENTRY.splitlines() if not line.startswith(f"{field} =")]
    with pytest.raises(UserError, match=rf"known\.toml, entry 1 .*{field} must be given"):
        load(tmp_path, "\n".join(lines))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('reason = "rescale rounds twice"', 'reason = ""'), "reason must be given"),
        (('reason = "rescale rounds twice"', 'reason = "  "'), "reason must be a text that is not empty"),
        (('verdict = "fail"', 'verdict = "pass"'), "verdict must be one of fail, unsupported"),
        (('stage = "lower"', 'stage = "link"'), "stage must be one of export"),
        (('stage = "lower"', 'stage = "lower"\nfinding = "odd"'), "finding must be one of"),
        (('stage = "lower"', 'stage = "lower"\nexpires = "soon"'), "expires must be a date"),
        (('stage = "lower"', 'stage = "lower"\nexpires = 2026-01-01T00:00:00'), "expires must be a date"),
        (('stage = "lower"', 'stage = "lower"\nsamples = "a"'), "unknown field samples"),
        (('versions = { executorch = "1.0" }', "versions = {}"), "versions must be given"),
        (('versions = { executorch = "1.0" }', "versions = { torch = 2 }"), "versions must be a table"),
        (('case = "add"', "case = 3"), "case must be a text"),
        (
            ('stage = "lower"', 'stage = "lower"\nworst = 10'),
            "worst must be a table of wrong, nonfinite, lsb",
        ),
        (('stage = "lower"', 'stage = "lower"\nworst = {}'), "worst must be a table"),
        (
            ('stage = "lower"', 'stage = "lower"\nworst = { steps = 1 }'),
            "worst has an unknown measure 'steps'",
        ),
        (('stage = "lower"', 'stage = "lower"\nworst = { lsb = -1 }'), "must give lsb as 0 or more"),
        (('stage = "lower"', 'stage = "lower"\nworst = { lsb = nan }'), "must give lsb as a finite number"),
        (('stage = "lower"', 'stage = "lower"\nworst = { ulp = inf }'), "must give ulp as a finite number"),
        (('stage = "lower"', 'stage = "lower"\nworst = { lsb = "ten" }'), "must give lsb as a finite number"),
        (('stage = "lower"', 'stage = "lower"\nworst = { lsb = true }'), "must give lsb as a finite number"),
        (('stage = "lower"', 'stage = "lower"\nworst = { wrong = 17 }'), "a share from 0 to 1"),
        (
            ('verdict = "fail"', 'verdict = "crash"\nworst = { lsb = 1 }'),
            "worst is for the verdict fail, not crash",
        ),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        load(tmp_path, ENTRY, ENTRY.replace(*change).replace('"INT"', '"FP"'))
    assert "known.toml, entry 2" in str(caught.value)


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"known\.toml: .*line 1"):
        load(tmp_path, "reason = = 1")


def test_other_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not expectations"):
        load(tmp_path, ENTRY.replace("[[expectation]]", "[[expectations]]"))


def test_two_entries_for_one_id_are_both_named(tmp_path: Path) -> None:
    expectations = load(tmp_path, ENTRY, ENTRY.replace('"add"', '"a*"'))
    with pytest.raises(UserError, match=r"known\.toml, entry 1 and known\.toml, entry 2"):
        expectations.find(FILE, "add", "rank1", "INT", "none", "reference")


def test_a_failure_without_entry_is_unexpected() -> None:
    judged = Expectations().apply(failing())
    assert (judged.unexpected, judged.expected) == (True, None)


def test_a_pass_without_entry_is_expected() -> None:
    judged = Expectations().apply(record())
    assert (judged.unexpected, judged.expected) == (False, None)


def test_a_foreseen_failure_carries_its_reason(tmp_path: Path) -> None:
    judged = load(tmp_path, ENTRY).apply(failing())
    assert (judged.unexpected, judged.expected) == (False, "rescale rounds twice")
    assert judged.expectation_note == ""


def test_a_pass_where_a_failure_was_foreseen_is_unexpected(tmp_path: Path) -> None:
    judged = load(tmp_path, ENTRY).apply(record(profile="INT"))
    assert (judged.unexpected, judged.expected) == (True, None)
    assert "expected fail at lower, but it passes: remove the entry" in judged.expectation_note


@pytest.mark.parametrize(
    ("other", "note"),
    [
        ({"verdict": Verdict.CRASH}, "but it is crash at lower"),
        ({"stage": Stage.RUN}, "but it is fail at run"),
    ],
)
def test_another_failure_than_foreseen_is_unexpected(
    tmp_path: Path, other: dict[str, object], note: str
) -> None:
    judged = load(tmp_path, ENTRY).apply(failing(**other))
    assert (judged.unexpected, judged.expected) == (True, None)
    assert note in judged.expectation_note


def test_a_finding_counts_where_the_entry_names_one(tmp_path: Path) -> None:
    expectations = load(tmp_path, ENTRY.replace("stage =", 'finding = "wrong"\nstage ='))
    assert not expectations.apply(failing(finding=Finding.WRONG)).unexpected
    judged = expectations.apply(failing(finding=Finding.RAISED))
    assert judged.unexpected
    assert "but the finding is raised" in judged.expectation_note


def test_an_expired_entry_counts_as_none_and_says_so(tmp_path: Path) -> None:
    expectations = load(tmp_path, ENTRY.replace("stage =", "expires = 2026-03-31\nstage ="))
    expectations.today = datetime.date(2026, 3, 31)
    assert not expectations.apply(failing()).unexpected
    expectations.today = datetime.date(2026, 4, 1)
    judged = expectations.apply(failing())
    assert judged.unexpected
    assert "the known failure expired on 2026-03-31" in judged.expectation_note
    assert not expectations.apply(record(profile="INT")).unexpected


def test_stale_entries_are_those_of_complete_files_that_match_nothing(tmp_path: Path) -> None:
    expectations = load(
        tmp_path,
        ENTRY,
        ENTRY.replace('"add"', '"gone"'),
        ENTRY.replace(FILE, "operators/test_not_collected.py"),
        ENTRY.replace(FILE, "operators/*").replace('"add"', '"elsewhere"'),
    )
    collected = [(FILE, "add", "rank1", "INT", "a8w8-pc", "reference")]
    assert [entry.case for entry in expectations.stale(collected, {FILE})] == ["gone"]
    assert expectations.stale(collected, set()) == []


def grid(failures: set[tuple[str, str, str]], **more: object) -> list[Record]:
    """All of 3 samples x 2 profiles x 2 targets; those of ``failures`` fail."""
    return [
        record(
            sample=sample,
            profile=profile,
            scheme="none" if profile == "FP" else "a8w8-pc",
            target=target,
            verdict=Verdict.FAIL if (sample, profile, target) in failures else Verdict.PASS,
            message=f"off by {len(sample)} at [{'0, ' * len(sample)}1]",
            **more,  # type: ignore[arg-type]
        )
        for sample, profile, target in itertools.product(
            ("a", "bb", "ccc"), ("FP", "INT"), ("reference", "emulation")
        )
    ]


def globs(folder: Path) -> list[tuple[str, ...]]:
    return [tuple(entry.globs[2:]) for entry in load_expectations(folder).entries]


def unexpected(folder: Path, records: list[Record]) -> list[str]:
    expectations = load_expectations(folder)
    return [item.id for item in map(expectations.apply, records) if item.unexpected]


def test_update_merges_a_whole_profile_into_one_entry(tmp_path: Path) -> None:
    records = grid({(s, "INT", t) for s in ("a", "bb", "ccc") for t in ("reference", "emulation")})
    assert update(tmp_path, records, VERSIONS) == [tmp_path / "test_elementwise.toml"]
    assert globs(tmp_path) == [("*", "INT", "a8w8-pc", "*")]
    entry = load_expectations(tmp_path).entries[0]
    assert entry.reason.startswith("REVIEW: off by")
    assert entry.evidence.startswith("6 seen, first ")
    assert entry.versions == VERSIONS
    assert (entry.verdict, entry.stage) == (Verdict.FAIL, Stage.LOWER)
    assert unexpected(tmp_path, records) == []


def test_update_is_exact_for_every_set_of_failures_of_a_small_grid(tmp_path: Path) -> None:
    ids = list(itertools.product(("a", "bb"), ("FP", "INT"), ("reference", "emulation")))
    for number in range(0, 2 ** len(ids), 5):
        failures = {case for bit, case in enumerate(ids) if number >> bit & 1}
        folder = tmp_path / str(number)
        records = grid(failures)
        update(folder, records, VERSIONS)
        assert unexpected(folder, records) == [], failures
        assert len(globs(folder)) <= len(failures)


def test_update_keeps_failures_of_different_kinds_apart(tmp_path: Path) -> None:
    records = [
        failing(sample="a", message="off by 3"),
        failing(sample="b", message="no such operator"),
        failing(sample="c", message="off by 4.5e-3"),
    ]
    update(tmp_path, records, VERSIONS)
    assert sorted(globs(tmp_path)) == [(sample, "INT", "none", "reference") for sample in ("a", "b", "c")]
    assert unexpected(tmp_path, records) == []


def test_update_is_deterministic_and_settles(tmp_path: Path) -> None:
    records = grid({("a", "INT", "reference"), ("bb", "FP", "emulation"), ("ccc", "INT", "reference")})
    update(tmp_path / "one", records, VERSIONS)
    update(tmp_path / "two", records[::-1], VERSIONS)
    one, two = (tmp_path / name / "test_elementwise.toml" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert update(tmp_path / "one", records, VERSIONS) == []


def test_update_removes_entries_that_only_matched_passes(tmp_path: Path) -> None:
    load(tmp_path, ENTRY)
    assert update(tmp_path, [record(profile="INT")], VERSIONS) == [tmp_path / "known.toml"]
    assert not (tmp_path / "known.toml").exists()


def test_update_keeps_entries_of_what_was_not_run_and_of_what_still_fails(tmp_path: Path) -> None:
    load(tmp_path, ENTRY, ENTRY.replace('"add"', '"sub"'))
    update(tmp_path, [failing()], VERSIONS)
    kept = load_expectations(tmp_path).entries
    assert [entry.case for entry in kept] == ["add", "sub"]
    assert {entry.reason for entry in kept} == {"rescale rounds twice"}


def test_update_narrows_an_entry_that_is_partly_wrong(tmp_path: Path) -> None:
    load(tmp_path, ENTRY)
    records = [
        failing(sample="still"),
        record(sample="mended", profile="INT"),
        failing(sample="crashes", verdict=Verdict.CRASH, stage=Stage.RUN, message="SIGSEGV"),
    ]
    update(tmp_path, records, VERSIONS)
    entries = {entry.sample: entry for entry in load_expectations(tmp_path).entries}
    assert set(entries) == {"still", "crashes"}
    assert entries["still"].reason == "rescale rounds twice"
    assert entries["crashes"].reason == "REVIEW: SIGSEGV"
    assert unexpected(tmp_path, records) == []


def test_update_replaces_an_expired_entry_that_still_fails(tmp_path: Path) -> None:
    load(tmp_path, ENTRY.replace("stage =", "expires = 2020-01-01\nstage ="))
    update(tmp_path, [failing(message="off")], VERSIONS)
    assert [entry.reason for entry in load_expectations(tmp_path).entries] == ["REVIEW: off"]


def test_update_escapes_what_a_glob_or_toml_would_misread(tmp_path: Path) -> None:
    records = [
        failing(sample="x[0]*?", message='say "no"\\ \x7f \u2028 \udc80\nsecond line'),
        record(sample="x0ab", profile="INT"),
    ]
    update(tmp_path, records, VERSIONS)
    assert unexpected(tmp_path, records) == []
    assert 'say "no"\\ \x7f' in load_expectations(tmp_path).entries[0].reason


def test_update_refuses_a_failure_without_stage(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="without a stage"):
        update(tmp_path, [failing(stage=None)], VERSIONS)


def test_case_id_reads_like_the_node_id() -> None:
    assert str(CaseId.of(record())) == f"{FILE}::add[rank1-FP-none-reference]"


LAVAPIPE = ENTRY.replace('"lower"', '"run"').replace("verdict", 'driver = "lvp*"\nverdict')


def ran(driver: str, **more: object) -> Record:
    return failing(stage=Stage.RUN, target="emulation", driver=driver, **more)


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("lvp_icd", True),
        ("lvp_icd, emulation layers: graph and tensor", True),
        ("nvidia_icd", False),
        ("", False),
    ],
)
def test_an_entry_may_be_for_some_drivers_alone(tmp_path: Path, driver: str, expected: bool) -> None:
    expectations = load(tmp_path, LAVAPIPE)
    assert (expectations.apply(ran(driver)).expected is not None) == expected
    assert expectations.apply(ran(driver)).unexpected is not expected
    passing = record(profile="INT", target="emulation", driver=driver)
    assert expectations.apply(passing).unexpected is expected


def test_entries_for_several_drivers_do_not_clash(tmp_path: Path) -> None:
    other = LAVAPIPE.replace("lvp*", "nvidia*").replace("rounds twice", "rounds thrice")
    expectations = load(tmp_path, LAVAPIPE, other)
    assert expectations.apply(ran("nvidia_icd")).expected == "rescale rounds thrice"
    assert expectations.apply(ran("lvp_icd")).expected == "rescale rounds twice"
    # Whoever has no driver in mind is told of one.
    assert expectations.find(FILE, "add", "rank1", "INT", "none", "emulation") is not None
    clashing = load(tmp_path, LAVAPIPE, LAVAPIPE.replace("lvp*", "lvp_icd"))
    with pytest.raises(UserError, match="two known failures match"):
        clashing.apply(ran("lvp_icd"))


def test_an_update_on_one_driver_leaves_what_is_known_of_another(tmp_path: Path) -> None:
    load(tmp_path, LAVAPIPE)
    passing = record(profile="INT", target="emulation", driver="nvidia_icd")
    update(tmp_path, [passing], VERSIONS)
    assert load_expectations(tmp_path).entries[0].driver == "lvp*"
    update(tmp_path, [record(profile="INT", target="emulation", driver="lvp_icd")], VERSIONS)
    assert load_expectations(tmp_path).entries == []


def test_a_new_entry_is_for_the_driver_that_failed(tmp_path: Path) -> None:
    """What fails before any driver runs is the same on all of them."""
    update(tmp_path, [ran("nvidia_icd"), failing(case="sub", driver="nvidia_icd")], VERSIONS)
    drivers = {entry.case: entry.driver for entry in load_expectations(tmp_path).entries}
    assert drivers == {"add": "nvidia_icd", "sub": "*"}


WORST = "worst = { wrong = 0.0165, lsb = 10.0, sqnr_db = 69.4 }"
BOUNDED = ENTRY.replace("reason", f"{WORST}\nreason")


def measured(lsb: float | None, wrong: int = 17, sqnr: float | None = 69.4, **more: object) -> Record:
    """A failure with numbers, of 1029 elements."""
    metrics = Metrics(elements=1029, differing=1000, max_lsb=lsb, sqnr_db=sqnr, wrong=wrong)
    stage = more.get("stage", Stage.LOWER)
    assert isinstance(stage, Stage)
    comparison = Comparison("reference/quantised", stage, 0, False, "<= 4 LSB", metrics)
    return failing(comparisons=[comparison], **more)


@pytest.mark.parametrize(
    ("seen", "unexpected"),
    [
        (measured(10.0), False),
        (measured(15.0, wrong=25, sqnr=66.0), False),  # slightly worse
        (measured(5.0, wrong=2, sqnr=80.0), False),  # better
        (measured(None, wrong=17, sqnr=None), False),
        (measured(2209.0), True),
        (measured(10.0, wrong=997), True),
        (measured(10.0, sqnr=40.0), True),
        (measured(float("nan")), True),
    ],
)
def test_a_known_failure_that_is_clearly_worse_is_unexpected(
    tmp_path: Path, seen: Record, unexpected: bool
) -> None:
    assert load(tmp_path, BOUNDED).apply(seen).unexpected is unexpected


def test_a_masked_table_of_rsqrt_is_told_with_both_numbers(tmp_path: Path) -> None:
    judged = load(tmp_path, BOUNDED).apply(measured(2209.0, wrong=997, sqnr=31.2))
    assert (judged.unexpected, judged.expected) == (True, None)
    assert judged.expectation_note == (
        "worse than the known failure (known.toml, entry 1): 96.890% of the elements wrong, known: 1.650%; "
        "2209 LSB, known: 10; SQNR 31.2 dB, known: 69.4"
    )


def test_where_a_bound_is_known_a_failure_without_numbers_is_another(tmp_path: Path) -> None:
    judged = load(tmp_path, BOUNDED).apply(failing())
    assert judged.unexpected
    assert "within a bound, but the failure has no numbers" in judged.expectation_note
    assert not load(tmp_path, ENTRY).apply(failing()).unexpected


def test_a_bound_holds_for_each_record_of_its_entry(tmp_path: Path) -> None:
    expectations = load(tmp_path, BOUNDED)
    records = [measured(2.0, sample="small"), measured(99.0, sample="large")]
    assert [expectations.apply(item).unexpected for item in records] == [False, True]


def test_clearly_better_is_told_by_all_records_of_an_entry(tmp_path: Path) -> None:
    expectations = load(tmp_path, BOUNDED)
    better = [measured(3.0, sample="a"), measured(2.0, sample="b")]
    whole = ["known.toml, entry 1"]
    assert expectations.better(better, whole) == ["known.toml, entry 1 (add): 3 LSB, known: 10"]
    assert expectations.better(better, []) == []
    assert expectations.better([*better, measured(9.0, sample="c")], whole) == []
    assert expectations.better([], whole) == []


def test_an_entry_is_whole_where_none_of_its_cases_is_left_out(tmp_path: Path) -> None:
    expectations = load(tmp_path, BOUNDED)
    one, two = (CaseId(FILE, "add", sample, "INT", "none", "reference") for sample in ("a", "b"))
    other = CaseId(FILE, "sub", "a", "INT", "none", "reference")
    assert expectations.whole([one, two, other], [other]) == ["known.toml, entry 1"]
    assert expectations.whole([one, two, other], [two]) == []
    assert expectations.whole([other], []) == []


def test_entries_without_a_bound_are_named_where_there_are_numbers(tmp_path: Path) -> None:
    expectations = load(tmp_path, ENTRY, BOUNDED.replace('"add"', '"sub"'))
    assert expectations.unbounded([measured(3.0), measured(3.0, case="sub")]) == ["known.toml, entry 1"]
    assert expectations.unbounded([failing()]) == []


COMMENTED = (
    f"# Why: see the notes.\n{BOUNDED}\n# Two of a kind.{ENTRY.replace(chr(34) + 'add', chr(34) + 'sub')}"
)


def test_update_writes_a_missing_bound_and_leaves_all_else_as_it_is_written(tmp_path: Path) -> None:
    load(tmp_path, COMMENTED)
    before = (tmp_path / "known.toml").read_text()
    records = [measured(10.0), measured(3.0, case="sub", sample="a"), measured(2.0, 40, case="sub")]
    assert update(tmp_path, records, VERSIONS) == [tmp_path / "known.toml"]
    assert (tmp_path / "known.toml").read_text().splitlines() == [
        *before.rstrip().splitlines()[:-3],
        "worst = { wrong = 0.03887, lsb = 3.0, sqnr_db = 69.4 }",
        *before.rstrip().splitlines()[-3:],
    ]
    assert unexpected(tmp_path, records) == []
    assert update(tmp_path, records, VERSIONS) == []


def test_update_widens_a_bound_that_is_exceeded_for_review(tmp_path: Path) -> None:
    load(tmp_path, COMMENTED)
    records = [measured(2209.0, wrong=2), failing(case="sub")]
    assert unexpected(tmp_path, records) == [records[0].id]
    update(tmp_path, records, VERSIONS)
    entry, other = load_expectations(tmp_path).entries
    assert entry.worst == Severity(wrong=0.0165, lsb=2209.0, sqnr_db=69.4)
    assert entry.reason == "REVIEW: worse than known: rescale rounds twice"
    assert (other.case, other.worst) == ("sub", None)
    assert unexpected(tmp_path, records) == []
    assert update(tmp_path, records, VERSIONS) == []
    assert "# Why: see the notes." in (tmp_path / "known.toml").read_text()


def test_update_tightens_no_bound(tmp_path: Path) -> None:
    load(tmp_path, BOUNDED)
    assert update(tmp_path, [measured(1.0, wrong=1, sqnr=90.0)], VERSIONS) == []


def test_update_gives_new_entries_a_bound(tmp_path: Path) -> None:
    records = [measured(3.0, sample="a"), measured(7.0, sample="b"), failing(sample="c")]
    update(tmp_path, records, VERSIONS)
    bounds = {entry.sample: entry.worst and entry.worst.lsb for entry in load_expectations(tmp_path).entries}
    assert bounds == {"a": 3.0, "b": 7.0, "c": None}
    assert unexpected(tmp_path, records) == []


def test_update_parts_an_entry_whose_failures_do_not_all_have_numbers(tmp_path: Path) -> None:
    load(tmp_path, ENTRY)
    records = [measured(3.0, sample="a"), failing(sample="b")]
    update(tmp_path, records, VERSIONS)
    bounds = {entry.sample: entry.worst for entry in load_expectations(tmp_path).entries}
    assert bounds == {"a": Severity(wrong=0.01652, lsb=3.0, sqnr_db=69.4), "b": None}
    assert unexpected(tmp_path, records) == []


@pytest.mark.parametrize(
    "text",
    [
        "expectation = [{ " + ", ".join(ENTRY.strip().splitlines()[1:]) + " }]\n",
        ENTRY.replace('"rescale rounds twice"', '"""\nlines\n[[expectation]]\nreason = 1\n"""'),
        ENTRY.replace('"rescale rounds twice"', '"""\nworst = 1\nreason = 2\n"""'),
    ],
)
def test_update_takes_entries_however_they_are_written(tmp_path: Path, text: str) -> None:
    before = load(tmp_path, text).entries[0]
    update(tmp_path, [measured(3.0)], VERSIONS)
    after = load_expectations(tmp_path).entries[0]
    assert (after.reason, after.evidence) == (before.reason, before.evidence)
    assert after.worst == Severity(wrong=0.01652, lsb=3.0, sqnr_db=69.4)


def test_the_known_failures_of_this_project_can_be_read() -> None:
    folder = Path(__file__).parents[2] / "golden" / "expectations"
    assert load_expectations(folder).entries
