"""`python -m shared.contracts.deploy` writes the lines of `deploy` that name channels or services anew."""

from pathlib import Path

from shared.contracts.deploy.files import written

for path, text in written(Path()).items():
    path.write_text(text)
    print(path)
