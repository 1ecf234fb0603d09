"""`sublet apply`: pods from a YAML file."""

import os
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(apply)


def apply(
    filename: Annotated[str, typer.Option("--filename", "-f", help="YAML file of Pod documents; - is standard input.")],
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
    from sublet.pods.applying import apply_pods, read_documents
    from sublet.terminal.stderr import print_error

    runs_as = asked_user(user, os.environ)
    documents = read_documents(filename)
    for line in apply_pods(open_runtime(writable_settings()), documents, print_error, runs_as):
        typer.echo(line)
