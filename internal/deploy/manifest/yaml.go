package manifest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// RenderOptions are the options for YAML.
type RenderOptions struct {
	// ShowSecrets includes private keys and Secrets' data. By default they are replaced by a word that
	// API servers reject, so that the text is not applied by mistake.
	ShowSecrets bool
}

// redacted replaces a secret. It is neither base64 nor PEM.
const redacted = "<redacted>"

var (
	// secretKey finds the keys for private data in kubeconfigs and scheduler configurations.
	secretKey   = regexp.MustCompile(`["']?[\w.-]*(?:client-key-data|keyData|token|password)["']?:`)
	quotedValue = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')`)
)

// YAML returns the objects as a stream of documents. Secrets are redacted unless ShowSecrets is
// set; the objects are not changed.
func YAML(objects []*unstructured.Unstructured, options ...RenderOptions) ([]byte, error) {
	show := false
	for _, o := range options {
		show = show || o.ShowSecrets
	}
	var out bytes.Buffer
	for i, object := range objects {
		if !show {
			object = redact(object)
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s/%s as YAML: %w", object.GetKind(), object.GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// redact returns a copy of the object without secrets.
func redact(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetKind() != "Secret" && object.GetKind() != "ConfigMap" {
		return object
	}
	safe := object.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		data, _, err := unstructured.NestedMap(safe.Object, field)
		if err != nil || data == nil {
			continue
		}
		for key, value := range data {
			text, ok := value.(string)
			if object.GetKind() == "Secret" || !ok {
				data[key] = redacted
				continue
			}
			data[key] = redactText(text)
		}
		safe.Object[field] = data
	}
	return safe
}

// redactText replaces private data in a kubeconfig or in a scheduler configuration. A value can go
// on in the lines that are indented more than its key.
func redactText(text string) string {
	var out strings.Builder
	column := -1 // of the key whose value goes on
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if column >= 0 && (indent > column || strings.TrimSpace(line) == "") {
			continue
		}
		line, column = redactLine(line)
		out.WriteString(line)
	}
	return out.String()
}

// redactLine replaces private data in a line. A value without quotes ends with the line, or goes on
// after it: redactLine then returns the column of its key, and else -1.
func redactLine(line string) (safe string, column int) {
	done := 0
	for {
		key := secretKey.FindStringIndex(line[done:])
		if key == nil {
			return line, -1
		}
		from := done + key[1]
		value := strings.TrimLeft(line[from:], " \t")
		quoted := quotedValue.FindString(value)
		if quoted == "" {
			end := line[len(strings.TrimRight(line, "\n")):]
			return line[:from] + " " + redacted + end, done + key[0]
		}
		head := line[:len(line)-len(value)] + redacted
		line, done = head+value[len(quoted):], len(head)
	}
}
