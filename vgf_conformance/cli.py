"""The command line: glue only. ``vgf-conformance --help`` teaches."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from vgf_conformance import __version__, files, options
from vgf_conformance.launch import leave_working_directory
from vgf_conformance.options import Parser, decibels, declare, seconds, some_path, some_text
from vgf_conformance.quiet import quiet
from vgf_conformance.targets.runtime_choice import INSTALLED, RuntimeChoice
from vgf_conformance.targets.vulkan import DriverChoice
from vgf_conformance.terminal import complain, say, warn
from vgf_conformance.vocabulary import (
    DEFAULT_TARGETS,
    SCHEMES,
    TARGETS,
    TIME_LIMIT,
    VGF_TARGETS,
    Finding,
    Profile,
    Stage,
    UserError,
    Verdict,
    known_scheme,
    known_target,
)

if TYPE_CHECKING:
    from vgf_conformance.evaluation.isolated import ModelServer
    from vgf_conformance.results.record import Record
    from vgf_conformance.targets.base import Target

    _Commands = argparse._SubParsersAction[Parser]

EXIT_PASS, EXIT_FAIL, EXIT_BAD_INPUT = 0, 1, 2
#: As shells give for SIGINT.
EXIT_INTERRUPTED = 130

#: Options that belong together.
_DRIVER = (options.DRIVER, options.LAYERS, options.EXPECT_DRIVER)
_RUNTIME = (options.RUNTIME_LIBRARY, options.EXECUTOR_RUNNER)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 pass, 1 fail, 2 bad input or usage."""
    leave_working_directory()
    parsed = _parser().parse_args(arguments)
    # A terminated run ends like an interrupted one: what it found so far is printed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _cache(parsed):
            return int(parsed.command(parsed))
    except KeyboardInterrupt:
        complain("interrupted")
        return EXIT_INTERRUPTED
    except UserError as error:
        complain(str(error))
        return EXIT_BAD_INPUT
    except (OSError, MemoryError, RecursionError) as error:
        complain(_last_word(error))
        return EXIT_BAD_INPUT


def _cache(parsed: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    if not getattr(parsed, "no_cache", False):
        return contextlib.nullcontext()
    from vgf_conformance.lowering.cache import empty_cache

    return empty_cache()


def _last_word(error: OSError | MemoryError | RecursionError) -> str:
    """What to say of an error that nothing nearer to its cause has put into words."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this: {str(error) or 'free some, or give less at once'}"
    if isinstance(error, RecursionError):
        return "what was given is nested too deeply to be worked on (or else this is a fault of the harness)"
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {reason}" if error.filename is not None else reason


def _parser() -> Parser:
    parser = Parser(
        prog="vgf-conformance",
        description="Says which PyTorch operators and models work on ExecuTorch's Arm VGF backend, how "
        "accurately, and whose fault a wrong number is.",
        epilog="The suites run under pytest: pytest suites -k add --target emulation",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_doctor(commands)
    _add_capabilities(commands)
    _add_check(commands)
    _add_bisect(commands)
    _add_reduce(commands)
    _add_extract(commands)
    _add_report(commands)
    _add_merge(commands)
    _add_compare(commands)
    _add_pack(commands)
    _add_qualify(commands)
    _add_submission(commands)
    return parser


def _add_doctor(commands: _Commands) -> None:
    doctor = commands.add_parser("doctor", help="what this machine has, what is missing, what to do")
    doctor.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    doctor.set_defaults(command=_doctor)


def _add_capabilities(commands: _Commands) -> None:
    capabilities = commands.add_parser(
        "capabilities",
        help="what a Vulkan driver says of itself",
        description="Reports versions, ids, extensions, features, limits, tensor formats, queues and claimed "
        "operations of the device that a run on the target vulkan would use, as seen through its layers.",
    )
    declare(capabilities.add_argument, *_DRIVER)
    capabilities.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    capabilities.set_defaults(command=_capabilities)


def _add_check(commands: _Commands) -> None:
    check = commands.add_parser(
        "check",
        help="lower, run and judge your own models",
        description="Lowers the models of FILE... through the VGF backend, runs them and compares every "
        "stage with eager PyTorch. Exit status: 0 pass, 1 fail, 2 bad input.",
        epilog="A model file defines model() -> nn.Module and inputs() -> tuple; optionally profiles, "
        "scheme, calibration(), samples(), dynamic_shapes(), configure_quantizer(quantizer), budget, task().",
    )
    check.add_argument("files", nargs="+", type=some_text, metavar="FILE.py")
    declare(
        check.add_argument,
        options.profiles("the file's, or all three"),
        options.schemes("the file's, or a8w8-pc for INT profiles"),
        options.TARGET,
        *_DRIVER,
        options.VALIDATION,
        *_RUNTIME,
        options.SEED,
        options.TIME_LIMIT_OPTION,
        options.NO_CACHE,
    )
    check.add_argument(
        "--min-sqnr",
        type=decibels,
        metavar="DB",
        help="fail where an output keeps less than DB decibels against eager (default: the file's budget, "
        "or none)",
    )
    check.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    check.set_defaults(command=_check)


def _runtime_choice(parsed: argparse.Namespace, targets: Sequence[str]) -> RuntimeChoice:
    return RuntimeChoice.of(parsed.runtime_library, parsed.executor_runner, targets)


def _add_pack_target(command: Parser) -> None:
    command.add_argument(
        "--target",
        choices=VGF_TARGETS,
        default="emulation",
        help="emulation layers in any case, or the driver's own extensions (default: emulation)",
    )
    declare(command.add_argument, *_DRIVER)


def _driver_choice(parsed: argparse.Namespace) -> DriverChoice:
    return DriverChoice(
        parsed.driver, parsed.layers, parsed.expect_driver or "", getattr(parsed, "validation", False)
    )


def _add_bisect(commands: _Commands) -> None:
    bisect = commands.add_parser(
        "bisect",
        help="name the first wrong operator of a model",
        description="Judges the model of FILE as check does, on the reference model and then on emulation. "
        "Of the first failure it names the step of the PyTorch program and the TOSA operator that are wrong "
        "first, and writes a folder that shows it on its own. Exit status: 0 nothing fails, 1 a failure, "
        "2 bad input.",
        epilog="FILE is as for check.",
    )
    bisect.add_argument("file", type=some_text, metavar="FILE.py")
    bisect.add_argument("--profile", type=some_text, default="FP", help="TOSA profile (default: FP)")
    bisect.add_argument(
        "--scheme",
        type=some_text,
        help=f"quantisation scheme: {', '.join(SCHEMES)} (default: the file's for the profile)",
    )
    declare(bisect.add_argument, options.DRIVER, options.SEED)
    bisect.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        type=some_path,
        default=Path("bisect"),
        help="where the folder that shows the operator goes (default: bisect)",
    )
    declare(bisect.add_argument, options.NO_CACHE)
    bisect.set_defaults(command=_bisect)


def _add_reduce(commands: _Commands) -> None:
    reduce = commands.add_parser(
        "reduce",
        help="shrink a failing model to a few operators and small inputs",
        description="Finds the first failure of FILE as check does, leaves out nodes and shrinks inputs for "
        "as long as the rest fails in the same way, and writes that as a new model file. Progress goes to "
        "standard error. Exit status: 0 nothing fails, 1 a failure was reduced, 2 bad input.",
        epilog="FILE is as for check, and so is what is written.",
    )
    reduce.add_argument("file", type=some_text, metavar="FILE.py")
    reduce.add_argument(
        "--profile",
        type=some_text,
        help="TOSA profile (default: the first of the file's, or of all three, that fails)",
    )
    reduce.add_argument(
        "--scheme",
        type=some_text,
        help=f"quantisation scheme: {', '.join(SCHEMES)} (default: the file's for the profile)",
    )
    reduce.add_argument(
        "--target", type=some_text, help=f"where to run: {', '.join(TARGETS)} (default: the first that fails)"
    )
    declare(reduce.add_argument, options.DRIVER, options.SEED, *_RUNTIME, options.TIME_LIMIT_OPTION)
    reduce.add_argument(
        "--budget",
        type=seconds,
        default=600.0,
        help="seconds after which the smallest failure so far is written (default: 600)",
    )
    reduce.add_argument(
        "-o",
        "--output",
        metavar="OUT.py",
        type=some_path,
        help="the file to write (default: FILE_reduced.py in the working directory)",
    )
    declare(reduce.add_argument, options.NO_CACHE)
    reduce.set_defaults(command=_reduce)


def _add_extract(commands: _Commands) -> None:
    extract = commands.add_parser("extract", help="write each delegate's VGF out of a .pte program")
    extract.add_argument("program", metavar="MODEL.pte", type=some_path)
    extract.add_argument("-o", "--output", metavar="DIR", type=some_path, required=True)
    extract.set_defaults(command=_extract)


def _add_report(commands: _Commands) -> None:
    report = commands.add_parser(
        "report", help="make matrix.md, tolerance.md, junit.xml and report.html from results"
    )
    report.add_argument(
        "results", nargs="+", metavar="RESULTS", type=some_path, help="results.jsonl, or a folder with one"
    )
    report.add_argument("-o", "--output", metavar="DIR", type=some_path, required=True)
    report.set_defaults(command=_report)


def _add_merge(commands: _Commands) -> None:
    merge = commands.add_parser(
        "merge",
        help="join the results of shards, and say what is missing",
        description="Joins results of shards (--shard I/N), writes results and reports, and names lost "
        "shards, planned cases without a record, and cases that are there twice. Exit status: 0 all is there "
        "and nothing fails unexpectedly, 1 otherwise, 2 bad input.",
    )
    merge.add_argument(
        "results", nargs="+", metavar="RESULTS", type=some_path, help="results.jsonl, or a folder with one"
    )
    merge.add_argument("-o", "--output", metavar="DIR", type=some_path, required=True)
    merge.set_defaults(command=_merge)


def _add_compare(commands: _Commands) -> None:
    compare = commands.add_parser(
        "compare",
        help="what changed from one run to the next, or how two drivers differ",
        description="Of two runs on one driver: new failures, what is fixed, delegation gained and lost. Of "
        "results on two drivers: verdicts, bits, headroom and seconds by operator, and between two "
        "submissions how far outputs are apart. Exit status: 0 nothing is worse (drivers: same verdicts), 1 "
        "otherwise, 2 bad input.",
    )
    compare.add_argument("old", metavar="OLD", type=some_path, help="results, or a submission")
    compare.add_argument("new", metavar="NEW", type=some_path, help="results, or a submission")
    compare.add_argument(
        "-o", "--output", metavar="FILE.md", type=some_path, help="write the comparison here too"
    )
    compare.set_defaults(command=_compare)


def _add_pack(commands: _Commands) -> None:
    pack = commands.add_parser(
        "pack",
        help="golden packs: frozen cases that run without PyTorch",
        description="A pack is one file with lowered cases, their inputs and what to expect of a driver.",
    )
    actions = pack.add_subparsers(required=True, metavar="ACTION")
    build = actions.add_parser("build", help="make a pack of suites (needs PyTorch)")
    build.add_argument(
        "suites", nargs="+", metavar="SUITE", type=some_path, help="a suite file, or a folder of them"
    )
    build.add_argument("-o", "--output", metavar="FILE.zip", type=some_path, required=True)
    declare(build.add_argument, options.TIER, options.NO_CACHE)
    build.set_defaults(command=_pack_build)
    run = actions.add_parser(
        "run",
        help="run a pack on a Vulkan driver and judge it",
        description="Runs every case of the pack and writes records and reports. Exit status: 0 all pass, "
        "1 some do not, 2 bad input.",
    )
    run.add_argument("file", metavar="FILE.zip", type=some_path)
    _add_pack_target(run)
    declare(run.add_argument, options.VALIDATION, options.SHARD, options.RESUME)
    run.add_argument(
        "-o",
        "--output",
        metavar="RESULTS",
        type=some_path,
        required=True,
        help="folder of records and reports",
    )
    run.add_argument(
        "-k",
        dest="words",
        metavar="WORDS",
        default="",
        help="only cases whose ids contain all of these words",
    )
    run.set_defaults(command=_pack_run)
    verify = actions.add_parser(
        "verify",
        help="check a pack, or judge outputs that a device gave for it",
        description="Checks the manifest and every hash. With --outputs, judges the outputs in a folder that "
        "`pack unpack` made and a scenario runner ran in. Exit status: 0 sound (and all pass), 1 some "
        "outputs do not pass, 2 bad input.",
    )
    verify.add_argument("file", metavar="FILE.zip", type=some_path)
    verify.add_argument(
        "--outputs", metavar="DIR", type=some_path, help="the folder that came back from the device"
    )
    verify.set_defaults(command=_pack_verify)
    listing = actions.add_parser("list", help="print the ids of its cases, without a target")
    listing.add_argument("file", metavar="FILE.zip", type=some_path)
    listing.set_defaults(command=_pack_list)
    unpack = actions.add_parser("unpack", help="lay a pack out for the stand-alone scenario runner")
    unpack.add_argument("file", metavar="FILE.zip", type=some_path)
    unpack.add_argument("-o", "--output", metavar="DIR", type=some_path, required=True)
    unpack.set_defaults(command=_pack_unpack)


def _add_qualify(commands: _Commands) -> None:
    qualify = commands.add_parser(
        "qualify",
        help="run a pack twice on a driver and write a submission",
        description="Runs every case of the pack twice and writes a folder with statement, capability "
        "report, records, logs and raw outputs. A run that was cut short goes on. Exit status: 0 all pass, "
        "with the same outputs in both runs, 1 some do not, 2 bad input.",
    )
    qualify.add_argument("file", metavar="FILE.zip", type=some_path)
    _add_pack_target(qualify)
    qualify.add_argument(
        "--product", metavar="TEXT", type=some_text, required=True, help="what is qualified, in one line"
    )
    shard = options.SHARD.but(default="1/1", help="only this part, as 1/4: one folder takes all")
    declare(qualify.add_argument, shard)
    qualify.add_argument(
        "-o", "--output", metavar="DIR", type=some_path, required=True, help="the submission"
    )
    qualify.set_defaults(command=_qualify)


def _add_submission(commands: _Commands) -> None:
    submission = commands.add_parser("submission", help="what a vendor hands in: see qualify")
    actions = submission.add_subparsers(required=True, metavar="ACTION")
    verify = actions.add_parser(
        "verify",
        help="check a submission, and judge its outputs again",
        description="Prints that the submission is accepted, or each reason why it is not, a line each. Exit "
        "status: 0 accepted, 1 refused, 2 bad input.",
    )
    verify.add_argument("folder", metavar="DIR", type=some_path)
    verify.add_argument("--pack", metavar="FILE.zip", type=some_path, required=True)
    verify.add_argument(
        "--mandatory", metavar="FILE", type=some_path, help="ids that it must hold (default: this release's)"
    )
    verify.add_argument(
        "--allow-waived-mandatory",
        action="store_true",
        help="let waivers excuse mandatory cases too; the summary tells how many",
    )
    verify.set_defaults(command=_submission_verify)


def _doctor(parsed: argparse.Namespace) -> int:
    from vgf_conformance.doctor import examine, render, to_json

    diagnosis = examine()
    say(json.dumps(to_json(diagnosis), indent=2) if parsed.json else render(diagnosis))
    return EXIT_PASS if diagnosis.healthy else EXIT_FAIL


def _capabilities(parsed: argparse.Namespace) -> int:
    from vgf_conformance.report.capabilities import capability_text
    from vgf_conformance.targets.capabilities import platform

    report = platform("vulkan", _driver_choice(parsed)).to_json()
    say(json.dumps(report, indent=2) if parsed.json else capability_text(report))
    return EXIT_PASS


def _check(parsed: argparse.Namespace) -> int:
    profiles = tuple(Profile.parse(text) for text in parsed.profile)
    schemes = tuple(known_scheme(text) for text in parsed.scheme)
    targets = tuple(known_target(text) for text in parsed.target) or DEFAULT_TARGETS
    runtime = _runtime_choice(parsed, targets)
    _require_lowering()
    from vgf_conformance.evaluation.check import Selection, check_files
    from vgf_conformance.report.check import print_json, print_tables

    choice = _driver_choice(parsed)
    selection = Selection(profiles, schemes, targets, parsed.seed, choice, runtime, parsed.min_sqnr)
    with _models(targets, choice, parsed.time_limit, runtime) as (server, opened):
        found = check_files(parsed.files, selection, opened, server)
        records = print_json(found) if parsed.json else print_tables(found)
    return _status(records)


def _bisect(parsed: argparse.Namespace) -> int:
    profile = Profile.parse(parsed.profile)
    scheme = known_scheme(parsed.scheme) if parsed.scheme else None
    _require_lowering()
    files.require_folder(parsed.output)
    answer = f"{parsed.file}: passes on the reference model and on emulation, so no operator is wrong"
    code = EXIT_PASS
    with _models(["emulation"], DriverChoice(parsed.driver)) as (server, opened):
        work = "vgf_conformance.evaluation.bisect:bisect_file"
        for _, text in server.run(work, parsed.file, opened, profile, scheme, parsed.seed, parsed.output):
            answer, code = text, EXIT_FAIL
    say(answer)
    return code


def _reduce(parsed: argparse.Namespace) -> int:
    profiles = (Profile.parse(parsed.profile),) if parsed.profile else ()
    schemes = (known_scheme(parsed.scheme),) if parsed.scheme else ()
    targets = (known_target(parsed.target),) if parsed.target else DEFAULT_TARGETS
    runtime = _runtime_choice(parsed, targets)
    _require_lowering()
    output = parsed.output or Path(f"{Path(parsed.file).stem}_reduced.py")
    files.require_place(output, ".py")
    files.require_not_read(output, [Path(parsed.file)])
    choice = DriverChoice(parsed.driver)
    options = (profiles, schemes, targets, parsed.seed, parsed.budget, choice, runtime)
    answer, code = f"{parsed.file}: nothing fails, so there is nothing to reduce", EXIT_PASS
    with _models(targets, choice, parsed.time_limit, runtime) as (server, opened):
        work = "vgf_conformance.reduction.reduce:reduce_file"
        for word, text in server.run(work, parsed.file, opened, options, output):
            if word == "progress":
                warn(f"reduce: {text}")
            else:
                answer, code = text, EXIT_FAIL
    say(answer)
    return code


@contextlib.contextmanager
def _models(
    targets: Sequence[str],
    choice: DriverChoice,
    time_limit: float = TIME_LIMIT,
    runtime: RuntimeChoice = INSTALLED,
) -> Iterator[tuple[ModelServer, Mapping[str, Target]]]:
    """What evaluates model files, with the targets to do it on; raises UserError where these are missing."""
    from vgf_conformance.evaluation.isolated import ModelServer
    from vgf_conformance.targets.opening import open_targets

    with tempfile.TemporaryDirectory(prefix="vgf-conformance-") as folder:
        opened = open_targets(targets, choice, Path(folder), time_limit, runtime)
        with ModelServer() as server:
            yield server, opened


def _require_lowering() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("torch", "executorch") if find_spec(name) is None]
    if missing:
        raise UserError(
            f"{' and '.join(missing)} not installed: pip install 'vgf-conformance[lowering]' (see README)"
        )


def _status(records: Sequence[Record]) -> int:
    if any(map(_needs_fixing, records)):
        return EXIT_BAD_INPUT
    passed = {_configuration(record) for record in records if record.verdict is Verdict.PASS}
    return EXIT_PASS if all(_passes(record, passed) for record in records) else EXIT_FAIL


def _passes(record: Record, passed: Set[tuple[str, ...]]) -> bool:
    """Whether the record stands for no failure, given the configurations that ``passed`` on some target.

    What the reference model cannot run, such as custom shaders, is judged where another target runs it.
    """
    beyond_reference = record.verdict is Verdict.UNSUPPORTED and record.target == "reference"
    return record.verdict is Verdict.PASS or (beyond_reference and _configuration(record) in passed)


def _configuration(record: Record) -> tuple[str, ...]:
    return record.file, record.sample, str(record.profile), record.scheme


def _needs_fixing(record: Record) -> bool:
    """Whether the user has to fix a file, a model that torch.export refuses, or the converter."""
    unlaunched = record.verdict is Verdict.ERROR and record.stage is Stage.CONVERT
    return record.finding is Finding.INPUT or record.stage is Stage.EXPORT or unlaunched


def _extract(parsed: argparse.Namespace) -> int:
    from vgf_conformance.formats.pte import FILE_LIMIT, read_delegates
    from vgf_conformance.untrusted import BadFile, Malformed, read_bytes

    try:
        delegates = read_delegates(read_bytes(parsed.program, FILE_LIMIT))
    except Malformed as error:
        raise BadFile(parsed.program, str(error)) from error
    for number, delegate in enumerate(delegates):
        path = parsed.output / f"delegate{number}.vgf"
        files.write(path, delegate)
        say(f"{path}  {len(delegate)} bytes")
    return EXIT_PASS


def _report(parsed: argparse.Namespace) -> int:
    from vgf_conformance.report import write_reports
    from vgf_conformance.results.merge import merge
    from vgf_conformance.results.store import read_results, results_file

    results = merge([read_results([path]) for path in parsed.results])
    for warning in results.warnings:
        complain(warning)
    if not results.records:
        raise UserError(f"{', '.join(map(str, parsed.results))}: no records to report")
    say("\n".join(map(str, write_reports(results, parsed.output, map(results_file, parsed.results)))))
    # The reports hold every whole record, but a script has to know that the run was cut short.
    return EXIT_BAD_INPUT if results.torn else EXIT_PASS


def _merge(parsed: argparse.Namespace) -> int:
    from vgf_conformance.report.merged import merge_files

    return EXIT_PASS if merge_files(parsed.results, parsed.output) else EXIT_FAIL


def _compare(parsed: argparse.Namespace) -> int:
    from vgf_conformance.comparison.drivers import compare_drivers, on_two_drivers, side
    from vgf_conformance.qualification.sides import read_side
    from vgf_conformance.report import compare_table
    from vgf_conformance.report.drivers import drivers_page, drivers_text
    from vgf_conformance.report.markdown import code, document
    from vgf_conformance.results.compare import compare_runs

    if parsed.output:
        files.require_place(parsed.output, ".md")
    (old, look_old), (new, look_new) = read_side(parsed.old), read_side(parsed.new)
    if on_two_drivers(old, new):
        comparison = compare_drivers(side(old, look_old), side(new, look_new))
        text, good, page = drivers_text(comparison), comparison.agree, drivers_page(comparison)
    else:
        changes = compare_runs(old, new)
        text, good = compare_table(changes), not changes.worse
        page = document("Two runs", ("What changed", code(text)))
    if parsed.output:
        files.write(parsed.output, page)
    say(text)
    return EXIT_PASS if good else EXIT_FAIL


def _pack_build(parsed: argparse.Namespace) -> int:
    _require_lowering()
    files.require_place(parsed.output, ".zip")
    with quiet():
        from vgf_conformance.packs.build import build_pack

    def say(text: str) -> None:
        warn(f"pack: {text}")

    manifest = build_pack(parsed.suites, parsed.tier, parsed.output, say)
    say(f"{parsed.output}: {len(manifest.cases)} cases, {len(manifest.left_out)} left out")
    return EXIT_PASS


def _pack_run(parsed: argparse.Namespace) -> int:
    from vgf_conformance.packs.pack import open_pack
    from vgf_conformance.packs.session import run_pack
    from vgf_conformance.results.shards import Shard

    shard = Shard.parse(parsed.shard) if parsed.shard else None
    with open_pack(parsed.file) as pack:
        passed = run_pack(
            pack,
            parsed.words.split(),
            parsed.target,
            _driver_choice(parsed),
            parsed.output,
            shard=shard,
            resume=parsed.resume,
        )
    return EXIT_PASS if passed else EXIT_FAIL


def _pack_verify(parsed: argparse.Namespace) -> int:
    from vgf_conformance.packs.folder import judge_outputs
    from vgf_conformance.packs.pack import open_pack
    from vgf_conformance.report import summary_table
    from vgf_conformance.results.merge import Results

    with open_pack(parsed.file) as pack:
        pack.verify()
        say(pack.summary())
        if parsed.outputs is None:
            return EXIT_PASS
        records = judge_outputs(pack, parsed.outputs)
    say(summary_table(Results(records=records)))
    return EXIT_PASS if all(record.verdict is Verdict.PASS for record in records) else EXIT_FAIL


def _pack_list(parsed: argparse.Namespace) -> int:
    from vgf_conformance.packs.pack import open_pack

    with open_pack(parsed.file) as pack:
        say("\n".join(case.id for case in pack.manifest.cases))
    return EXIT_PASS


def _pack_unpack(parsed: argparse.Namespace) -> int:
    from vgf_conformance.packs.folder import unpack
    from vgf_conformance.packs.pack import open_pack

    with open_pack(parsed.file) as pack:
        pack.verify()
        unpack(pack, parsed.output)
    say(f"{parsed.output}: see README.txt there")
    return EXIT_PASS


def _qualify(parsed: argparse.Namespace) -> int:
    from vgf_conformance.packs.pack import open_pack
    from vgf_conformance.qualification.machine import open_machine
    from vgf_conformance.qualification.qualify import qualify
    from vgf_conformance.results.shards import Shard

    shard = Shard.parse(parsed.shard)
    with open_pack(parsed.file) as pack:
        pack.verify()
        with open_machine(parsed.target, _driver_choice(parsed)) as machine:
            passed = qualify(pack, machine, parsed.product, parsed.output, shard)
    return EXIT_PASS if passed else EXIT_FAIL


def _submission_verify(parsed: argparse.Namespace) -> int:
    from vgf_conformance.packs.pack import open_pack
    from vgf_conformance.qualification.mandatory import mandatory_cases
    from vgf_conformance.qualification.verify import verify

    mandatory = mandatory_cases(parsed.mandatory)
    with open_pack(parsed.pack) as pack:
        pack.verify()
        found = verify(
            parsed.folder,
            pack,
            mandatory,
            datetime.date.today(),
            allow_waived_mandatory=parsed.allow_waived_mandatory,
        )
    say("\n".join(found.lines()))
    return EXIT_FAIL if found.reasons else EXIT_PASS


if __name__ == "__main__":
    sys.exit(main())
