"""Answers the API server about Koordinator's ConfigMap before it is stored: what could not be followed is refused."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import structlog

from services.central.core.profiles.review import API_VERSION, FORBIDDEN, KIND, read_review
from services.central.core.slo.config_map import config_map_of, read_slo_config
from shared.errors import Refused

log = structlog.get_logger()

BAD_REQUEST, OK = 400, 200
MAX_MESSAGE = 2000
NEXT_STEP = "correct it; `sublet config slo -f FILE` says the same of a file"


class SloConfigAnswers:
    """Says no to faults alone that an update brings: what was wrong before holds up no other change."""

    async def answer(self, text: bytes) -> tuple[int, bytes]:
        """An HTTP status and a body to a body, whatever it holds."""
        # Beside the loop: a large ConfigMap takes its time, and pods are answered for meanwhile.
        return await asyncio.to_thread(_answer, text)


def _answer(text: bytes) -> tuple[int, bytes]:
    try:
        review = read_review(text)
        faults = slo_config_faults(review.pod, review.old_pod)
    except Refused as refusal:
        return BAD_REQUEST, str(refusal)[:200].encode()
    response: dict[str, Any] = {"uid": review.uid, "allowed": not faults}
    if faults:
        message = "; ".join(faults)
        shown = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"
        status = {"code": FORBIDDEN, "reason": "Forbidden", "message": f"{shown}: {NEXT_STEP}"}
        response["status"] = status
        log.warning("slo.not_admitted", faults=len(faults), why=shown)
    return OK, json.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response}).encode()


def slo_config_faults(config_map: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
    """What is wrong with the ConfigMap and was not with the one before."""
    before = set() if old is None else set(_problems(old))
    return [problem for problem in _problems(config_map) if problem not in before]


def _problems(document: Mapping[str, Any]) -> list[str]:
    return [str(problem) for problem in read_slo_config(config_map_of(document).data).problems]
