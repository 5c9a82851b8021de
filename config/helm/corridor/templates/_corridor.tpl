{{/* The label that finds the Pods. */}}
{{- define "corridor.selector" -}}
app.kubernetes.io/name: corridor-scheduler
{{- end }}

{{- define "corridor.labels" -}}
app.kubernetes.io/name: corridor-scheduler
app.kubernetes.io/part-of: corridor
{{- end }}

{{/* Roles, policies and the backends' Leases name this namespace, so no other will do. */}}
{{- define "corridor.namespace" -}}
{{- if ne .Release.Namespace "corridor-system" -}}
{{- fail "install it with --namespace corridor-system: roles and policies name that namespace" -}}
{{- end -}}
corridor-system
{{- end }}
