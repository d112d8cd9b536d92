package manifest

import (
	"bytes"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// RenderOptions are the options of YAML.
type RenderOptions struct {
	// ShowSecrets includes private keys and the data of Secrets. By default they are replaced by a
	// word that API servers reject, so that the text is not applied by mistake.
	ShowSecrets bool
}

// redacted replaces a secret. It is neither base64 nor PEM.
const redacted = "<redacted>"

// keyLine finds private keys in kubeconfigs and scheduler configurations.
var keyLine = regexp.MustCompile(`(?m)((?:client-key-data|keyData|token|password)["']?:[ \t]*)[^\s,}]+`)

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
			data[key] = keyLine.ReplaceAllString(text, "${1}"+redacted)
		}
		safe.Object[field] = data
	}
	return safe
}
