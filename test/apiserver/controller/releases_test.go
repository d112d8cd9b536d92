//go:build linux

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// releases creates a ConfigMap with a release index.
func (w *world) releases(t *testing.T, name, items string) {
	t.Helper()
	if err := w.kube.Create(t.Context(), w.releaseIndex(name, items)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) releaseIndex(name, items string) *corev1.ConfigMap {
	text := "{apiVersion: " + v1alpha1.APIVersion + ", kind: SchedulerReleases, releases: [" + items + "]}"
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Data: map[string]string{"releases.yaml": text}}
}
