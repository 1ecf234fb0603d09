"""Reads settings: defaults, then a YAML file, then the environment (`SUBLET_<SERVICE>__<FIELD>`), each checked by
its model.

An unknown key is an error that suggests the key that was probably meant.
"""

import inspect
import os
import re
import socket
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from shared.contracts.ids import NodeName
from shared.contracts.mode import NodeMode
from shared.contracts.services import SERVICES
from shared.core.pydantic_words import MISSING, UNKNOWN, FieldFault, field_faults
from shared.core.text.did_you_mean import did_you_mean
from shared.core.text.yaml_text import YamlDocument, read_yaml
from shared.errors import BadConfig, Refused, SettingProblem
from shared.text_file import read_yaml_file

PREFIX = "SUBLET_"
FILE_VARIABLE = "SUBLET_CONFIG"
MAX_VARIABLE_BYTES = 64 * 1024
SYSTEM_STATE_DIR = Path("/var/lib/sublet")
"""State folder of root: on disk, because the history of evictions must survive a reboot."""

HIDDEN = "(not shown)"
SHOWN_CHARACTERS = 300
_SECRET_NAME = re.compile(r"(?i)(url|endpoint|password|passwd|secret|token|credential|login)s?$")

Scheduling: TypeAlias = Literal["auto", "nice", "none"]
"""What to request from the kernel's scheduler: real time with a nice value as fallback, a nice value, or nothing."""

S = TypeVar("S", bound=BaseModel)
R = TypeVar("R")


class Settings(BaseModel):
    """Base of every section: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _this_host() -> str:
    """This host's name."""
    return re.sub(r"[^a-z0-9.-]", "-", socket.gethostname().lower()).strip("-.") or "localhost"


def _own_state_dir() -> Path:
    """/var/lib/sublet for root, $XDG_STATE_HOME/sublet (~/.local/state) for other users, who can run the simulator."""
    if os.geteuid() == 0:
        return SYSTEM_STATE_DIR
    # A path that begins nowhere would be another one in each folder: the base directory specification ignores it.
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        return (named if named.is_absolute() else Path.home() / ".local/state") / "sublet"
    except RuntimeError:
        raise BadConfig(
            "state_dir: this user has no home folder; name one: SUBLET_STATE_DIR=/path", reason="no_home"
        ) from None


class CommonSettings(Settings):
    """Settings that every service needs."""

    node: NodeName = Field(default_factory=_this_host)
    """Name of this node, as on the bus and in Kubernetes."""
    substrate: Literal["host", "sim", "kubernetes"] = "host"
    """Where pods come from and where cpusets go."""
    mode: NodeMode = "enforce"
    """Upper bound of the modes of qrm, policies and plugins. observe: the node reports what it would do, and nothing
    goes beyond a dry run. A configuration can override it for all nodes or for some."""
    qos_fallback: Literal["shared_cores", "kubernetes"] = "shared_cores"
    """QoS class of pods that name none. shared_cores: all of them. kubernetes: derived from the Kubernetes QoS;
    BestEffort becomes reclaimed."""
    kubeconfig: Path | None = None
    """Kubeconfig of the API server, on substrate kubernetes; None: the cluster in which this process runs."""
    nats_url: str = "nats://127.0.0.1:4222"
    """Address of the NATS server, with user and password if it requires them: nats://user:password@host:port."""
    reader_group: str | None = None
    """Unix group whose members may read the bus of `sublet up` (`status`, `top`, `explain`, `events`); None: no
    group."""
    connect_timeout_s: Annotated[float, Field(gt=0, le=600)] = 20.0
    """How long to wait for NATS at the start before the service exits with an error."""
    host_root: Path = Path("/")
    """Root under which /proc and /sys are read and written; the simulator and tests use a folder."""
    state_dir: Path = Field(default_factory=_own_state_dir)
    """Folder of the eviction ledger, streams, logs, checkpoints and the local runtime's pods. A folder in memory
    (`/run`) loses the eviction history at a reboot."""
    http_host: str = "127.0.0.1"
    """Address of /livez, /readyz and /metrics."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of /livez, /readyz and /metrics; 0 switches them off."""
    scheduling: Scheduling = "auto"
    """Scheduling of the node's services. auto: real time within bounds, or the best nice value if the kernel
    refuses. nice: only the nice value. none: nothing."""
    lock_memory: bool = True
    """Keeps the memory of the node's services resident and makes them the last to be killed when memory runs out, as
    far as the kernel permits. A service that reacts to a memory shortage must not wait for the disk."""
    heartbeat_s: Annotated[float, Field(gt=0, le=60)] = 2.0
    """Seconds between two health messages of each service."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level of log lines that are written."""
    log_json: bool = True
    """Writes log lines as JSON objects; if false, as text."""
    otlp_endpoint: str | None = None
    """OTLP/HTTP endpoint for traces, as http://127.0.0.1:4318/v1/traces; None: tracing is off, and its packages are not
    imported."""


def read_file(path: Path) -> dict[str, Any]:
    """Return the settings file as a mapping.

    Raises:
        BadConfig: as `read_document`.
    """
    found: dict[str, Any] = read_document(path).value
    return found


def read_document(path: Path) -> YamlDocument:
    """Return the settings file as a mapping, with the line number of each key.

    Raises:
        BadConfig: it cannot be read, is not YAML, has a key twice, or is not a mapping.
    """
    try:
        document = read_yaml_file(path, what="settings file")
    except Refused as refusal:
        raise BadConfig(str(refusal), reason=refusal.reason) from None
    if document.value is None:
        return YamlDocument({}, {})
    if not isinstance(document.value, dict):
        got = type(document.value).__name__
        raise BadConfig(f"settings file {path}: want a mapping of keys, got {got}", reason="malformed")
    return document


def read_environment(env: Mapping[str, str]) -> dict[str, Any]:
    """Return settings from environment variables: `SUBLET_ADVISOR__POLICY=x` becomes {"advisor": {"policy": "x"}}.
    Values are read as YAML scalars.

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
        here[leaf] = read_yaml(text, what=f"{name}={shown(text, name)}", max_bytes=MAX_VARIABLE_BYTES).value
    except Refused as refusal:
        raise BadConfig(str(refusal), reason=refusal.reason) from None


def shown(value: Any, name: str) -> str:
    """Return a refused value as it may appear in a log, or a placeholder if its name marks a secret or it may be an
    address with one."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {shown(item, str(key))}' for key, item in value.items())}}}"[:SHOWN_CHARACTERS]
    if isinstance(value, list | tuple):
        return f"[{', '.join(shown(item, name) for item in value)}]"[:SHOWN_CHARACTERS]
    if _SECRET_NAME.search(name) or (isinstance(value, str) and ("@" in value or "://" in value)):
        return HIDDEN
    return repr(value)[:SHOWN_CHARACTERS]


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `over` merged on top of `base`, mapping by mapping."""
    merged = dict(base)
    for key, value in over.items():
        here = merged.get(key)
        merged[key] = merge(here, value) if isinstance(here, Mapping) and isinstance(value, Mapping) else value
    return merged


def raw_settings(env: Mapping[str, str] | None = None, file: Path | None = None) -> dict[str, Any]:
    """Return file and environment together, not yet checked."""
    env = os.environ if env is None else env
    if file is None and env.get(FILE_VARIABLE):
        file = Path(env[FILE_VARIABLE])
    return merge(read_file(file) if file else {}, read_environment(env))


def common_settings(raw: Mapping[str, Any]) -> CommonSettings:
    """Return the top level without the services' sections.

    Raises:
        BadConfig: as `check`; an unknown section is an unknown key.
    """
    return check(CommonSettings, {k: v for k, v in raw.items() if k not in SERVICES}, where="", also=SERVICES)


def section(model: type[S], raw: Mapping[str, Any], name: str) -> S:
    """Return one service's section.

    Raises:
        BadConfig: as `check`.
    """
    return check(model, raw.get(name) or {}, where=name)


def check(model: type[S], values: Any, *, where: str | tuple[str, ...], also: tuple[str, ...] = ()) -> S:
    """Validate values against a model; `where` is the path of keys above them.

    Raises:
        BadConfig: names key, value and bound of every problem, and for an unknown key the one that was probably meant.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        top = tuple(filter(None, where.split("."))) if isinstance(where, str) else where
        problems = [_problem(top, fault, _names_at(model, fault.path[:-1], also)) for fault in field_faults(error)]
        raise bad_settings(problems) from None


def bad_settings(problems: Iterable[SettingProblem]) -> BadConfig:
    """Return the error that names each problem."""
    found = tuple(problems)
    return BadConfig(f"settings: {'; '.join(map(str, found))}", reason="invalid", problems=found)


def all_of(*checks: Callable[[], R], problems: Sequence[SettingProblem] = ()) -> list[R]:
    """Run every check before raising, so that a user sees all problems at once; `problems` are already known.

    Raises:
        BadConfig: the problems of all checks that failed.
    """
    found, results = dict.fromkeys(problems), []
    for one in checks:
        try:
            results.append(one())
        except BadConfig as error:
            found |= dict.fromkeys(error.problems or [SettingProblem((), str(error))])
    if found:
        raise bad_settings(found)
    return results


def inner_model(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field that holds nested keys, or None."""
    union = get_origin(field.annotation) in (Union, types.UnionType)
    for one in get_args(field.annotation) if union else (field.annotation,):
        if inspect.isclass(one) and issubclass(one, BaseModel):
            return one
    return None


def _names_at(model: type[BaseModel], path: Sequence[str], also: Sequence[str]) -> list[str]:
    """Return the keys that exist below a path."""
    for name in path:
        field = model.model_fields.get(name)
        below = inner_model(field) if field is not None else None
        if below is None:
            return []
        model, also = below, ()
    return [*model.model_fields, *also]


def _meant(name: str, known: Sequence[str], *, inside: bool) -> str:
    if inside and name in CommonSettings.model_fields:
        return "it stands at the top, outside of every section"
    return did_you_mean(name, known, otherwise=f"known: {', '.join(sorted(known))}")


def _problem(top: tuple[str, ...], fault: FieldFault, known: Sequence[str]) -> SettingProblem:
    path = (*top, *fault.path)
    if fault.kind == UNKNOWN:
        return SettingProblem(path, f": no such setting; {_meant(fault.path[-1], known, inside=len(path) > 1)}")
    if fault.kind == MISSING:
        return SettingProblem(path, f": {fault.wish}")
    return SettingProblem(path, f" = {shown(fault.given, '.'.join(path))}: {fault.wish}")
