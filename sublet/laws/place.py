"""Where in an author's file an error came from."""

import traceback


def line_at_work(error: BaseException, file: str) -> str:
    """File and line of the deepest of its lines that were at work; "" where none was."""
    # Who calls an extension may raise an error of its own about what was raised.
    seen = {id(error)}
    while (cause := error.__cause__) is not None and id(cause) not in seen:  # `raise e from e` is its own cause
        seen.add(id(cause))
        error = cause
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{lines[-1]}" if lines else ""
