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

{{- define "sublet.busImage" -}}
{{ .Values.bus.image | default (include "sublet.image" .) }}
{{- end }}

{{- define "sublet.nodeUser" -}}system:serviceaccount:{{ .Release.Namespace }}:sublet-node{{- end }}
{{- define "sublet.centralUser" -}}system:serviceaccount:{{ .Release.Namespace }}:sublet-central{{- end }}

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

{{- /* Who needs nothing of the node runs as nobody. */ -}}
{{- define "sublet.nobody" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "sublet.password" -}}
valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}}
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
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 3
{{- end }}

{{- define "sublet.busProbes" -}}
startupProbe:
  httpGet: {path: "/healthz?js-server-only=true", port: monitor}
  periodSeconds: 1
  failureThreshold: 120
livenessProbe:
  httpGet: {path: "/healthz?js-server-only=true", port: monitor}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
