{{- define "sublet.name" -}}sublet{{- end }}

{{- define "sublet.labels" -}}
app.kubernetes.io/name: sublet
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "sublet.image" -}}
{{- with .Values.image -}}
{{ .name }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* One half's own image, with the tag of the image of everything; that image where none is named. */ -}}
{{- define "sublet.halfImage" -}}
{{- if .half.name -}}
{{ .half.name }}{{ if .half.digest }}@{{ .half.digest }}{{ else }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- else -}}
{{ include "sublet.image" .root }}
{{- end -}}
{{- end }}
{{- define "sublet.nodeImage" -}}{{ include "sublet.halfImage" (dict "root" . "half" .Values.image.node) }}{{- end }}
{{- define "sublet.centralImage" -}}{{ include "sublet.halfImage" (dict "root" . "half" .Values.image.central) }}{{- end }}

{{- /* A node's image has a nats-server in it, the one of the cluster's half has none. */ -}}
{{- define "sublet.busImage" -}}
{{ .Values.bus.image | default (include "sublet.nodeImage" .) }}
{{- end }}

{{- define "sublet.nodeUser" -}}system:serviceaccount:{{ .Release.Namespace }}:sublet-node{{- end }}
{{- define "sublet.centralUser" -}}system:serviceaccount:{{ .Release.Namespace }}:sublet-central{{- end }}

{{- /* Whether pods that ask for reclaimed resources are created behind the gate. */ -}}
{{- define "sublet.gated" -}}{{ if and .Values.scheduling.enabled (eq .Values.scheduling.gate "hold") }}true{{ end }}{{- end }}
{{- /* Whether anybody is answered by the webhook. */ -}}
{{- define "sublet.webhook" -}}
{{ if or .Values.profiles.enabled .Values.slo.enabled .Values.overcommit.enabled (include "sublet.gated" .) }}true{{ end }}
{{- end }}

{{- /* The parts that are on, and those that are off now and were on: what they left is taken away (switched-off.yaml). */ -}}
{{- define "sublet.switches" -}}
{{- $before := (lookup "v1" "ConfigMap" .Release.Namespace "sublet-switches").data | default dict }}
{{- $on := dict
    "gate" (and .Values.scheduling.enabled (ne .Values.scheduling.gate "none"))
    "scheduling" .Values.scheduling.enabled
    "overcommit" .Values.overcommit.enabled
    "tide" .Values.tide.enabled
    "clock-bounds" .Values.recommendation.clockBounds.enabled
    "vertical" .Values.recommendation.vertical.enabled
    "service-profiles" .Values.recommendation.serviceProfiles.enabled
    "metrics-api" .Values.metricsApi.enabled
    "webhook" (include "sublet.webhook" .)
}}
{{- range $part, $is := $on }}
{{- if $is }}
{{ $part }}: "on"
{{- else if hasKey $before $part }}
{{ $part }}: "off"
{{- end }}
{{- end }}
{{- end }}

{{- /* The parts that are off and may have left something, one after the other. */ -}}
{{- define "sublet.switchedOff" -}}
{{- range $part, $is := include "sublet.switches" . | fromYaml }}
{{- if eq $is "off" }} {{ $part }}{{ end }}
{{- end }}
{{- end }}

{{- /* A busy CPU keeps pods away, but not those that decide what becomes of it: they ask for little, and rank above. */ -}}
{{- define "sublet.busyNodes" -}}
{{- range $pressure := list "CPUPressure" "NumaCPUPressure" "NumaSysCPUPressure" }}
- {key: node.katalyst.kubewharf.io/{{ $pressure }}, operator: Exists, effect: NoSchedule}
{{- end }}
{{- end }}

{{- /* Where the pods go that belong to no node: past nodes that are busy, and as `placement` says. */ -}}
{{- define "sublet.placement" -}}
{{- with .Values.placement }}
tolerations: {{- include "sublet.busyNodes" $ | trim | nindent 2 }}
{{- with .tolerations }}
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "sublet.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What every container of ours is held to. */ -}}
{{- define "sublet.held" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* The agent may go before other work of its node, and keep its memory; `settings` takes each away again. */ -}}
{{- define "sublet.agentHeld" -}}
{{- $added := list }}
{{- if ne (.Values.settings.scheduling | default "auto") "none" }}{{ $added = append $added "SYS_NICE" }}{{ end }}
{{- if ne (.Values.settings.lock_memory | toString) "false" }}{{ $added = append $added "IPC_LOCK" }}{{ end }}
{{- if dig "metrics" "perf" "enabled" false .Values.settings }}{{ $added = append $added "PERFMON" }}{{ end -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL], add: [{{ $added | join ", " }}]}
{{- end }}

{{- /* Who needs nothing of the node runs as nobody. */ -}}
{{- define "sublet.nobody" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sublet.password" -}}
valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}{{ if .optional }}, optional: true{{ end }}}}
{{- end }}

{{- /* A login at the hub, with the password of now and, while it is being replaced, the one before. */ -}}
{{- define "sublet.busLogin" -}}
- name: {{ upper .user }}_PASSWORD
  {{- include "sublet.password" (dict "secret" .root.Values.bus.passwordsSecret "key" .user) | nindent 2 }}
- name: {{ upper .user }}_PREVIOUS_PASSWORD
  {{- include "sublet.password" (dict "secret" .root.Values.bus.passwordsSecret "key" (printf "%s-previous" .user) "optional" true) | nindent 2 }}
{{- $scheme := .root.Values.bus.tls | ternary "tls" "nats" }}
{{- $at := printf "sublet-bus.%s.svc:4222%s" .root.Release.Namespace (.root.Values.bus.tls | ternary "?ca_file=/etc/nats-tls/ca.crt" "") }}
- name: {{ .variable }}
  value: "{{ $scheme }}://{{ .user }}:$({{ upper .user }}_PASSWORD)@{{ $at }},{{ $scheme }}://{{ .user }}:$({{ upper .user }}_PREVIOUS_PASSWORD)@{{ $at }}"
{{- end }}

{{- /* By what who comes to the hub knows it. */ -}}
{{- define "sublet.busAuthority" -}}
- name: bus-authority
  secret: {secretName: {{ .Values.bus.tlsSecret }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}

{{- /* The token of a pod's ServiceAccount, for the one container that mounts it. */ -}}
{{- define "sublet.token" -}}
projected:
  defaultMode: 0440
  sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3600}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}

{{- define "sublet.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 2
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
{{- end }}

{{- define "sublet.busProbes" -}}
startupProbe:
  httpGet: {path: "/healthz?js-server-only=true", port: monitor}
  periodSeconds: 1
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: 120
livenessProbe:
  httpGet: {path: "/healthz?js-server-only=true", port: monitor}
  periodSeconds: 10
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: 6
{{- end }}
