package apply

import (
	"fmt"
	"regexp"

	"github.com/fluxcd/pkg/ssa"
	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// serverFields are set by the API server and left out of diffs.
var serverFields = [][]string{
	{"status"},
	{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "uid"}, {"metadata", "generation"},
	{"metadata", "creationTimestamp"}, {"metadata", "selfLink"},
}

// secretValues matches keys, tokens and passwords in an embedded kubeconfig or scheduler
// configuration: a ConfigMap has them if the user asked for it.
var secretValues = regexp.MustCompile(`((?:client-key-data|keyData|token|password)["']?\s*:\s*)\S+`)

// Diff returns the unified diff between two objects as YAML, with keys, tokens and Secret data
// masked. An object that does not exist is nil.
func Diff(live, wanted *unstructured.Unstructured) (string, error) {
	if live != nil {
		live = live.DeepCopy()
	}
	if wanted != nil {
		wanted = wanted.DeepCopy()
	}
	name, err := maskSecrets(live, wanted)
	if err != nil {
		return "", err
	}
	from, err := yamlOf(live)
	if err != nil {
		return "", err
	}
	to, err := yamlOf(wanted)
	if err != nil {
		return "", err
	}
	text := diff.Diff("live/"+name, from, "wanted/"+name, to)
	return string(secretValues.ReplaceAll(text, []byte("${1}***"))), nil
}

func maskSecrets(live, wanted *unstructured.Unstructured) (name string, err error) {
	either := wanted
	if either == nil {
		either = live
	}
	if either.GetKind() == "Secret" {
		if err := ssa.SanitizeUnstructuredData(live, wanted); err != nil {
			return "", fmt.Errorf("mask data of %s: %w", nameOf(either), err)
		}
	}
	return nameOf(either), nil
}

func yamlOf(obj *unstructured.Unstructured) ([]byte, error) {
	if obj == nil {
		return nil, nil
	}
	for _, field := range serverFields {
		unstructured.RemoveNestedField(obj.Object, field...)
	}
	text, err := yaml.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s as YAML: %w", nameOf(obj), err)
	}
	return text, nil
}
