package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/versions"
)

// budget returns a PodDisruptionBudget that keeps one pod while nodes are drained.
func budget(release versions.Release, meta metav1.ObjectMeta, selector map[string]string) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": release.Rules().PolicyAPI, "kind": "PodDisruptionBudget",
		"metadata": map[string]any{"name": meta.Name, "namespace": meta.Namespace, "labels": anyMap(meta.Labels)},
		"spec":     map[string]any{"minAvailable": int64(1), "selector": map[string]any{"matchLabels": anyMap(selector)}},
	}
	return &unstructured.Unstructured{Object: content}
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
