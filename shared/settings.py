"""Settings: defaults, then a YAML file, then the environment (`SUBLET_<SERVICE>__<FIELD>`), each checked by its model.

A key that nothing knows is an error that names the key that was probably meant.
"""

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.contracts.advice import NodeMode
from shared.contracts.ids import NodeName
from shared.contracts.services import SERVICES
from shared.core.text.did_you_mean import did_you_mean
from shared.errors import BadConfig

PREFIX = "SUBLET_"
FILE_VARIABLE = "SUBLET_CONFIG"

HIDDEN = "(not shown)"
SHOWN_CHARACTERS = 300
_SECRET_NAME = re.compile(r"(?i)(url|endpoint|password|passwd|secret|token|credential|login)s?$")

S = TypeVar("S", bound=BaseModel)


class Settings(BaseModel):
    """Base of every section: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _this_host() -> str:
    """This host's name."""
    return re.sub(r"[^a-z0-9.-]", "-", socket.gethostname().lower()).strip("-.") or "localhost"


def _own_state_dir() -> Path:
    """/run/sublet for root, a folder of their own for everybody else (who can run the simulator)."""
    if os.geteuid() == 0:
        return Path("/run/sublet")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "sublet"


class CommonSettings(Settings):
    """What every service needs."""

    node: NodeName = Field(default_factory=_this_host)
    """Name of this node, as on the bus and in Kubernetes."""
    substrate: Literal["host", "sim", "kubernetes"] = "host"
    """Where pods come from and where cpusets go."""
    mode: NodeMode = "enforce"
    """The switch above the modes of qrm, policies and plugins. observe: the node says what it would do, and nothing
    goes beyond a dry run. A configuration may say otherwise for all nodes or for some."""
    qos_fallback: Literal["shared_cores", "kubernetes"] = "shared_cores"
    """What a pod is that names no QoS class: shared_cores, or by its Kubernetes QoS, where BestEffort is reclaimed."""
    kubeconfig: Path | None = None
    """Which API server, on substrate kubernetes; None: that of the cluster in which this process runs."""
    nats_url: str = "nats://127.0.0.1:4222"
    """Address of the NATS server, with user and password where it wants them: nats://user:password@host:port."""
    reader_group: str | None = None
    """Unix group whose members may read the bus of `sublet up` (`status`, `top`, `explain`, `events`); None: nobody."""
    connect_timeout_s: Annotated[float, Field(gt=0, le=600)] = 20.0
    """How long to wait for NATS at the start before giving up with a non-zero exit."""
    host_root: Path = Path("/")
    """Root under which /proc and /sys are read and written; a folder for the simulator and tests."""
    state_dir: Path = Field(default_factory=_own_state_dir)
    """Checkpoints, the eviction ledger, the local runtime's pods."""
    http_host: str = "127.0.0.1"
    """Address of /livez, /readyz and /metrics."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of /livez, /readyz and /metrics; 0 switches them off."""
    heartbeat_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """How often each service says that it is well."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Log lines below this level are left out."""
    log_json: bool = True
    """Whether a log line is a JSON object; false: text for people."""
    otlp_endpoint: str | None = None
    """OTLP/HTTP traces endpoint; None keeps tracing off and unimported."""


def read_file(path: Path) -> dict[str, Any]:
    """The settings file as a mapping.

    Raises:
        BadConfig: it cannot be read, is not YAML, or is not a mapping.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"settings file {path}: {error}", reason="unreadable") from error
    except yaml.YAMLError as error:
        # `from None`: the parser's own message quotes the text, and the text may hold a password.
        raise BadConfig(f"settings file {path}: not YAML{_place(error)}", reason="unreadable") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadConfig(
            f"settings file {path}: want a mapping of keys, got {type(document).__name__}", reason="malformed"
        )
    return document


def read_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """`SUBLET_ADVISOR__POLICY=x` becomes {"advisor": {"policy": "x"}}; values are read as YAML scalars.

    Raises:
        BadConfig: a value is not YAML, or one variable is both a value and a section.
    """
    tree: dict[str, Any] = {}
    for name in sorted(env):
        # Any other variable with the prefix has to be a setting: a typing error in one is refused, not ignored.
        if name.startswith(PREFIX) and name != FILE_VARIABLE:
            _plant(tree, name, env[name])
    return tree


def _plant(tree: dict[str, Any], name: str, text: str) -> None:
    *folders, leaf = name.removeprefix(PREFIX).lower().split("__")
    here = tree
    for folder in folders:
        here = here.setdefault(folder, {})
        if not isinstance(here, dict):
            raise BadConfig(f"{name}: {PREFIX}{folder.upper()} is set to a value, it cannot also be a section",
                            reason="malformed")  # fmt: skip
    try:
        here[leaf] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadConfig(f"{name}={shown(text, name)}: not a YAML value{_place(error)}", reason="malformed") from None


def shown(value: Any, name: str) -> str:
    """A refused value as it may stand in a log: not one that is a secret by its name, or may be an address with one."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {shown(item, str(key))}' for key, item in value.items())}}}"[:SHOWN_CHARACTERS]
    if isinstance(value, list | tuple):
        return f"[{', '.join(shown(item, name) for item in value)}]"[:SHOWN_CHARACTERS]
    if _SECRET_NAME.search(name) or (isinstance(value, str) and ("@" in value or "://" in value)):
        return HIDDEN
    return repr(value)[:SHOWN_CHARACTERS]


def _place(error: yaml.YAMLError) -> str:
    """Where a text is no YAML; the error's own words hold a piece of the text, which may be a password's."""
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`, mapping by mapping."""
    merged = dict(base)
    for key, value in over.items():
        here = merged.get(key)
        merged[key] = merge(here, value) if isinstance(here, Mapping) and isinstance(value, Mapping) else value
    return merged


def raw_settings(env: Mapping[str, str] | None = None, file: Path | None = None) -> dict[str, Any]:
    """File and environment together, not yet checked."""
    env = os.environ if env is None else env
    if file is None and env.get(FILE_VARIABLE):
        file = Path(env[FILE_VARIABLE])
    return merge(read_file(file) if file else {}, read_environment(env))


def common_settings(raw: Mapping[str, Any]) -> CommonSettings:
    """The top level, without the services' sections.

    Raises:
        BadConfig: as `check`; an unknown section is an unknown key.
    """
    return check(CommonSettings, {k: v for k, v in raw.items() if k not in SERVICES}, where="", also=SERVICES)


def section(model: type[S], raw: Mapping[str, Any], name: str) -> S:
    """One service's section.

    Raises:
        BadConfig: as `check`.
    """
    return check(model, raw.get(name) or {}, where=name)


def check(model: type[S], values: Any, *, where: str, also: tuple[str, ...] = ()) -> S:
    """Validate values against a model.

    Raises:
        BadConfig: names key, value and bound; for an unknown key also the one that was probably meant.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = []
        for item in error.errors(include_url=False):
            path = ".".join(str(p) for p in (where, *item["loc"]) if p != "")
            if item["type"] == "extra_forbidden":
                known = f"known: {', '.join(sorted(model.model_fields))}"
                meant = did_you_mean(str(item["loc"][-1]), [*model.model_fields, *also], otherwise=known)
                problems.append(f"{path}: no such setting; {meant}")
            else:
                problems.append(f"{path} = {shown(item['input'], path)}: {item['msg']}")
        raise BadConfig("settings: " + "; ".join(problems), reason="invalid") from None
