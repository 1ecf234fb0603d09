"""JSON Schemas and the AsyncAPI 3 document of the bus: `python -m shared.contracts.bus.schemas DIR` writes them."""

import json
import sys
from pathlib import Path
from typing import Any

from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, STATE_MESSAGES
from shared.contracts.envelope import Message
from shared.contracts.eviction import EvictionEvent, EvictionIntent

_PLAIN = "Core NATS, full state, newest wins: a lost message costs one period, never correctness."
_MEANING: dict[type[Message], str] = {
    EvictionIntent: f"JetStream stream {INTENTS_STREAM}: what will be evicted, written before anything is done.",
    EvictionEvent: f"JetStream stream {EVENTS_STREAM}, CloudEvents 1.0 in binary mode: at least once, `ce-id` marks "
    "repetitions, order per pod, replay by time or sequence. Silence is no evidence: watch the heartbeat.",
}
_ADDRESS: dict[type[Message], str] = {
    EvictionIntent: "sublet.cluster.v1.intent.{node}.{pod_uid}",
    EvictionEvent: "sublet.cluster.v1.event.eviction.{phase}.{namespace}.{node}",
}


def messages() -> dict[str, type[Message]]:
    """Every message of the bus by its name."""
    known: tuple[type[Message], ...] = (*STATE_MESSAGES, EvictionIntent, EvictionEvent)
    return {message.__name__: message for message in known}


def json_schemas() -> dict[str, dict[str, Any]]:
    """One JSON Schema for each message, as it is written (serialization mode)."""
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema()
        for name, model in messages().items()
    }


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI 3 document: a channel, a message and a send operation for each."""
    from shared.contracts.bus.subjects import health_subject, state_subject

    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    components: dict[str, Any] = {}
    for name, model in messages().items():
        if model in _ADDRESS:
            address = _ADDRESS[model]
        elif model.__name__ == "Health":
            address = health_subject("node", "service").replace(".node.service", ".{node}.{service}")
        else:
            address = state_subject(model, "node").removesuffix("node") + "{node}"
        tokens = [part[1:-1] for part in address.split(".") if part.startswith("{")]
        channels[name] = {
            "address": address,
            "description": _MEANING.get(model, _PLAIN),
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
            "parameters": {token: {"description": _PARAMETERS[token]} for token in tokens},
        }
        operations[f"send{name}"] = {"action": "send", "channel": {"$ref": f"#/channels/{name}"}}
        components[name] = {
            "name": name,
            "title": (model.__doc__ or name).strip().splitlines()[0],
            "contentType": "application/json",
            "payload": {"schemaFormat": _SCHEMA_FORMAT, "schema": {"$ref": f"./{name}.json"}},
        }
        if model is EvictionEvent:
            components[name]["headers"] = _CLOUDEVENT_HEADERS
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Sublet bus", "version": "1", "description": "Messages of Sublet's services over NATS."},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": components},
    }


_SCHEMA_FORMAT = "application/schema+json;version=draft-2020-12"
_PARAMETERS = {
    "node": "Node name with '.' written as '_'.",
    "service": "metrics, advisor, qrm, evictor, reporter or central.",
    "pod_uid": "UID of the pod.",
    "phase": "intended, created, succeeded, failed, refused or cancelled.",
    "namespace": "Namespace of the pod.",
}
_CLOUDEVENT_HEADERS = {
    "type": "object",
    "required": ["ce-specversion", "ce-id", "ce-type", "ce-source", "Nats-Msg-Id"],
    "properties": {
        name: {"type": "string"}
        for name in ("ce-specversion", "ce-id", "ce-type", "ce-source", "ce-subject", "ce-time", "ce-datacontenttype",
                     "ce-dataschema", "ce-partitionkey", "ce-sequence", "Nats-Msg-Id")
    },
}  # fmt: skip


def write(folder: Path) -> list[Path]:
    """Write all documents into a folder; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = {f"{name}.json": schema for name, schema in json_schemas().items()} | {"asyncapi.json": asyncapi()}
    written = []
    for name, document in documents.items():
        path = folder / name
        path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
