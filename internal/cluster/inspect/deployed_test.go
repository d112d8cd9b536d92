package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

func deployment(namespace, name, release, image string) appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: ownership.Labels(name)}}
	d.Labels[ownership.LabelName] = ownership.Scheduler
	if release != "" {
		d.Labels[ownership.LabelRelease] = release
	}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-scheduler", Image: image}}
	return d
}

func TestDetectFindsOutdatedSchedulers(t *testing.T) {
	s := pmkMaster()
	other := deployment("kube-system", "someone-elses", "v1.20.0", "x")
	other.Labels = map[string]string{"app": "other"}
	byHelm := deployment("kube-system", "charted", "v1.23.17", "localhost/charted:v1.23.17")
	byHelm.Labels[ownership.LabelManagedBy] = ownership.Helm
	s.deployments = []appsv1.Deployment{
		byHelm,
		deployment("kube-system", "plain", "v1.23.17", "localhost/plain:v1.23.17"),
		deployment("kube-system", "fits", "v1.24.17", "localhost/fits:v1.24.17"),
		deployment("gpu", "pushed", "v1.23.17", "registry.example/team/pushed:1.23.17-2"),
		deployment("gpu", "unsaid", "", "registry.example/unsaid:2"),
		other,
	}
	info := detect(t, s)
	want := []DeployedScheduler{
		{
			Name: "pushed", Namespace: "gpu", Image: "registry.example/team/pushed:1.23.17-2", Release: "v1.23.17",
			Due:     "v1.24.3",
			Command: "pmk-sched -n gpu upgrade --name pushed",
		},
		{Name: "unsaid", Namespace: "gpu", Image: "registry.example/unsaid:2"},
		{Name: "charted", Namespace: "kube-system", Image: "localhost/charted:v1.23.17", Release: "v1.23.17", Due: "v1.24.3"},
		{Name: "fits", Namespace: "kube-system", Image: "localhost/fits:v1.24.17", Release: "v1.24.17"},
		{
			Name: "plain", Namespace: "kube-system", Image: "localhost/plain:v1.23.17", Release: "v1.23.17", Due: "v1.24.3",
			Command: "pmk-sched upgrade --name plain",
		},
	}
	if diff := cmp.Diff(want, info.Scheduler.Deployed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wants(t, info,
		"charted in namespace kube-system is v1.23.17, the API server is v1.24.3: upgrade its Helm release with a chart "+
			"for v1.24.3",
		"plain in namespace kube-system is v1.23.17, the API server is v1.24.3: upgrade it with: pmk-sched upgrade --name "+
			"plain", "the release of scheduler unsaid in namespace gpu is unknown")
}

func TestDetectReadsDeploymentsOfItsNamespaceWhenOthersAreForbidden(t *testing.T) {
	s := pmkMaster()
	s.deployments = []appsv1.Deployment{
		deployment("kube-system", "plain", "v1.24.3", "localhost/plain:v1.24.3"),
		deployment("gpu", "hidden", "v1.24.3", "localhost/hidden:v1.24.3"),
	}
	s.forbid = func(path string) bool { return path == "/apis/apps/v1/deployments" }
	info := detect(t, s)
	if len(info.Scheduler.Deployed) != 1 || info.Scheduler.Deployed[0].Name != "plain" {
		t.Errorf("got %+v", info.Scheduler.Deployed)
	}
}

func TestRetag(t *testing.T) {
	for image, want := range map[string]string{
		"localhost/s:v1.24.3":                        "localhost/s:v1.25.4",
		"localhost/s":                                "localhost/s:v1.25.4",
		"registry.example:5000/s":                    "registry.example:5000/s:v1.25.4",
		"registry.example:5000/s:1.24.3-gpu":         "registry.example:5000/s:1.25.4-gpu",
		"registry.example/s:stable":                  "registry.example/s:v1.25.4",
		"registry.example/s@sha256:" + "0123456789":  "registry.example/s:v1.25.4",
		"registry.example/s:v1.24.3-gpu@sha256:0123": "registry.example/s:v1.25.4-gpu",
	} {
		if got := Retag(image, "v1.24.3", "v1.25.4"); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}
