"""What shells complete, from the parser of the command line: each script asks the command itself at a TAB."""

from typer.completion import get_completion_script  # type: ignore[attr-defined] # no other way to a shell's script

PROGRAM = "sublet"
PLACES = {
    "bash": f"bash-completion/completions/{PROGRAM}",
    "zsh": f"zsh/vendor-completions/_{PROGRAM}",
    "fish": f"fish/vendor_completions.d/{PROGRAM}.fish",
}
"""Below /usr/share, where each shell looks by itself."""
AT_FIRST = '\nif [[ "${funcstack[1]}" = _sublet ]]; then _sublet_completion "$@"; fi'
"""zsh reads the file at the first TAB, as the body of a function: it answers that TAB as well."""


def scripts() -> dict[str, str]:
    """Each shell's script by its place."""
    return {place: _script(shell) + "\n" for shell, place in PLACES.items()}


def _script(shell: str) -> str:
    script = get_completion_script(prog_name=PROGRAM, complete_var=f"_{PROGRAM.upper()}_COMPLETE", shell=shell)
    return script + AT_FIRST if shell == "zsh" else script
