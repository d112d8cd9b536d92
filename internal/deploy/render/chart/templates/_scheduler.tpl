{{- /* Adds the fields of the release for the API server to the values, once. A chart of one release has none. */ -}}
{{- define "scheduler.select" -}}
{{- if and .Values.releases (not .Values.release) -}}
{{- $minor := regexReplaceAll "[^0-9]" .Capabilities.KubeVersion.Minor "" -}}
{{- $server := regexFind "^v?[0-9]+[.][0-9]+([.][0-9]+)?" .Capabilities.KubeVersion.Version | default (printf "1.%s" $minor) | semver -}}
{{- $best := "" -}}
{{- $minors := list -}}
{{- range $release, $_ := .Values.releases -}}
{{- $this := semver $release -}}
{{- $minors = append $minors (printf "%d.%d" $this.Major $this.Minor) | uniq -}}
{{- if eq $minor (toString $this.Minor) -}}
{{- if not $best -}}
{{- $best = $release -}}
{{- else if gt ((semver $best).Compare $server) 0 -}}
{{- if lt ($this.Compare (semver $best)) 0 -}}{{- $best = $release -}}{{- end -}}
{{- else if and (le ($this.Compare $server) 0) (gt ($this.Compare (semver $best)) 0) -}}
{{- $best = $release -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $best -}}
{{- fail (printf "this chart has no kube-scheduler for Kubernetes 1.%s, only for %s: add the release to the release index with `pmk-sched build`, and write the chart again" $minor (join ", " $minors)) -}}
{{- end -}}
{{- range $field, $value := index .Values.releases $best -}}
{{- if not (get $.Values $field) -}}{{- $_ := set $.Values $field $value -}}{{- end -}}
{{- end -}}
{{- $_ := set .Values "release" $best -}}
{{- end -}}
{{- end }}

{{- define "scheduler.release" -}}
{{ .Values.release | default .Chart.AppVersion }}
{{- end }}

{{- define "scheduler.selectorLabels" -}}
app.kubernetes.io/instance: {{ .Values.name }}
app.kubernetes.io/name: kube-scheduler
{{- end }}

{{- define "scheduler.podLabels" -}}
{{ include "scheduler.selectorLabels" . }}
app.kubernetes.io/managed-by: pmk-sched
component: scheduler
pmk-sched.io/release: {{ include "scheduler.release" . }}
tier: control-plane
{{- end }}

{{- define "scheduler.labels" -}}
{{ include "scheduler.podLabels" . }}
{{- with index (.Chart.Annotations | default dict) "pmk-sched.io/version" }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "scheduler.subjects" -}}
{{- if .Values.credentials.secret -}}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.credentials.user }}
{{- else -}}
- kind: ServiceAccount
  name: {{ .Values.name }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}

{{- /* A hash of one key and its text, as pmk-sched computes it. */ -}}
{{- define "scheduler.hash" -}}
{{- printf "%d %s %d %s" (len .key) .key (len .text) .text | sha256sum | trunc 10 -}}
{{- end }}

{{- define "scheduler.configKey" -}}
{{ .Values.name }}.yaml
{{- end }}

{{- define "scheduler.config" -}}
{{- tpl .Values.configuration . -}}
{{- end }}

{{- define "scheduler.configMapName" -}}
{{ .Values.name }}-config-{{ include "scheduler.hash" (dict "key" (include "scheduler.configKey" .) "text" (include "scheduler.config" .)) }}
{{- end }}

{{- define "scheduler.kubeconfigKey" -}}
kubeconfig-for-{{ .Values.name }}.yaml
{{- end }}

{{- define "scheduler.kubeconfigPath" -}}
/srv/kubernetes/kubeconfigs/{{ include "scheduler.kubeconfigKey" . }}
{{- end }}

{{- define "scheduler.kubeconfig" -}}
{{- $user := "serviceaccount" -}}
{{- $dir := "/var/run/secrets/kubernetes.io/serviceaccount" -}}
{{- if .Values.credentials.secret -}}
{{- $user = .Values.credentials.user -}}
{{- $dir = "/srv/kubernetes/credentials" -}}
{{- end -}}
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: {{ .Values.apiServer | quote }}
    certificate-authority: {{ $dir }}/ca.crt
users:
- name: {{ $user | quote }}
  user:
    {{- if .Values.credentials.secret }}
    client-certificate: {{ $dir }}/tls.crt
    client-key: {{ $dir }}/tls.key
    {{- else }}
    tokenFile: {{ $dir }}/token
    {{- end }}
contexts:
- name: scheduler
  context:
    cluster: local
    user: {{ $user | quote }}
current-context: scheduler
{{ end }}

{{- define "scheduler.kubeconfigMapName" -}}
kubeconfig-for-{{ .Values.name }}-{{ include "scheduler.hash" (dict "key" (include "scheduler.kubeconfigKey" .) "text" (include "scheduler.kubeconfig" .)) }}
{{- end }}

{{- /* A scheduler that fills its caches only when it leads is ready before it does. */ -}}
{{- define "scheduler.readinessPath" -}}
{{- $path := .Values.probes.readinessPath -}}
{{- if and (eq $path "/readyz") (gt (int .Values.replicas) 1) (include "scheduler.config" . | fromYaml).delayCacheUntilActive -}}
{{- $path = "/readyz?exclude=sched-handler-sync" -}}
{{- end -}}
{{ $path }}
{{- end }}

{{- define "scheduler.nodeAffinity" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions:
      {{- with .Values.architectures }}
      - key: kubernetes.io/arch
        operator: In
        values: {{ toJson . }}
      {{- end }}
      {{- range $key, $value := .Values.nodeSelector }}
      - key: {{ $key }}
        {{- if $value }}
        operator: In
        values: [{{ $value | quote }}]
        {{- else }}
        operator: Exists
        {{- end }}
      {{- else }}
      - key: kubernetes.io/os
        operator: In
        values: [linux]
      - key: type
        operator: NotIn
        values: [kwok]
      {{- end }}
{{- end }}
