#!/usr/bin/env bash
# Append eviction events to a file: one JSON line each, each event once. Needs bash and coreutils, nothing else: it speaks
# the NATS protocol itself.
#
# consumer.sh FILE        (SUBLET_NATS_URL, SUBLET_NAMESPACE, SUBLET_DURABLE: see ../README.md)
set -u
export LC_ALL=C # the protocol counts bytes

file=$1
url=${SUBLET_NATS_URL:-nats://127.0.0.1:4222}
namespace=${SUBLET_NAMESPACE:-*}
durable=${SUBLET_DURABLE:-example-shell}
stream=SUBLET_EVENTS
filter="sublet.cluster.v1.event.eviction.*.${namespace//./_}.*"
# One unacknowledged message at a time keeps the order over a crash; without a limit of deliveries none is given up.
new='{"stream_name":"'$stream'","action":"create","config":{"durable_name":"'$durable'","filter_subject":"'$filter'",
"ack_policy":"explicit","ack_wait":30000000000,"max_ack_pending":1,"max_deliver":-1,"deliver_policy":"all"}}'
inbox="_INBOX.$$.$RANDOM$RANDOM$RANDOM"
options='"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"lang":"bash","version":"1"'
declare -A seen

# The events in the file, by node and id: any node may write another one's id, but each publishes on subjects of its own.
# A line that a crash cut short is removed: its event was not acknowledged.
open_log() {
  touch "$file"
  [[ -z $(tail -c1 "$file") ]] || sed -i '$d' "$file"
  while IFS= read -r line; do
    [[ $line =~ ^\{\"id\":\"([^\"]+)\",\"node\":\"([^\"]+)\" ]] && seen[${BASH_REMATCH[2]}/${BASH_REMATCH[1]}]=1
  done <"$file"
}

send() { printf '%s\r\n' "$@" >&3; }
publish() { send "PUB $1 ${3:-} ${#2}" "$2"; }
pull() { publish "\$JS.API.CONSUMER.MSG.NEXT.$stream.$durable" '{"batch":1,"expires":5000000000}' "$inbox.next"; }
take() { timeout 10 head -c "$1" <&3 | tr -d '\0'; }
header() { [[ $headers =~ $'\n'"$1: "([^$'\r']*) ]] && printf '%s' "${BASH_REMATCH[1]}"; }

# Do the work of one message, unless it was done before; fails for what is no event.
record() {
  local id type node=${words[1]##*.}
  id=$(header ce-id) && type=$(header ce-type) || return
  [[ $id =~ ^[0-9a-f-]{36}/[a-z]+/[0-9]+$ && $type =~ ^[a-z0-9.]+$ && $node =~ ^[a-z0-9_-]+$ ]] || return
  [[ -z ${seen[$node/$id]:-} ]] || return 0
  printf '{"id":"%s","node":"%s","type":"%s","data":%s}\n' "$id" "$node" "$type" "${body//$'\n'/ }" >>"$file" &&
    sync -d "$file" || exit
  seen[$node/$id]=1
}

# One message on the inbox: the answer to a question, a status, or an event. "HMSG subject sid [reply] header-bytes bytes".
handle() {
  local words bytes headers='' body='' reply=''
  read -ra words <<<"${line%$'\r'}"
  bytes=${words[-1]}
  if [[ ${words[0]} == HMSG ]]; then
    headers=$(take "${words[-2]}")
    bytes=$((bytes - words[-2]))
    ((${#words[@]} == 6)) && reply=${words[3]}
  fi
  body=$(take "$bytes")
  IFS= read -r -t 10 <&3 || return # the end of the message: without it, it is not whole
  case $headers in
  '' | 'NATS/1.0 408'*) ;; # the durable is there; nothing new
  'NATS/1.0 '*) echo "server: ${headers%%$'\r'*}" >&2 && return 1 ;;
  *) if record; then publish "$reply" +ACK; else echo "not an event, put aside" >&2 && publish "$reply" +TERM; fi ;;
  esac
  pull
}

# One connection, until it ends or says nothing for 10 s.
session() {
  local line login='' where=${url#nats://}
  [[ $where == *@* ]] && login=${where%@*} where=${where##*@}
  exec 3<>"/dev/tcp/${where%:*}/${where##*:}" || return
  send "CONNECT {$options,\"name\":\"$durable\",\"user\":\"${login%%:*}\",\"pass\":\"${login#*:}\"}"
  send "SUB $inbox.* 1"
  publish "\$JS.API.CONSUMER.CREATE.$stream.$durable.$filter" "$new" "$inbox.created" # refused where there is one
  while IFS= read -r -t 10 line <&3; do
    case $line in
    PING*) send PONG ;;
    HMSG* | MSG*) handle || return ;;
    -ERR*CONSUMER.CREATE*) pull ;; # may not create one: then an operator has
    -ERR*) echo "server: $line" >&2 ;;
    esac
  done
}

trap 'exit 0' TERM INT # what is not acknowledged by then comes again, and is known by its id
trap '' PIPE
open_log
while true; do
  session
  exec 3>&-
  sleep 1
done
