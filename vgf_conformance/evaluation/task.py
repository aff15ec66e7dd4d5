"""Task accuracy: eager, the quantised program and the lowered one on the same examples."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vgf_conformance.cases.task import Example, Program, Task
from vgf_conformance.comparison.intervals import bootstrap, wilson
from vgf_conformance.evaluation.eager import leaves, run_eager, tensors
from vgf_conformance.evaluation.execution import Execution, execute_program
from vgf_conformance.evaluation.fault import Fault
from vgf_conformance.evaluation.walk import Walk, walk_program
from vgf_conformance.lowering import program
from vgf_conformance.lowering.artifact import Artifact
from vgf_conformance.results.record import Score, TaskResult
from vgf_conformance.targets.base import Target
from vgf_conformance.targets.runtime import RuntimeTarget
from vgf_conformance.vocabulary import Finding, Stage, Verdict

EAGER, QUANTISED = "eager", "quantised"
#: The stage that ends with each program; a target other than the reference model stands for run.
_STAGE = {QUANTISED: Stage.QUANTISE, "reference": Stage.LOWER}


@dataclass
class Measurement:
    """The scores of a task's examples, program by program in the order of trust."""

    task: Task
    examples: list[Example]
    scores: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, module: torch.nn.Module) -> Measurement:
        """Score eager first: where an example has no answer, what eager says is right."""

        def eager(*inputs: Any) -> list[torch.Tensor]:
            return tensors(run_eager(module, inputs))

        examples = [
            example
            if example.answer is not None
            else dataclasses.replace(example, answer=task.run(eager, example.inputs))
            for example in task.examples()
        ]
        measured = cls(task, examples)
        measured.add(EAGER, eager)
        return measured

    def add(self, name: str, call: Program) -> None:
        """Score one more program; whatever it raises passes through."""
        found = [
            self.task.metric.score(self.task.run(call, example.inputs), example.answer).reshape(-1)
            for example in self.examples
        ]
        self.scores[name] = torch.cat(found).double().numpy()

    def result(self, target: str) -> tuple[TaskResult, list[Fault]]:
        """The mean of every program up to ``target``; the first that falls too far below eager is a fault."""
        task, metric = self.task, self.task.metric
        interval = wilson if metric.proportion else bootstrap
        result = TaskResult(
            metric=metric.name,
            unit=metric.unit,
            examples=self.scores[EAGER].size,
            interval="95 %, Wilson" if metric.proportion else "95 %, bootstrap",
            drop=task.drop,
            reason=task.reason,
            scores=[
                Score(name, float(np.mean(scores)), *interval(scores))
                for name, scores in self.scores.items()
                if name in (EAGER, *_STAGE, target)
            ],
        )
        eager, *others = result.scores
        # Written so that NaN, which is not less than anything, fails.
        low = next((score for score in others if not eager.mean - score.mean <= task.drop), None)
        if low is None:
            return result, []
        unit = metric.unit and f" {metric.unit}"
        chain = ", ".join(f"{score.mean:.4g} {score.program}" for score in result.scores)
        result.message = (
            f"{metric.name}: {chain}; {low.program} falls {eager.mean - low.mean:.3g}{unit} below eager, "
            f"allowed are {task.drop:g}{unit}"
        )
        stage = _STAGE.get(low.program, Stage.RUN)
        return result, [Fault(Verdict.FAIL, stage, Finding.WRONG, result.message)]


def quantised_program(quantised: program.Program) -> Program:
    """The converted PT2E program as a task calls it."""
    return lambda *inputs: tensors(quantised.walk(leaves(inputs)))


def lowered_program(artifact: Artifact, target: Target) -> Program:
    """The lowered program as a task calls it, or its delegates, on ``target``; raises TargetFailure."""

    def call(*inputs: Any) -> list[torch.Tensor]:
        if isinstance(target, RuntimeTarget):
            done: Execution | Walk = execute_program(artifact, leaves(inputs), target)
        else:
            done = walk_program(artifact, leaves(inputs), target)
        if done.failure is not None:
            raise done.failure
        return done.outputs

    return call
