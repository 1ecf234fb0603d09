"""What measurements on this host share: a run of Sublet on its cgroups, and pods in it."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from shared.settings import CommonSettings
from sublet.host.session import Session


def dynamic_config(state_dir: Path) -> Path:
    """The file that central hands on to the services while they run."""
    return state_dir.parent / "dynamic.yaml"


@asynccontextmanager
async def sublet(settings: dict[str, object], *, one_process: bool = False) -> AsyncIterator[Session]:
    """Sublet on this host's own cgroups, with its own state directory; everything is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        state_dir = Path(folder) / "state"
        file = Path(folder) / "settings.yaml"
        file.write_text(json.dumps({"central": {"config_file": str(dynamic_config(state_dir))}} | settings))
        session = Session(
            CommonSettings(state_dir=state_dir, node="bench"),
            nats_port=0,
            one_process=one_process,
            forget=True,
            say=lambda _line: None,
            extra_env={"SUBLET_CONFIG": str(file)},
        )
        os.environ["SUBLET_STATE_DIR"] = str(state_dir)
        await session.start()
        try:
            yield session
        finally:
            left = await session.stop()
            if left:
                raise RuntimeError(f"left behind: {left}")


async def pod(qos: str, name: str, *command: str, cpu: str = "100m", memory: str = "64Mi", pipes: bool = False
              ) -> asyncio.subprocess.Process:  # fmt: skip
    """Start a pod with `sublet run` in the foreground of a background process."""
    pipe = asyncio.subprocess.PIPE if pipes else asyncio.subprocess.DEVNULL
    words = [
        sys.executable,
        "-m",
        "sublet",
        "run",
        "--user",
        str(os.geteuid()),
        "--qos",
        qos,
        "--cpu",
        cpu,
        "--memory",
        memory,
        "--name",
        name,
        "--",
    ]
    return await asyncio.create_subprocess_exec(
        *words, *command, stdin=pipe, stdout=pipe, stderr=None,
    )  # fmt: skip


async def end(processes: Sequence[asyncio.subprocess.Process]) -> None:
    """TERM and wait."""
    for process in processes:
        if process.returncode is None:
            process.terminate()
    await asyncio.gather(*(p.wait() for p in processes))
