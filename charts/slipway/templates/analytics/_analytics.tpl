{{/* Whether the chart runs the store of network analytics itself: "true" or empty. */}}
{{- define "slipway.analytics.embedded" -}}
{{- $analytics := .Values.analytics }}
{{- if and $analytics.existingSecret.name (not $analytics.url) }}
{{- fail "analytics.existingSecret.name needs analytics.url" }}
{{- end }}
{{- if and $analytics.existingSecret.name $analytics.password }}
{{- fail "analytics.password and analytics.existingSecret.name exclude each other" }}
{{- end }}
{{- if and $analytics.enabled (not $analytics.url) }}true{{ end }}
{{- end }}

{{/* Where the collector runs: it needs folders of the nodes, which the platform's own namespace may forbid. */}}
{{- define "slipway.collector.namespace" -}}slipway-collector{{- end }}

{{/* Environment variables of whoever uses the store. */}}
{{- define "slipway.analytics.env" -}}
{{- $analytics := .Values.analytics }}
- { name: SLIPWAY_ANALYTICS_URL, value: {{ $analytics.url | default (printf "http://slipway-analytics.%s.svc:8123" .Release.Namespace) | quote }} }
- { name: SLIPWAY_ANALYTICS_USERNAME, value: {{ $analytics.username | quote }} }
- { name: SLIPWAY_ANALYTICS_PASSWORD_FILE, value: /etc/slipway/analytics/password }
- { name: SLIPWAY_ANALYTICS_DATABASE, value: {{ $analytics.database | quote }} }
{{- with $analytics.cluster }}
- { name: SLIPWAY_ANALYTICS_CLUSTER, value: {{ . | quote }} }
{{- end }}
{{- if $analytics.ca }}
- { name: SLIPWAY_ANALYTICS_CA_FILE, value: /etc/slipway/analytics-ca/ca.crt }
{{- end }}
{{- end }}

{{- define "slipway.analytics.mounts" -}}
- { name: analytics, mountPath: /etc/slipway/analytics, readOnly: true }
{{- if .Values.analytics.ca }}
- { name: analytics-ca, mountPath: /etc/slipway/analytics-ca, readOnly: true }
{{- end }}
{{- end }}

{{- define "slipway.analytics.volumes" -}}
{{- $secret := .Values.analytics.existingSecret }}
- name: analytics
  secret:
    secretName: {{ $secret.name | default "slipway-analytics" | quote }}
    defaultMode: 0440
    items: [{ key: {{ ternary $secret.key "password" (ne $secret.name "") | quote }}, path: password }]
{{- if .Values.analytics.ca }}
- { name: analytics-ca, configMap: { name: slipway-analytics-ca } }
{{- end }}
{{- end }}

{{/* Changes when the values name another store: the password is read at start. Too short to reveal anything of it. */}}
{{- define "slipway.analytics.which" -}}
{{- $analytics := .Values.analytics }}
{{- printf "%s %s %s %s %s %s" $analytics.url $analytics.username $analytics.password $analytics.existingSecret.name $analytics.cluster $analytics.ca | sha256sum | trunc 6 | quote }}
{{- end }}

{{/* The way to the store, as a NetworkPolicy's egress has it. */}}
{{- define "slipway.analytics.egress" -}}
{{- if include "slipway.analytics.embedded" . }}
- to:
    - namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: {{ .Release.Namespace }} } }
      podSelector:
        matchLabels:
          {{- include "slipway.selector" (dict "root" . "component" "slipway-analytics") | nindent 10 }}
  ports: [{ protocol: TCP, port: 8123 }]
{{- else }}
- to:
    {{- range .Values.networkPolicy.analytics.cidrs }}
    - ipBlock: { cidr: {{ . | quote }} }
    {{- end }}
  ports: [{ protocol: TCP, port: {{ .Values.networkPolicy.analytics.port }} }]
{{- end }}
{{- end }}

{{/* Days for which the store keeps lines of logs: the longest of all plans. 8 where one names none, and at least, for projects on a plan that the catalog no longer has. */}}
{{- /* Whether instances are sampled: the collector's token goes to no kubelet that is not verified. */}}
{{- define "slipway.metrics.sampled" -}}
{{- if and (.Values.analytics.collector.metrics).enabled .Values.kubelet.verify }}true{{ end }}
{{- end }}

{{- define "slipway.logs.days" -}}
{{- $catalog := .Values.catalog | default (.Files.Get "files/catalog.yaml" | fromYaml) }}
{{- $days := 8 }}
{{- range concat (default list $catalog.httpPlans) (default list $catalog.databasePlans) }}
{{- $days = max $days (int (default 8 .logDays)) }}
{{- end }}
{{- $days }}
{{- end }}

{{/* Whether applications can be scaled by their requests: "true" or empty. Values of a release without it (helm upgrade --reuse-values) have none of these. */}}
{{- define "slipway.requestScaling" -}}
{{- $scaling := .Values.requestScaling | default dict }}
{{- $isCounted := or (not .Values.analytics.collector.otlp.enabled) $scaling.besideOtlp }}
{{- if and .Values.analytics.enabled $scaling.enabled $isCounted }}true{{ end }}
{{- end }}
