"""JSON Schemas and the AsyncAPI 3 document of the bus: `python -m shared.contracts.bus.schemas DIR` writes them, and
beside them the schema of a log line."""

import json
import sys
from pathlib import Path
from typing import Any

from shared.contracts.bus.channels import CHANNELS, TOKENS
from shared.contracts.envelope import Message
from shared.contracts.eviction import EvictionEvent
from shared.contracts.logs.line import log_line_schema


def messages() -> dict[str, type[Message]]:
    """Every message of the bus by its name."""
    return {channel.message.__name__: channel.message for channel in CHANNELS}


def json_schemas() -> dict[str, dict[str, Any]]:
    """One JSON Schema for each message, as it is written (serialization mode)."""
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema()
        for name, model in messages().items()
    }


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI 3 document: a channel, a message and a send operation for each."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    components: dict[str, Any] = {}
    for channel in CHANNELS:
        model, name = channel.message, channel.message.__name__
        channels[name] = {
            "address": channel.address,
            "description": channel.about,
            "messages": {name: {"$ref": f"#/components/messages/{name}"}},
            "parameters": {token: {"description": TOKENS[token]} for token in channel.tokens},
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
_CLOUDEVENT_HEADERS = {
    "type": "object",
    "required": ["ce-specversion", "ce-id", "ce-type", "ce-source", "Nats-Msg-Id"],
    "properties": {
        name: {"type": "string"}
        for name in ("ce-specversion", "ce-id", "ce-type", "ce-source", "ce-subject", "ce-time", "ce-datacontenttype",
                     "ce-dataschema", "ce-partitionkey", "ce-sequence", "ce-mode",
                     "ce-traceparent", "traceparent", "Nats-Msg-Id")
    },
}  # fmt: skip


def write(folder: Path) -> list[Path]:
    """Write all documents into a folder; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = {f"{name}.json": schema for name, schema in json_schemas().items()}
    documents |= {"asyncapi.json": asyncapi(), "LogLine.json": log_line_schema()}
    written = []
    for name, document in documents.items():
        path = folder / name
        path.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
