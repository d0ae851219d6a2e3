{{- define "slipway.labels" -}}
app.kubernetes.io/name: {{ .component }}
app.kubernetes.io/part-of: slipway
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "slipway.selector" -}}
app.kubernetes.io/name: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{/* Of pods: nothing that changes with every release, or each would restart them all. */}}
{{- define "slipway.podLabels" -}}
{{ include "slipway.selector" . }}
app.kubernetes.io/part-of: slipway
{{- end }}

{{/* Whether the chart runs the ledger itself: "true" or empty. */}}
{{- define "slipway.ledger.embedded" -}}
{{- if and .Values.ledger.url .Values.ledger.existingSecret.name }}
{{- fail "ledger.url and ledger.existingSecret.name exclude each other" }}
{{- end }}
{{- if not (or .Values.ledger.url .Values.ledger.existingSecret.name) }}true{{ end }}
{{- end }}

{{/* Whether the embedded ledger has two instances, by Patroni: "true" or empty. */}}
{{- define "slipway.ledger.replicated" -}}
{{- if and (include "slipway.ledger.embedded" .) (gt (.Values.ledger.embedded.instances | int) 1) }}true{{ end }}
{{- end }}

{{/* Settings of the embedded ledger's PostgreSQL, with one instance or two, that are neither its own defaults nor Patroni's. */}}
{{- define "slipway.ledger.parameters" -}}
max_connections: {{ .Values.ledger.embedded.maxConnections | int }}
shared_buffers: 64MB
jit: "off"
work_mem: 4MB
maintenance_work_mem: 32MB
autovacuum_max_workers: 2
max_parallel_workers_per_gather: 0
temp_file_limit: 512MB
max_wal_size: 512MB
idle_in_transaction_session_timeout: 60s
{{- end }}

{{/* Changes when the values name another ledger; too short to reveal anything of a password. */}}
{{- define "slipway.ledger.which" -}}
{{ printf "%s %s %s" .Values.ledger.url .Values.ledger.existingSecret.name .Values.ledger.existingSecret.key | sha256sum | trunc 6 | quote }}
{{- end }}

{{/* The environment variable with the ledger's connection URL. */}}
{{- define "slipway.ledger.env" -}}
- name: SLIPWAY_LEDGER_URL
  valueFrom:
    secretKeyRef:
      {{- if .Values.ledger.existingSecret.name }}
      name: {{ .Values.ledger.existingSecret.name }}
      key: {{ .Values.ledger.existingSecret.key }}
      {{- else }}
      name: slipway-ledger
      key: url
      {{- end }}
{{- end }}

{{/* The way to the ledger, as a NetworkPolicy's egress has it. */}}
{{- define "slipway.ledger.egress" -}}
{{- if include "slipway.ledger.embedded" . }}
- to:
    - podSelector:
        matchLabels:
          {{- include "slipway.selector" (dict "root" . "component" "slipway-ledger") | nindent 10 }}
  ports: [{ protocol: TCP, port: 5432 }]
{{- else }}
- to:
    {{- range .Values.networkPolicy.ledger.cidrs }}
    - ipBlock: { cidr: {{ . | quote }} }
    {{- end }}
  ports: [{ protocol: TCP, port: {{ .Values.networkPolicy.ledger.port }} }]
{{- end }}
{{- end }}

{{/* A probe of the embedded ledger of one instance. Over TCP: while upstream's image makes a database, its server listens on the socket alone. */}}
{{- define "slipway.ledger.answers" -}}
timeoutSeconds: 5, exec: { command: [pg_isready, --host=127.0.0.1, --username=slipway, --dbname=ledger] }
{{- end }}

{{/* Whether the chart runs a Valkey of its own: "true" or empty. */}}
{{- define "slipway.valkey.embedded" -}}
{{- $valkey := .Values.rateLimit.valkey }}
{{- if and $valkey.url $valkey.existingSecret.name }}
{{- fail "rateLimit.valkey.url and rateLimit.valkey.existingSecret.name exclude each other" }}
{{- end }}
{{- if and (eq .Values.rateLimit.store "valkey") (not (or $valkey.url $valkey.existingSecret.name)) }}true{{ end }}
{{- end }}

{{/* Changes when the values name another Valkey; too short to reveal anything of a password. */}}
{{- define "slipway.valkey.which" -}}
{{- $valkey := .Values.rateLimit.valkey }}
{{- printf "%s %s %s" $valkey.url $valkey.existingSecret.name $valkey.existingSecret.key | sha256sum | trunc 6 | quote }}
{{- end }}

{{/* A probe of the embedded Valkey. That it asks for the password is an answer. */}}
{{- define "slipway.valkey.answers" -}}
timeoutSeconds: 3, exec: { command: [valkey-cli, -h, 127.0.0.1, ping] }
{{- end }}

{{/*
Of a container that runs Node, from its `resources`: V8's heap ends at 60 % of the memory limit. The rest is for what is not
in it (bodies, TLS, code, the young generation), so that a full heap is collected before the kernel kills the container.
*/}}
{{- define "slipway.node.env" -}}
{{- $limit := dig "limits" "memory" "" . }}
{{- if kindIs "float64" $limit }}{{ $limit = int64 $limit }}{{ end }}
{{- $unit := regexFind "[A-Za-z]*$" (toString $limit) }}
{{- $bytes := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 }}
{{- if and $limit (not (hasKey $bytes $unit)) }}
{{- fail (printf "limits.memory: %v must be bytes, or end in k, M, G, Ki, Mi or Gi" $limit) }}
{{- end }}
{{- if $limit }}
{{- $heap := divf (mulf (trimSuffix $unit (toString $limit) | float64) (get $bytes $unit) 0.6) 1048576 | floor | int64 }}
- { name: NODE_OPTIONS, value: "--max-old-space-size={{ $heap }}{{ with .nodeFlags }} {{ . }}{{ end }}" }
{{- end }}
# glibc would keep an arena for each thread, some 10 MiB in all.
- { name: MALLOC_ARENA_MAX, value: "2" }
{{- end }}

{{/* Brings the ledger's schema up to date. Every pod that uses the ledger runs it first; an advisory lock lets one at a time. */}}
{{- define "slipway.ledger.migrate" -}}
- name: migrate
  image: {{ .image | quote }}
  imagePullPolicy: {{ .root.Values.images.pullPolicy }}
  args: [node, packages/ledger/src/migrate.ts]
  {{- $resources := dict "requests" (dict "cpu" "20m" "memory" "96Mi") "limits" (dict "memory" "256Mi") }}
  env:
    {{- include "slipway.ledger.env" .root | nindent 4 }}
    {{- include "slipway.node.env" $resources | nindent 4 }}
  resources:
    {{- toYaml $resources | nindent 4 }}
  securityContext:
    {{- include "slipway.containerSecurity" . | nindent 4 }}
{{- end }}

{{- define "slipway.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .uid }}
runAsGroup: {{ .uid }}
fsGroup: {{ .uid }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "slipway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Prefers other nodes than those that already run one of the same. */}}
{{- define "slipway.spread" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "slipway.selector" . | nindent 12 }}
{{- end }}

{{/* Placement and registry credentials, from a component's values. */}}
{{- define "slipway.placement" -}}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "slipway.probes" -}}
startupProbe: { httpGet: { path: /healthz, port: metrics }, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 300 }
livenessProbe: { httpGet: { path: /healthz, port: metrics }, periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 6 }
readinessProbe: { httpGet: { path: /readyz, port: metrics }, periodSeconds: 2, timeoutSeconds: 2, failureThreshold: 2 }
{{- end }}

{{/* The GitHub App, for the operator and the API server. */}}
{{- define "slipway.github.env" -}}
- { name: SLIPWAY_GITHUB_APP_ID, value: {{ .Values.git.github.appId | quote }} }
- { name: SLIPWAY_GITHUB_KEY_FILE, value: /etc/slipway/github-app/key.pem }
- { name: SLIPWAY_GITHUB_API_URL, value: {{ .Values.git.github.apiUrl | quote }} }
- { name: SLIPWAY_GITHUB_URL, value: {{ .Values.git.github.url | quote }} }
{{- end }}

{{- define "slipway.github.volume" -}}
- name: github-app
  secret:
    secretName: {{ .Values.git.github.keySecret.name | quote }}
    defaultMode: 0440
    items: [{ key: {{ .Values.git.github.keySecret.key | quote }}, path: key.pem }]
{{- end }}
