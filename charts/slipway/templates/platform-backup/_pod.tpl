{{/* Whether the newest backup of the platform is restored for a test: "true" or empty. */}}
{{- define "slipway.platformVerification" -}}
{{- if and .Values.platformBackup.enabled .Values.platformBackup.verify.identitySecret.name }}true{{ end }}
{{- end }}

{{/*
A CronJob of `root`, named `component`, whose pod has two containers: `args` in the image of the operator, with the keys of the bucket and the
cluster, and `script` in the image of the ledger, with those of the ledger. They share a folder with a pipe.
*/}}
{{- define "slipway.platformBackup.cronJob" -}}
{{- $root := .root }}
{{- $values := $root.Values.platformBackup }}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ .component }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "slipway.labels" . | nindent 4 }}
spec:
  schedule: {{ .schedule | quote }}
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 1800
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 2
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: {{ .deadlineSeconds | int }}
      template:
        metadata:
          labels:
            {{- include "slipway.podLabels" . | nindent 12 }}
        spec:
          restartPolicy: Never
          serviceAccountName: {{ .component }}
          # Mounted below, for one of the containers.
          automountServiceAccountToken: false
          enableServiceLinks: false
          terminationGracePeriodSeconds: 10
          securityContext:
            {{- include "slipway.podSecurity" . | nindent 12 }}
          {{- with include "slipway.placement" . | trim }}
          {{- . | nindent 10 }}
          {{- end }}
          initContainers:
            - name: postgres
              # It ends with the other one.
              restartPolicy: Always
              image: {{ $root.Values.images.ledger | quote }}
              imagePullPolicy: {{ $root.Values.images.pullPolicy }}
              command: [sh, /etc/slipway/recovery/{{ .script }}, /run/slipway/recovery, /var/lib/slipway/recovery/pgdata]
              {{- with .postgresEnv }}
              env:
                {{- . | nindent 16 }}
              {{- end }}
              volumeMounts:
                - { name: files, mountPath: /etc/slipway/recovery, readOnly: true }
                - { name: exchange, mountPath: /run/slipway/recovery }
                {{- if .data }}
                - { name: data, mountPath: /var/lib/slipway/recovery }
                {{- end }}
              resources:
                {{- toYaml $values.postgresResources | nindent 16 }}
              securityContext:
                runAsUser: 999
                {{- include "slipway.containerSecurity" $root | nindent 16 }}
          containers:
            - name: recovery
              image: {{ .image | quote }}
              imagePullPolicy: {{ $root.Values.images.pullPolicy }}
              args: {{ toJson .args }}
              env:
                - { name: SLIPWAY_NAMESPACE, valueFrom: { fieldRef: { fieldPath: metadata.namespace } } }
                - { name: SLIPWAY_RECOVERY_DIR, value: /run/slipway/recovery }
                - { name: SLIPWAY_PLATFORM_BACKUP_PLACE, value: {{ printf "s3://%s/%s" $values.s3.bucket $values.s3.prefix | quote }} }
                - { name: SLIPWAY_S3_FORCE_PATH_STYLE, value: {{ $values.s3.forcePathStyle | quote }} }
                - { name: AWS_ENDPOINT_URL_S3, value: {{ $values.s3.endpoint | quote }} }
                - { name: AWS_REGION, value: {{ $values.s3.region | quote }} }
                {{- if $values.s3.ca }}
                - { name: AWS_CA_BUNDLE, value: /etc/slipway/recovery/ca.crt }
                {{- end }}
                {{- range $name, $key := dict "AWS_ACCESS_KEY_ID" "accessKeyId" "AWS_SECRET_ACCESS_KEY" "secretAccessKey" }}
                - name: {{ $name }}
                  valueFrom: { secretKeyRef: { name: {{ $values.s3.existingSecret | quote }}, key: {{ $key }} } }
                {{- end }}
                {{- .env | nindent 16 }}
                {{- include "slipway.node.env" $values.resources | nindent 16 }}
              volumeMounts:
                - { name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true }
                - { name: files, mountPath: /etc/slipway/recovery, readOnly: true }
                - { name: exchange, mountPath: /run/slipway/recovery }
                {{- if .data }}
                - { name: identity, mountPath: /etc/slipway/identity, readOnly: true }
                {{- end }}
              resources:
                {{- toYaml $values.resources | nindent 16 }}
              securityContext:
                {{- include "slipway.containerSecurity" $root | nindent 16 }}
          volumes:
            - { name: files, configMap: { name: slipway-platform-backup-files } }
            - { name: exchange, emptyDir: { sizeLimit: 16Mi } }
            - name: token
              projected:
                defaultMode: 0440
                sources:
                  - serviceAccountToken: { path: token, expirationSeconds: 3607 }
                  - configMap: { name: kube-root-ca.crt, items: [{ key: ca.crt, path: ca.crt }] }
                  - downwardAPI: { items: [{ path: namespace, fieldRef: { fieldPath: metadata.namespace } }] }
            {{- with .data }}
            - { name: data, emptyDir: { sizeLimit: {{ . }} } }
            - name: identity
              secret:
                secretName: {{ $values.verify.identitySecret.name | quote }}
                defaultMode: 0440
                items: [{ key: {{ $values.verify.identitySecret.key | quote }}, path: identity }]
            {{- end }}
{{- end }}
