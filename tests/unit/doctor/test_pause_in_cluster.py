"""`sublet pause --cluster` and `--pool`: keys of one ConfigMap, written with the user's own rights."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kube_api import Api, FakeKube
from typer.testing import CliRunner

from shared.adapters.kube.client import Document, KubeRequest
from shared.contracts.cluster.pauses import CONFIG_MAP
from shared.errors import Refused, Unavailable
from sublet import cli
from sublet.cluster import options
from sublet.commands import pause

PATH = f"/api/v1/namespaces/sublet-system/configmaps/{CONFIG_MAP}"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api()
    made.put(PATH, {"metadata": {"name": CONFIG_MAP, "namespace": "sublet-system"}})

    def ask(_kubeconfig: object, question: Callable[[Any], Any], *, rehearsed: bool = False) -> Any:
        kube = FakeKube(made)
        send = kube.send

        async def as_alice(request: KubeRequest) -> Document:
            if request.path.endswith("/selfsubjectreviews"):
                return {"status": {"userInfo": {"username": "alice"}}}
            dry = {"dryRun": "All"} if rehearsed and request.method != "GET" else {}
            return await send(replace(request, query={**(request.query or {}), **dry}))

        kube.send = as_alice  # type: ignore[method-assign]
        return asyncio.run(question(kube))

    monkeypatch.setattr(options, "ask_cluster", ask)
    return made


def sublet(*words: str) -> Any:
    return CliRunner().invoke(cli.build({"pause": pause}), list(words), catch_exceptions=False)


def keys(api: Api) -> dict[str, Any]:
    return {key: json.loads(text) for key, text in (api.objects[PATH].get("data") or {}).items()}


def test_a_pool_and_the_cluster_are_paused_and_go_on_each_by_itself(api: Api) -> None:
    first = sublet("pause", "--pool", "green", "--reason", "rebuild", "--for", "2h")
    assert (first.exit_code, first.stderr) == (0, "")
    assert "evictions of pool green are paused" in first.stdout
    assert "or sublet resume --pool green" in first.stdout
    assert sublet("pause", "--cluster").exit_code == 0
    assert {key: one["reason"] for key, one in keys(api).items()} == {"pool.green": "rebuild", "cluster": "by hand"}
    assert "until" in keys(api)["pool.green"]
    assert keys(api)["cluster"]["by"] == "alice"
    ended = sublet("resume", "--cluster")
    assert ended.stdout.startswith("evictions of the whole cluster go on; still paused: pool green: rebuild")
    assert list(keys(api)) == ["pool.green"]
    assert "were not paused" in sublet("resume", "--cluster").stdout


@pytest.mark.parametrize("words", [("pause", "--cluster"), ("resume", "--pool", "green")])
def test_a_dry_run_changes_nothing_and_says_what_would_be(api: Api, words: tuple[str, ...]) -> None:
    sublet("pause", "--pool", "green")
    before = keys(api)
    said = sublet(*words, "--dry-run")
    assert said.exit_code == 0
    assert "would" in said.stdout
    assert keys(api) == before


def test_it_is_told_to_programs(api: Api) -> None:
    said = json.loads(sublet("pause", "--pool", "green", "--reason", "x", "-o", "json").stdout)
    assert (said["pool"], said["reason"], said["dry_run"]) == ("green", "x", False)
    ended = json.loads(sublet("resume", "--pool", "green", "-o", "json").stdout)
    assert (ended["was_paused"], ended["still_paused"]) == (True, [])
    assert keys(api) == {}


def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(api: Api) -> None:
    for words in (("--pool", "a b"), ("--cluster", "--pool", "green"), ("--cluster", "--reason", "x" * 201)):
        with pytest.raises(Refused):
            sublet("pause", *words)
    assert keys(api) == {}


def test_who_may_not_is_told_which_right_is_missing(api: Api) -> None:
    api.refuse["PATCH", PATH] = 403
    with pytest.raises(Unavailable, match="Role sublet-pauses"):
        sublet("pause", "--cluster")
