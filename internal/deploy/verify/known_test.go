package verify

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

func TestVerifyRefusesAnUnknownName(t *testing.T) {
	deployments := appsv1.DeploymentList{}
	for _, name := range []string{"my-scheduler", "elsewhere"} {
		deployments.Items = append(deployments.Items, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "gpu", Labels: ownership.Labels(name)}})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var object any
		switch r.URL.Path {
		case "/apis/apps/v1/namespaces/n/deployments":
			object = appsv1.DeploymentList{}
		case "/apis/apps/v1/deployments":
			object = deployments
		case "/apis/apps/v1/namespaces/n/deployments/deployed":
			object = appsv1.Deployment{}
		case "/apis/coordination.k8s.io/v1/namespaces/n/leases/by-hand":
			object = coordinationv1.Lease{}
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			object = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}))
	defer server.Close()
	cfg := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	for name, want := range map[string]string{
		"deployed": "", "by-hand": "",
		"my-sheduler": "did you mean my-scheduler?",
		"elsewhere":   "it is in namespace gpu: -n gpu",
		"other":       "`pmk-sched status` lists the schedulers",
	} {
		r, err := newVerifier(cfg, Options{Name: name, Namespace: "n", MustExist: true}, &Result{})
		if err == nil {
			err = r.find(t.Context())
		}
		if hints := strings.Join(problem.Hints(err), ""); hints != want || (err != nil) != (want != "") ||
			problem.IsInvalid(err) != (want != "") {
			t.Errorf("%s: got %v, hint %q, want hint %q", name, err, hints, want)
		}
	}
}
