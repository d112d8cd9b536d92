package deploy

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

func TestRevisionRecordsTheRequestForAnUpgrade(t *testing.T) {
	yes := true
	request := &v1alpha1.CustomScheduler{Spec: v1alpha1.CustomSchedulerSpec{
		Configuration: v1alpha1.Configuration{Preset: "binpack"}, Replicas: 2,
		Source: v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Builtin: "timestamp", Args: "a: 1 # one\n"}}},
		Extenders: []v1alpha1.Extender{{Name: "e", URLPrefix: "https://e", FilterVerb: "filter", Ignorable: &yes,
			TLSConfig: &v1alpha1.TLSConfig{CAData: issuer(t).Cert, CertFile: "c", KeyFile: "k", CertData: []byte("CERT"),
				KeyData: []byte("KEY")}}},
	}}
	request.Name = "my-scheduler"
	r := revision(t, 3, "v1.24.3", func(o *PlanInput) { o.Spec = request.Spec })
	got, err := ReadInstalled(r)
	if err != nil {
		t.Fatal(err)
	}
	want := &Installed{
		Image: "registry.example.com/s:v1.24.3@sha256:" + strings.Repeat("0123", 16), Request: request,
		Origin: "revision 3 of my-scheduler", APIVersion: "kubescheduler.config.k8s.io/v1beta3", Credentials: CredentialsServiceAccount,
	}
	want.Release.Major, want.Release.Minor, want.Release.Patch = 1, 24, 3
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if before, _, _ := strings.Cut(string(r.Record), `"keys"`); strings.Contains(before,
		base64.StdEncoding.EncodeToString([]byte("KEY"))) {
		t.Errorf("the key is outside of the keys of the record:\n%s", r.Record)
	}
}

// An upgrade asks for what the user asked for; what `extender deploy` added is not in it.
func TestExtendersThatWereAddedAreNotInTheRequestOfAnUpgrade(t *testing.T) {
	all := shapes(t)
	for name, added := range map[string]bool{"extender of pmk-sched": true, "sidecar": false} {
		plan := shaped(t, "v1.24.3", all[name])
		got, err := ReadInstalled(revisionOf(t, 3, plan))
		if err != nil {
			t.Fatal(err)
		}
		asked := got.Request.Spec.Extenders
		switch {
		case !added && (len(asked) != 1 || asked[0].Deployed != nil || len(got.Added) > 0):
			t.Errorf("%s: asked for %+v, added %+v", name, asked, got.Added)
		case added && (len(asked) > 0 || len(got.Added) != 1 || got.Added[0].Name != "far"):
			t.Errorf("%s: asked for %+v, added %+v", name, asked, got.Added)
		}
	}
}

func TestRevisionWithoutARequestIsNotUpgraded(t *testing.T) {
	plan := testPlan(t)
	plan.Request = nil
	if _, err := ReadInstalled(revisionOf(t, 3, plan)); !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "does not record its request") {
		t.Errorf("got %v", err)
	}
}

func TestExtenderIsNotUpgraded(t *testing.T) {
	plan := &Plan{Name: "my-extender", Namespace: "kube-system", Extender: &manifest.Extender{Name: "my-extender"}}
	if _, err := ReadInstalled(revisionOf(t, 1, plan)); !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "is an extender") {
		t.Errorf("got %v", err)
	}
}
