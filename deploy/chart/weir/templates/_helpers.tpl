{{- define "weir.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest }}{{ $i.repository }}@{{ $i.digest }}{{ else }}{{ $i.repository }}:{{ $i.tag | default .Chart.AppVersion }}{{ end -}}
{{- end }}

{{/* Where the pods of the sensor, and later those that detach, run. */}}
{{- define "weir.place" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{ end -}}
priorityClassName: {{ .Values.priorityClassName }}
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
tolerations:
  {{- toYaml .Values.tolerations | nindent 2 }}
{{- end }}

{{- define "weir.resources" -}}
requests: {cpu: {{ .cpu }}, memory: {{ .memory }}}
limits: {cpu: {{ .cpu }}, memory: {{ .memory }}}
{{- end }}

{{/* What loads, reads or removes the kernel's programs. */}}
{{- define "weir.powers" -}}
runAsUser: 0
runAsGroup: 0
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
  # What for: docs/deploy.md.
  add:
    - BPF
    - PERFMON
    - NET_ADMIN
    - SYS_ADMIN
    - SYS_PTRACE
    - SYS_RESOURCE
    - IPC_LOCK
    - KILL
    - DAC_READ_SEARCH
    - DAC_OVERRIDE
    {{- if and .Values.containerd.nri .Values.policy.ipc }}
    - CHOWN
    {{- end }}
# The runtimes' default profiles refuse bpf(2), or to write below /sys/fs/bpf.
seccompProfile:
  type: Unconfined
appArmorProfile:
  type: Unconfined
seLinuxOptions:
  type: spc_t
{{- end }}

{{/* What needs no rights; the argument is the number of its user. */}}
{{- define "weir.nobody" -}}
runAsUser: {{ . }}
runAsGroup: {{ . }}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "weir.token" -}}
projected:
  defaultMode: 0444
  sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3600}
    - configMap:
        name: kube-root-ca.crt
        items: [{key: ca.crt, path: ca.crt}]
    - downwardAPI:
        items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]
{{- end }}

{{/* The policy with what other values add to it. */}}
{{- define "weir.policy" -}}
{{- $p := deepCopy .Values.policy -}}
{{- if not ($p.events | default dict).file -}}
{{- $_ := unset ($p.events | default dict) "also" -}}
{{- end -}}
{{- range ($p.guard | default dict).parents -}}
{{- if has . (list "kubepods" "/kubepods" "kubepods.slice" "/kubepods.slice") -}}
{{- fail (printf "policy.guard.parents has %s, in which the sensor itself is: name the slices of the classes Burstable and BestEffort in it" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.containerd -}}
{{- if .socket -}}
{{- $p = mergeOverwrite $p (dict "containers" (dict "containerd" .socket)) -}}
{{- end -}}
{{- if .nri -}}
{{- $p = mergeOverwrite $p (dict "containers" (dict "nri" .nri)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.metrics -}}
{{- if .secret -}}
{{- $p = mergeOverwrite $p (dict "metrics" (dict "listen" (printf "%s:%v" .address .port) "token_file" "/etc/weir-metrics/token" "cert_file" "/etc/weir-metrics/tls.crt" "key_file" "/etc/weir-metrics/tls.key")) -}}
{{- end -}}
{{- end -}}
{{- with .Values.fleet -}}
{{- if .servers -}}
{{- $p = mergeOverwrite $p (dict "fleet" (dict "servers" .servers "creds_file" "/etc/weir-fleet/creds")) -}}
{{- if .ca -}}
{{- $p = mergeOverwrite $p (dict "fleet" (dict "ca_file" "/etc/weir-fleet/ca.crt")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.otlp -}}
{{- if .endpoint -}}
{{- $p = mergeOverwrite $p (dict "otlp" (dict "endpoint" .endpoint "metrics_seconds" .metricsSeconds "without" .without)) -}}
{{- if .headers -}}
{{- $p = mergeOverwrite $p (dict "otlp" (dict "headers_file" "/etc/weir-otel/headers")) -}}
{{- end -}}
{{- if .ca -}}
{{- $p = mergeOverwrite $p (dict "otlp" (dict "ca_file" "/etc/weir-otel/ca.crt")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if or .Values.fleet.servers .Values.otlp.endpoint -}}
{{- $look := ($p.control | default dict).look | default list -}}
{{- $p = mergeOverwrite $p (dict "control" (dict "look" (append $look "65533"))) -}}
{{- end -}}
{{- toYaml $p -}}
{{- end }}
