{{/* What of the values is fit for a trial alone, a line each; NOTES.txt shows them after every install and upgrade. */}}
{{- define "slipway.warnings" -}}
{{- if not .Values.apiServer.trustedProxies }}
- apiServer.trustedProxies is empty: the ingress's address counts as that of every client, so that all share the limits of one.
{{- end }}
{{- if not .Values.networkPolicy.deniedCidrs }}
- networkPolicy.deniedCidrs is empty: tenants' pods reach the nodes, Services and pods of this cluster.
{{- end }}
{{- range $name, $image := pick .Values.images "operator" "apiServer" (ternary "ledgerPatroni" "ledger" (eq (include "slipway.ledger.replicated" .) "true")) "valkey" "analytics" }}
{{- if and $image (not (contains "@sha256:" $image)) }}
- images.{{ $name }} names no digest ({{ $image }}): what it stands for can change.
{{- end }}
{{- end }}
{{- if and .Values.apiServer.ingress.enabled (not .Values.apiServer.ingress.tlsSecret) }}
- apiServer.ingress.tlsSecret is empty: API keys travel in plain text, unless something in front of the ingress ends TLS.
{{- end }}
{{- if not .Values.platformBackup.enabled }}
- platformBackup.enabled is false: when this cluster is lost, so are its organizations, keys, projects and charges (docs/recovery.md).
{{- else if not (include "slipway.platformVerification" .) }}
- platformBackup.verify.identitySecret.name is empty: no restore test shows that backups of the platform can be restored.
{{- end }}
{{- if not .Values.kubelet.verify }}
- kubelet.verify is false: the metrics of runs are believed, whoever answers on a node's port.
{{- end }}
{{- end }}
