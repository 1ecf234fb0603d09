"""`sublet apply`: pods from a YAML file."""

import os
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(apply)


def apply(
    filenames: Annotated[
        list[str],
        typer.Option("--filename", "-f", help="YAML of Pods: file, folder, or - for standard input; may be repeated."),
    ],
    recursive: Annotated[bool, typer.Option("--recursive", "-R", help="Folders in folders too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, and start nothing.")] = False,
    user: Annotated[
        str, typer.Option(metavar="NAME|UID[:GID]", help="As whom the pods run; by default who called sudo.")
    ] = "",
) -> None:
    """Run the pods of a Kubernetes YAML file, detached.

    Images are not run: `command` names a program of this host. Everything is checked before anything is started, and
    if one pod cannot be started, those started before it are ended again. A pod that runs as the file says is left
    alone; one that has finished is run anew.
    """
    from shared.adapters.local.pod_user import asked_user
    from shared.adapters.local.runtime import open_runtime
    from sublet.instance import writable_settings
    from sublet.pods.applying import apply_pods
    from sublet.pods.pod_files import read_files
    from sublet.terminal.stderr import print_error

    runs_as = asked_user(user, os.environ)
    documents = read_files(filenames, recursive=recursive)
    runtime = open_runtime(writable_settings())
    for line in apply_pods(runtime, documents, print_error, runs_as, dry_run=dry_run):
        typer.echo(line)
