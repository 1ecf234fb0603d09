#!/bin/sh
# The bus' Secrets for kustomize, as the chart makes them: random passwords, and a certificate with an authority of its own.
#   sh deploy/k8s/secrets.sh        | kubectl apply --server-side -f -   # all of it, new, and the namespace
#   sh deploy/k8s/secrets.sh rotate | kubectl apply --server-side -f -   # new passwords, those of now as the previous ones
#   sh deploy/k8s/secrets.sh renew  | kubectl apply --server-side -f -   # a new certificate of the same authority
# NAMESPACE (sublet-system), DAYS of the certificate (730). Needs openssl 1.1.1, and for the last two kubectl.
set -eu
umask 077
namespace=${NAMESPACE:-sublet-system}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

encoded() { openssl base64 -A; }

secret() { # name, type, when to renew it; its data stands in $folder/data
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\n  namespace: %s\n' "$1" "$namespace"
  printf '  annotations: {sublet.io/renew-at: "%s"}\n' "${3:-}"
  printf 'type: %s\ndata:\n' "$2"
  cat "$folder/data"
}

kept() { # secret key: what the cluster has
  kubectl -n "$namespace" get secret "$1" -o "go-template={{index .data \"$2\"}}"
}

passwords() {
  : >"$folder/data"
  for who in central logins issuer bridge routes; do
    if [ "$1" = rotate ]; then
      before=$(kept sublet-bus "$who")
      printf '  %s-previous: %s\n' "$who" "$before" >>"$folder/data"
    fi
    printf '  %s: %s\n' "$who" "$(printf 'p%s' "$(openssl rand -hex 20)" | encoded)" >>"$folder/data"
  done
  secret sublet-bus Opaque
}

authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 7300 -subj /CN=sublet-bus-ca \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$folder/ca.key" -out "$folder/ca.crt" 2>/dev/null
}

certificate() {
  names="DNS:sublet-bus,DNS:sublet-bus.$namespace,DNS:sublet-bus.$namespace.svc,DNS:*.sublet-bus.$namespace.svc"
  printf '%s\n' "subjectAltName=$names,DNS:localhost,IP:127.0.0.1,IP:::1" extendedKeyUsage=serverAuth,clientAuth \
    basicConstraints=CA:FALSE subjectKeyIdentifier=hash authorityKeyIdentifier=keyid >"$folder/extensions"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=sublet-bus \
    -keyout "$folder/tls.key" -out "$folder/request" 2>/dev/null
  openssl x509 -req -in "$folder/request" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -days "${DAYS:-730}" \
    -set_serial "0x01$(openssl rand -hex 15)" -extfile "$folder/extensions" -out "$folder/tls.crt" 2>/dev/null
  for file in ca.crt tls.crt tls.key; do
    printf '  %s: %s\n' "$file" "$(encoded <"$folder/$file")"
  done >"$folder/data"
  secret sublet-bus-tls kubernetes.io/tls "$(($(date +%s) + ${DAYS:-730} * 43200))"
}

namespace() {
  printf -- '---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n' "$namespace"
}

of_the_authority() {
  printf '  tls.crt: %s\n  tls.key: %s\n' "$(encoded <"$folder/ca.crt")" "$(encoded <"$folder/ca.key")" >"$folder/data"
  secret sublet-bus-tls-ca kubernetes.io/tls
}

case ${1:-new} in
  new) namespace; passwords new; authority; certificate; of_the_authority ;;
  rotate) passwords rotate ;;
  renew)
    for file in crt key; do
      before=$(kept sublet-bus-tls-ca "tls.$file")
      printf %s "$before" | openssl base64 -d -A >"$folder/ca.$file"
    done
    certificate
    ;;
  *) echo "secrets.sh: $1 is none of new, rotate, renew" >&2; exit 2 ;;
esac
