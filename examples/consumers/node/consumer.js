// Append eviction events to a file: one JSON line each, each event once.
//
// node consumer.js FILE        (SUBLET_NATS_URL, SUBLET_NAMESPACE, SUBLET_DURABLE: see ../README.md)

import { appendFileSync, closeSync, fsyncSync, openSync, readFileSync, truncateSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, nanos } from "@nats-io/transport-node";

const { SUBLET_NATS_URL: url = "nats://127.0.0.1:4222", SUBLET_NAMESPACE: namespace = "*" } = process.env;
const durable = process.env.SUBLET_DURABLE ?? "example-node";
const stream = "SUBLET_EVENTS";
const CONSUMER_NOT_FOUND = 10014;

// The file and the ids in it. A line that a crash cut short is removed: its event was not acknowledged.
function openLog(path) {
  closeSync(openSync(path, "a"));
  const content = readFileSync(path);
  const whole = content.subarray(0, content.lastIndexOf("\n") + 1);
  truncateSync(path, whole.length);
  const lines = whole.toString().split("\n").slice(0, -1);
  return { file: openSync(path, "a"), seen: new Set(lines.map((line) => keyOf(JSON.parse(line)))) };
}

// What makes an event known: any node may write another one's id, but each publishes on subjects of its own.
function keyOf({ node, id }) {
  return `${node}/${id}`;
}

// Do the work of one message, unless it was done before; false for what is no event.
function record(message, { file, seen }) {
  const id = message.headers?.get("ce-id");
  const node = message.subject.split(".").at(-1);
  let line;
  try {
    if (!/^[0-9a-f-]{36}\/[a-z]+\/[0-9]+$/.test(id)) throw new Error("no ce-id");
    line = JSON.stringify({ id, node, type: message.headers.get("ce-type"), data: message.json() });
  } catch (error) {
    console.error(`not an event, put aside: ${message.subject}: ${error.message}`);
    return false;
  }
  const key = keyOf({ node, id });
  if (!seen.has(key)) {
    try {
      appendFileSync(file, `${line}\n`);
      fsyncSync(file);
    } catch (error) {
      console.error(error);
      process.exit(1); // the next start repairs the file
    }
    seen.add(key);
  }
  return true;
}

// Takes the durable consumer as it is, and creates it where there is none.
async function consumerOf(connection) {
  const all = jetstream(connection).consumers;
  try {
    return await all.get(stream, durable);
  } catch (error) {
    if (error.code !== CONSUMER_NOT_FOUND) throw error;
  }
  const manager = await jetstreamManager(connection, { checkAPI: false });
  await manager.consumers.add(stream, {
    durable_name: durable,
    filter_subject: `sublet.cluster.v1.event.eviction.*.${namespace.replaceAll(".", "_")}.*`,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(30_000),
    max_ack_pending: 1, // one at a time keeps the order over a crash
    max_deliver: -1, // none is given up
  });
  return await all.get(stream, durable);
}

// The connection, as soon as there is a server that takes the login.
async function connected({ host, username, password }) {
  for (;;) {
    try {
      return await connect({
        servers: host,
        user: username || undefined,
        pass: password || undefined,
        name: durable,
        maxReconnectAttempts: -1,
        ignoreAuthErrorAbort: true, // a login may come back
      });
    } catch (error) {
      console.error(`again in a second: ${error.message}`);
      await pause(1_000);
    }
  }
}

// What the connection meets; it is tried again all the same.
async function tell(connection) {
  for await (const { type, error } of connection.status()) {
    if (type === "error") console.error(`connection: ${error.message}`);
  }
}

const log = openLog(process.argv[2]);
let connection;
const stop = async () => {
  await connection?.close();
  process.exit(0);
};
process.on("SIGTERM", stop).on("SIGINT", stop);
connection = await connected(new URL(url));
tell(connection);
while (!connection.isClosed()) {
  try {
    const consumer = await consumerOf(connection);
    for (;;) {
      const message = await consumer.next({ expires: 5_000 });
      if (message) record(message, log) ? message.ack() : message.term();
    }
  } catch (error) {
    if (connection.isClosed()) break;
    console.error(`again in a second: ${error}`);
    await pause(1_000);
  }
}
