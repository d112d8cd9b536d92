package render

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

// of returns the objects of a scheduler of a release.
func of(t *testing.T, release string, change func(*Monitored)) []*unstructured.Unstructured {
	t.Helper()
	r, err := versions.Parse(release)
	if err != nil {
		t.Fatal(err)
	}
	s := Monitored{
		Name: "my-scheduler", Namespace: "kube-system", Release: r, PortName: "https", Certificate: true, Route: true,
		PodLabels: map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: "my-scheduler"},
	}
	if change != nil {
		change(&s)
	}
	objects, err := Monitoring(s)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func text(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var documents []string
	for _, o := range objects {
		document, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(document))
	}
	return strings.Join(documents, "---\n")
}

func TestObjectsOfAReleaseAreThoseOfTheGolden(t *testing.T) {
	for _, release := range []string{"v1.20.15", "v1.24.3", versions.Newest()} {
		t.Run(release, func(t *testing.T) {
			if !strings.HasPrefix(release, "v") {
				release = "v" + release + ".0"
			}
			golden.Equal(t, "testdata/"+release+".yaml", text(t, of(t, release, nil)))
		})
	}
}

// An object with the labels of pmk-sched would be deleted by the next deployment, which does not
// know it.
func TestObjectsAreNotThoseOfTheDeployedScheduler(t *testing.T) {
	for _, o := range of(t, "v1.24.3", nil) {
		if labels := o.GetLabels(); ownership.Owns(labels, "my-scheduler") || ownership.IsInstalled(labels) {
			t.Errorf("%s %s has the labels %v", o.GetKind(), o.GetName(), labels)
		}
	}
}

func TestSchedulersWithTheSameNameHaveDifferentDashboards(t *testing.T) {
	ids := map[string]bool{}
	for _, namespace := range []string{"kube-system", "scheduling"} {
		objects := of(t, "v1.24.3", func(s *Monitored) { s.Namespace = namespace })
		data, _, err := unstructured.NestedString(objects[len(objects)-1].Object, "data", "my-scheduler.json")
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct{ UID string }
		if err := json.Unmarshal([]byte(data), &dashboard); err != nil {
			t.Fatal(err)
		}
		if len(dashboard.UID) > 40 || ids[dashboard.UID] {
			t.Errorf("identifier %q in %s", dashboard.UID, namespace)
		}
		ids[dashboard.UID] = true
	}
}

func TestATokenHasNoAlertOnCertificates(t *testing.T) {
	const alert = "SchedulerCertificateExpiresSoon"
	if with := text(t, of(t, "v1.24.3", nil)); !strings.Contains(with, alert) {
		t.Errorf("no alert %s:\n%s", alert, with)
	}
	without := text(t, of(t, "v1.24.3", func(s *Monitored) { s.Certificate = false }))
	if strings.Contains(without, alert) || strings.Contains(without, "apiserver_client_certificate") {
		t.Errorf("an alert %s:\n%s", alert, without)
	}
	if !strings.Contains(without, "SchedulerVersionSkew") {
		t.Errorf("the alerts after %s are missing:\n%s", alert, without)
	}
}

func TestAReleaseThatIsNotSupportedHasNoMonitoring(t *testing.T) {
	objects, err := Monitoring(Monitored{Name: "s", Namespace: "n", Release: versions.Release{Major: 1, Minor: 19}})
	if err == nil || objects != nil {
		t.Errorf("got %d objects, %v", len(objects), err)
	}
}

// Metrics of other releases do not exist: a graph of them is empty, and an alert never fires.
func TestMetricsAreThoseOfTheRelease(t *testing.T) {
	for release, want := range map[string]string{
		"v1.22.17": "scheduler_e2e_scheduling_duration_seconds_bucket scheduler_pod_scheduling_duration_seconds_bucket",
		"v1.23.0":  "scheduler_pod_scheduling_duration_seconds_bucket scheduler_scheduling_attempt_duration_seconds_bucket",
		"v1.28.15": "scheduler_pod_scheduling_duration_seconds_bucket scheduler_scheduling_attempt_duration_seconds_bucket " +
			"scheduler_unschedulable_pods",
		"v1.29.0": "scheduler_pod_scheduling_sli_duration_seconds_bucket " +
			"scheduler_scheduling_attempt_duration_seconds_bucket scheduler_unschedulable_pods",
	} {
		found := map[string]bool{}
		for _, name := range regexp.MustCompile(
			`scheduler_(?:e2e|pod_scheduling|scheduling_attempt|unschedulable)[a-z_0-9]+`).FindAllString(text(t,
			of(t, release, nil)), -1) {
			found[name] = true
		}
		for _, name := range strings.Fields(want) {
			if !found[name] {
				t.Errorf("%s: no query of %s: %v", release, name, found)
			}
			delete(found, name)
		}
		if len(found) > 0 {
			t.Errorf("%s: queries of %v", release, found)
		}
	}
}
