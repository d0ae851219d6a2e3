{{/* Whether projects may sleep: "true" or empty. Values of a release without that (helm upgrade --reuse-values) have none of these. */}}
{{- define "slipway.sleep" -}}
{{- $sleep := .Values.sleep | default dict }}
{{- if $sleep.enabled }}
{{- if not (include "slipway.requestScaling" .) }}
{{- fail "sleep.enabled: needs the counts of requests: analytics.enabled, and requestScaling.enabled (with analytics.collector.otlp.enabled also requestScaling.besideOtlp)" }}
{{- end }}
{{- if not .Values.ingress.probeUrl }}
{{- fail "sleep.enabled: needs ingress.probeUrl, by which the operator asks the ingress where it sends requests" }}
{{- end -}}
true
{{- end }}
{{- end }}
