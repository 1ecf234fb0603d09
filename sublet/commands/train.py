"""`sublet train`: learn the weights of the policy `model` from recordings and traces, and measure how good they are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from services.advisor.core.prediction.predictor import Weights
    from sublet.replay.traces.tenants import Packing

FILES = typer.Argument(
    metavar="FILE...",
    help="Recordings and traces as `sublet replay` reads them, or synthetic[:SEED]; without any, "
    "the weights of --weights are evaluated.",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(train)


def train(
    files: Annotated[list[str] | None, FILES] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the weights to this file.")] = None,
    evaluate: Annotated[
        list[str] | None, typer.Option("--evaluate", metavar="FILE", help="Compare with what came in this file.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="POLICY", help="Compare with these, as `sublet replay --policy` has it."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Evaluate these instead of learning; default: those that are shipped.")
    ] = None,
    coverage: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Part of the time in which a need shall stay within its bound.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="Which tenants share a node, and what chance the fit takes.")] = 0,
    step: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="S", help="Seconds from frame to frame, not for recordings.")
    ] = 300.0,
    pods_per_node: Annotated[int, typer.Option(min=0, help="Tenants on a node, 0: all; not for recordings.")] = 12,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Learn the tenants' near-future need for the policy `model`. The same input gives the same weights.

    Use them with SUBLET_ADVISOR__POLICIES__MODEL__WEIGHTS=FILE, or advisor.policies.model.weights in the settings.
    """
    from services.advisor.policies.model import read_weights, shipped_models
    from shared.errors import BadConfig
    from sublet.output import as_text
    from sublet.replay.traces.tenants import Packing
    from sublet.training import report

    if (output and not files) or not (files or evaluate) or (files and weights):
        raise BadConfig(
            "train: want FILE... to learn from, with -o or --evaluate; or --evaluate alone, with --weights or without",
            reason="invalid",
        )
    packing = Packing(pods_per_node=pods_per_node, seed=seed, step_s=step)
    if files:
        learned = _learned(files, coverage, seed, packing)
        models = learned.models
        if output:
            _put(output, learned)
    else:
        try:
            models = read_weights(weights).models if weights else shipped_models()
        except ValueError as error:
            raise BadConfig(f"--weights {error}", reason="invalid") from None
    evaluations = report.evaluate(evaluate or (), models, packing, against or report.AGAINST)
    if as_json:
        typer.echo(as_text(report.document(models, evaluations), "json"))
        return
    typer.echo(report.learned_table(models))
    if evaluations:
        typer.echo(f"\n{report.evaluated_table(evaluations)}")


def _learned(files: list[str], coverage: float, seed: int, packing: "Packing") -> "Weights":
    from sublet.training.learn import TrainingPlan, learn
    from sublet.training.needs import needs_of
    from sublet.training.sources import all_traces

    needs = [needs_of(name, trace) for name, trace in all_traces(files, packing)]
    return learn(needs, TrainingPlan(coverage=coverage, seed=seed))


def _put(goal: Path, learned: "Weights") -> None:
    """Write the file whole, or leave what was there."""
    from shared.adapters.files.replaced import write_whole
    from shared.errors import Unfit

    try:
        write_whole(goal, (learned.model_dump_json(indent=2) + "\n").encode(), mode=0o644)
    except OSError as error:
        raise Unfit(f"cannot write {goal}: {error.strerror or error}", reason="unwritable") from error
