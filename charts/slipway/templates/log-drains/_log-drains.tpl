{{/* Whether log drains are delivered: "true" or empty. Values of a release without them (helm upgrade --reuse-values) have none of these. */}}
{{- define "slipway.logDrains" -}}
{{- $logs := .Values.analytics.collector.logs | default dict }}
{{- $drains := .Values.logDrains | default dict }}
{{- if and .Values.analytics.enabled $logs.enabled $drains.enabled }}true{{ end }}
{{- end }}
