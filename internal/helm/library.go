package helm

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// library holds the named templates. The hash is that of package manifest: length
// and name of the key, length of the text, the text.
const library = `{{- /* The texts end in a line break, which a template of their own loses. */ -}}
{{- define "scheduler.configuration" -}}
{{ printf "%s\n" (include "scheduler.configurationText" .) }}
{{- end -}}

{{- define "scheduler.configMap" -}}
{{- $key := printf "%s.yaml" .Values.name -}}
{{- $text := include "scheduler.configuration" . -}}
{{ .Values.name }}-config-{{ printf "%d %s %d %s" (len $key) $key (len $text) $text | sha256sum | trunc 10 }}
{{- end -}}

{{- define "scheduler.kubeconfig" -}}
{{ printf "%s\n" (include "scheduler.kubeconfigText" .) }}
{{- end -}}

{{- define "scheduler.kubeconfigMap" -}}
{{- $key := printf "kubeconfig-for-%s.yaml" .Values.name -}}
{{- $text := include "scheduler.kubeconfig" . -}}
kubeconfig-for-{{ .Values.name }}-HASH
{{- end -}}

{{- define "scheduler.affinity" -}}
{{- $affinity := dict -}}
{{- if .Values.nodeSelector -}}
{{- $labels := list -}}
{{- range $key, $value := .Values.nodeSelector -}}
{{- if $value -}}
{{- $labels = append $labels (dict "key" $key "operator" "In" "values" (list $value)) -}}
{{- else -}}
{{- $labels = append $labels (dict "key" $key "operator" "Exists") -}}
{{- end -}}
{{- end -}}
{{- $terms := dict "nodeSelectorTerms" (list (dict "matchExpressions" $labels)) -}}
{{- $_ := set $affinity "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" $terms) -}}
{{- end -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- $_ := set $affinity "podAntiAffinity" (include "scheduler.apart" . | fromJson) -}}
{{- end -}}
{{- if $affinity -}}{{ toJson $affinity }}{{- else -}}null{{- end -}}
{{- end -}}

`

// computedHash is the hash of a ConfigMap whose text is all in the chart.
const computedHash = `{{ printf "%d %s %d %s" (len $key) $key (len $text) $text | sha256sum | trunc 10 }}`

// library adds the named templates and the texts that they include.
func (c *chart) library() error {
	apart, err := jsonText(c.apart)
	if err != nil {
		return fmt.Errorf("write the chart's templates: %w", err)
	}
	suffix := computedHash
	if c.kubeconfigSuffix != "" {
		suffix = c.kubeconfigSuffix
	}
	text := strings.Replace(library, "HASH", suffix, 1)
	text += define("scheduler.apart", expressions.Replace(escape(apart)))
	text += define("scheduler.kubeconfigText", expressions.Replace(escape(c.kubeconfig)))
	configuration, err := c.configurationTemplate()
	if err != nil {
		return fmt.Errorf("write the chart's configuration: %w", err)
	}
	c.files["templates/_scheduler.tpl"] = []byte(text + define("scheduler.configurationText", configuration))
	return nil
}

// define is a named template of a text.
func define(name, text string) string {
	return fmt.Sprintf("{{- define %q -}}\n%s\n{{- end -}}\n\n", name, strings.TrimRight(text, "\n"))
}

// configurationTemplate is the text of the configuration, in which the plugins of
// the profile are values. With several profiles they are as they were.
func (c *chart) configurationTemplate() (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(c.configuration), &doc); err != nil || len(doc.Content) == 0 {
		return "", fmt.Errorf("read it: %w", err)
	}
	_, profiles := field(doc.Content[0], "profiles")
	plain := expressions.Replace(escape(c.configuration))
	if profiles == nil || len(profiles.Content) != 1 {
		return plain, nil
	}
	lines := strings.Split(strings.TrimRight(c.configuration, "\n"), "\n")
	profile := profiles.Content[0]
	last := end(lines, profile, len(profile.Content)-2)
	indent := profile.Column - 1
	var out []string
	next := 0
	for i := 0; i+1 < len(profile.Content); i += 2 {
		key := profile.Content[i]
		value := map[string]*string{"plugins": &c.values.Plugins, "pluginConfig": &c.values.PluginConfig}[key.Value]
		if value == nil || i == 0 || key.Line == profile.Content[i+1].Line {
			continue
		}
		from, until := key.Line-1, end(lines, profile, i)
		*value = strings.ReplaceAll(outdent(lines[from+1:until], indent+2), Placeholder, c.in.Name)
		out = append(out, escaped(lines[next:from])...)
		out = append(out, optional(key.Value, indent))
		next = until
	}
	out = append(out, escaped(lines[next:last])...)
	for _, name := range []string{"plugins", "pluginConfig"} {
		if key, _ := field(profile, name); key == nil {
			out = append(out, optional(name, indent))
		}
	}
	return strings.Join(append(out, escaped(lines[last:])...), "\n"), nil
}

// optional is a section of the profile that is there if its value is not empty.
// The line break before it is that of the line above.
func optional(name string, indent int) string {
	pad := strings.Repeat(" ", indent)
	return fmt.Sprintf("{{- with .Values.%s }}\n%s%s:\n{{ . | trimSuffix \"\\n\" | indent %d }}\n{{- end }}", name, pad, name, indent+2)
}

func escaped(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = expressions.Replace(escape(line))
	}
	return all
}

// end returns the line, from 0, at which the i-th key of a mapping in block style
// and its value end.
func end(lines []string, mapping *yaml.Node, i int) int {
	if i+2 < len(mapping.Content) {
		return mapping.Content[i+2].Line - 1
	}
	at := mapping.Content[i].Line
	for at < len(lines) && strings.HasPrefix(lines[at], strings.Repeat(" ", mapping.Column-1)) {
		at++
	}
	return at
}

func field(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

func outdent(lines []string, by int) string {
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(strings.TrimPrefix(line, strings.Repeat(" ", by)) + "\n")
	}
	return text.String()
}
