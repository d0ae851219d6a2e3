{{/* Whether projects may sleep: "true" or empty. Values of a release without that (helm upgrade --reuse-values) have none of these. */}}
{{- define "slipway.sleep" -}}
{{- $sleep := .Values.sleep | default dict }}
{{- if $sleep.enabled }}true{{ end }}
{{- end }}
