//go:build linux

package commands

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// record deploys a scheduler of a release with its revision, as when the cluster was of that
// release. No kubelet runs it.
func record(t *testing.T, name, image, release string, spec v1alpha1.CustomSchedulerSpec) {
	t.Helper()
	request := &v1alpha1.CustomScheduler{Spec: spec}
	request.APIVersion, request.Kind, request.Name, request.Namespace = v1alpha1.APIVersion, v1alpha1.Kind, name,
		metav1.NamespaceSystem
	plan, err := deploy.NewPlan(request,
		deploy.Facts{Image: image, Branch: release, Credentials: deploy.CredentialsServiceAccount})
	if err != nil {
		t.Fatal(err)
	}
	client, err := apply.New(server.Config(), apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := run.Context(t)
	described, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	revision, err := client.SaveRevision(ctx, apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: plan.Name, Namespace: plan.Namespace, Description: plan.Description()},
		Objects:      plan.Objects,
		Record:       described,
	})
	if err == nil {
		_, err = client.Apply(ctx, plan.Objects)
	}
	if err == nil {
		err = client.SetRevisionStatus(ctx, &revision.RevisionInfo, apply.Deployed, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// resourceVersions returns the resource versions of the objects of all schedulers.
func resourceVersions(t *testing.T) map[string]string {
	t.Helper()
	kube, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	own := metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=pmk-sched"}
	deployments, err := kube.AppsV1().Deployments("").List(run.Context(t), own)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deployments.Items {
		versions["Deployment/"+d.Name] = d.ResourceVersion
	}
	secrets, err := kube.CoreV1().Secrets("").List(run.Context(t), own)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		versions["Secret/"+s.Name] = s.ResourceVersion
	}
	return versions
}
