//go:build linux && releases

// Package flux runs Flux's source-controller and helm-controller with the chart of a release index
// and the HelmRelease of examples/gitops, for API servers of several releases. The controller
// managers, schedulers and kubelets of the clusters are played.
package flux

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/controlplane"
	"github.com/pmk-sched/pmk-sched/test/internal/gitops"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// gitRepository is the kind of the source.
func gitRepository() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
}

// helmRelease is the kind of a chart on a cluster.
func helmRelease() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
}

// start starts an API server with the CustomResourceDefinitions of Flux, and the controllers.
func start(t *testing.T) *gitops.Management {
	t.Helper()
	management := gitops.StartManagement(t, "flux-system")
	for _, controller := range []string{"source-controller", "helm-controller"} {
		management.Define(t, controller, "github.com/fluxcd/"+controller, "config/crd/bases")
	}
	artifacts, err := apiserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", management.Kubeconfig)
	controlplane.NewProcess(t, run.Binary(t, "source-controller"), "--metrics-addr=0", "--health-addr=0",
		"--storage-path="+t.TempDir(), "--storage-addr="+artifacts, "--storage-adv-addr="+artifacts).Start()
	controlplane.NewProcess(t, run.Binary(t, "helm-controller"), "--metrics-addr=0", "--health-addr=0").Start()
	return management
}

// condition returns the status of a condition, or "".
func condition(o *unstructured.Unstructured, name string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, isMap := c.(map[string]any); isMap && c["type"] == name {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}
