"""The script of report.html in a real Chromium: what a person sees, clicks and types."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.report.synthetic import synthetic
from tests.report.test_reports import NASTY, odd_records
from tests.results.records import record
from vgf_conformance.report import write_reports
from vgf_conformance.results.merge import Results
from vgf_conformance.results.record import Comparison, Metrics, Record
from vgf_conformance.terminal import visible
from vgf_conformance.vocabulary import Stage, Verdict

pytest.importorskip("selenium", reason="selenium is not installed: pip install -e '.[browser]'")

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER),
    reason="Chromium is not installed (Debian: apt-get install chromium chromium-driver)",
)

RUN = synthetic(2)
MANY = 7000


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # Named, so that selenium looks for no driver elsewhere.
    driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
    yield driver
    driver.quit()


class Page:
    """A report in the browser, by what it shows."""

    def __init__(self, browser: webdriver.Chrome, path: Path) -> None:
        self.browser = browser
        self.address = path.as_uri()
        self.load()

    def load(self, fragment: str = "") -> None:
        # From elsewhere: a change of the fragment alone loads nothing.
        self.browser.get("about:blank")
        self.browser.get(self.address + fragment)

    def all(self, selector: str) -> list[WebElement]:
        found: list[WebElement] = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return found

    def one(self, selector: str) -> WebElement:
        (found,) = self.all(selector)
        return found

    def button(self, text: str) -> WebElement:
        return next(item for item in self.all("button") if text in item.text)

    @property
    def listed(self) -> list[str]:
        """The ids of the cases that are listed."""
        script = "return [...document.querySelectorAll('.case')].map(node => node.dataset.id)"
        found: list[str] = self.browser.execute_script(script)
        return found

    @property
    def count(self) -> str:
        text: str = self.one(".count").text
        return text

    def choose(self, title: str, value: str) -> None:
        Select(self.one(f"select[aria-label='{title}']")).select_by_visible_text(value)

    def query(self, text: str) -> None:
        field = self.one("input[type=search]")
        field.clear()
        field.send_keys(text)

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    @property
    def focused(self) -> WebElement:
        found: WebElement = self.browser.switch_to.active_element
        return found

    def until(self, condition: Callable[[], bool]) -> None:
        WebDriverWait(self.browser, 20).until(lambda browser: condition())

    @property
    def errors(self) -> list[str]:
        """What the console has said since the last look."""
        return [entry["message"] for entry in self.browser.get_log("browser")]


Open = Callable[[Results], Page]


@pytest.fixture
def open_page(browser: webdriver.Chrome, tmp_path: Path) -> Iterator[Open]:
    pages: list[Page] = []

    def make(results: Results) -> Page:
        write_reports(results, tmp_path)
        pages.append(Page(browser, tmp_path / "report.html"))
        return pages[-1]

    yield make
    assert [page.errors for page in pages] == [[] for _ in pages]


def ids(wanted: Callable[[Record], bool], records: list[Record] = RUN.records) -> list[str]:
    """The ids of the records that are wanted, in the page's order: unexpected, expected failures, passes."""

    def place(item: Record) -> tuple[int, str]:
        return 0 if item.unexpected else 1 if item.verdict is not Verdict.PASS else 2, item.id

    return [item.id for item in sorted(filter(wanted, records), key=place)]


def test_filters_narrow_the_list(open_page: Open) -> None:
    page = open_page(RUN)
    everything = f"{len(RUN.records)} of {len(RUN.records)} cases"
    assert page.count == everything
    page.choose("verdict", "unexpected")
    assert page.listed == ids(lambda item: item.unexpected)
    page.choose("target", "emulation")
    assert page.listed == ids(lambda item: item.unexpected and item.target == "emulation")
    page.choose("verdict", "any verdict")
    page.choose("stage", "lower")
    wrong = ids(lambda item: item.stage is Stage.LOWER and item.target == "emulation")
    assert page.listed == wrong != []
    page.button("cases").click()
    assert page.count == everything
    assert {Select(item).first_selected_option.text[:3] for item in page.all("select")} == {"any"}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("conv2d", lambda name: "conv2d" in name),
        ("CONV2D and INT and not pt", lambda name: "conv2d" in name and "int" in name and "pt" not in name),
        ("(exp or log) and rank2", lambda name: ("exp" in name or "log" in name) and "rank2" in name),
        ("exp rank1", lambda name: "exp" in name and "rank1" in name),
        ("no such case", lambda name: False),
        ("(", lambda name: True),
    ],
)
def test_the_query_is_pytests(query: str, wanted: Callable[[str], bool], open_page: Open) -> None:
    page = open_page(RUN)
    page.query(query)
    expected = ids(lambda item: wanted(item.id.lower()))
    assert page.count == f"{len(expected)} of {len(RUN.records)} cases"
    assert page.listed == expected[:100]
    assert bool(page.all(".empty")) == (not expected)


def test_a_cell_leads_to_its_cases_and_a_case_to_its_details(open_page: Open) -> None:
    page = open_page(RUN)
    row = next(item for item in page.all(".matrix tbody tr") if item.text.startswith("aten.gelu.default"))
    row.find_elements(By.CSS_SELECTOR, "td.cell button")[1].click()
    chosen = ids(lambda item: (item.case, item.scheme, item.target) == ("gelu", "none", "emulation"))
    assert page.listed == chosen
    page.all(".case > summary")[0].click()
    page.until(lambda: bool(page.all(".case[open] .body")))
    body = page.one(".case[open] .body").text
    assert "emulation differs from reference:\n  output 0, 12 of 1024 elements, worst at [0, 6]" in body
    assert "TOSA ERF is emulated by a table of 512 entries" in body
    assert f'vgf-conformance run "{chosen[0]}"' in body
    page.one(".chip").click()
    assert page.listed == ids(lambda item: (item.scheme, item.target) == ("none", "emulation"))[:100]


def test_a_link_opens_its_case(open_page: Open) -> None:
    page = open_page(RUN)
    wanted = ids(lambda item: item.case == "mobilenet_v2" and item.target == "reference")[-1]
    page.load("#case=" + quote(wanted, safe=""))
    assert page.one(".case[open]").get_attribute("data-id") == wanted
    # Nothing is opened by a link to a case that is none, and nothing breaks.
    for fragment in ("#case=elsewhere", "#case=%E0%A4%A"):
        page.load(fragment)
        assert not page.all(".case[open]")
        assert page.count == f"{len(RUN.records)} of {len(RUN.records)} cases"


def test_all_of_it_works_by_keyboard(open_page: Open) -> None:
    page = open_page(RUN)
    cell = page.all(".matrix td.cell button")[0]
    page.browser.execute_script("arguments[0].focus()", cell)
    assert page.one("#tip").is_displayed()
    page.press(Keys.ENTER)
    chosen = page.listed
    assert 0 < len(chosen) < len(RUN.records)
    # The search field comes next, not the rest of the matrix.
    page.press(Keys.TAB, *"rank1")
    assert [name for name in chosen if "rank1" in name] == page.listed
    for _ in range(10):
        if page.focused.tag_name == "summary":
            break
        page.press(Keys.TAB)
    assert page.focused.tag_name == "summary"
    page.press(Keys.ENTER)
    page.until(lambda: bool(page.all(".case[open] .body")))
    page.press(Keys.ENTER)
    assert not page.all(".case[open]")


def test_a_file_of_the_matrix_folds(open_page: Open) -> None:
    page = open_page(RUN)
    folded = page.one(".matrix tbody:first-of-type .group button")
    shown = len([row for row in page.all(".matrix tbody tr") if row.is_displayed()])
    page.browser.execute_script("arguments[0].focus()", folded)
    page.press(Keys.SPACE)
    rows = [row for row in page.all(".matrix tbody tr") if row.is_displayed()]
    members = len(page.all(".matrix tbody:first-of-type tr")) - 1
    assert len(rows) == shown - members < shown
    assert folded.get_attribute("aria-expanded") == "false"


def test_nan_is_shown_for_what_it_is(open_page: Open) -> None:
    metrics = Metrics(9, 1, max_abs=1e-4, max_ulp=3.0, sqnr_db=78.0, nonfinite_mismatches=1)
    metrics.worst_index, metrics.worst_actual, metrics.worst_expected = (4,), float("nan"), 0.25
    pair = Comparison("reference/eager", Stage.LOWER, 0, False, "exact", metrics, headroom=0.0)
    page = open_page(Results(records=[record(verdict=Verdict.FAIL, unexpected=True, comparisons=[pair])]))
    page.one(".case > summary").click()
    page.until(lambda: bool(page.all(".case[open] .body")))
    cells = [cell.text for cell in page.all(".case[open] .body tbody tr:first-child td")]
    assert cells[5:8] == ["NaN for 0.25", "-∞ dB", "✗ ∞ %"]


def test_a_tip_goes_by_escape(open_page: Open) -> None:
    page = open_page(RUN)
    page.browser.execute_script("arguments[0].focus()", page.all(".matrix td.cell button")[0])
    assert page.one("#tip").is_displayed()
    page.press(Keys.ESCAPE)
    assert not page.one("#tip").is_displayed()


def test_an_empty_run(open_page: Open) -> None:
    page = open_page(Results())
    assert page.count == "0 of 0 cases"
    assert page.one(".empty").text == "No case matches these filters."
    page.query("add")
    assert page.count == "0 of 0 cases"
    assert page.all("#worst, #errors, #models") == []


def many() -> Results:
    made = synthetic(-(-MANY // len(synthetic(1).records))).records[:MANY]
    return Results(records=made)


def test_seven_thousand_records(open_page: Open) -> None:
    results = many()
    page = open_page(results)
    timing = "const [it] = performance.getEntriesByType('navigation'); return it.loadEventEnd - it.fetchStart"
    assert page.browser.execute_script(timing) < 15_000
    assert page.count == "7,000 of 7,000 cases"
    assert len(page.listed) == 100
    # Scrolling to the end draws the next ones.
    page.browser.execute_script("document.querySelector('footer').scrollIntoView()")
    page.until(lambda: len(page.listed) >= 200)
    expected = ids(lambda item: True, results.records)
    assert page.listed[:200] == expected[:200]
    page.query("mobilenet_v2 and rank300")
    assert page.listed == ids(lambda item: "mobilenet_v2[rank300-" in item.id, results.records)
    last = expected[-1]
    page.load("#case=" + quote(last, safe=""))
    assert page.one(".case[open]").get_attribute("data-id") == last


def hostile() -> list[Record]:
    names = ("constructor", "__proto__", "toString", "hasOwnProperty")
    made = [record(case=name, sample=name, operator=name, about={name: NASTY}) for name in names]
    return [*odd_records(), *(dataclasses.replace(item, kind="model") for item in made)]


def test_hostile_records_are_text(open_page: Open) -> None:
    records = hostile()
    page = open_page(Results(records=records, warnings=[NASTY]))
    assert page.count == f"{len(records)} of {len(records)} cases"
    assert len(page.all("script")) == 2
    assert visible(NASTY).split("\n")[0][:20] in page.one("#notes").text
    for case in page.all(".case > summary"):
        page.browser.execute_script("arguments[0].click()", case)
    page.until(lambda: len(page.all(".case[open] .body")) == len(records))
    assert "</script><script>alert(1)</script>" in page.one("main").text
    assert len(page.all("script")) == 2
    for button in page.all(".matrix td.cell button, .errors button"):
        page.browser.execute_script("arguments[0].click()", button)
        assert page.listed
    page.button("cases").click()
    page.query("__proto__")
    assert len(page.listed) == 1
