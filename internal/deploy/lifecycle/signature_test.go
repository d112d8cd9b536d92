package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// recordedLedger has one deployed revision.
type recordedLedger struct {
	deploy.Cluster
	revision *apply.Revision
	deployed []*unstructured.Unstructured
}

func (l recordedLedger) Deployments(context.Context, string) ([]*unstructured.Unstructured, error) {
	return l.deployed, nil
}

func (l recordedLedger) Revisions(context.Context, string, string) ([]apply.RevisionInfo, error) {
	if l.revision == nil {
		return nil, nil
	}
	return []apply.RevisionInfo{l.revision.RevisionInfo}, nil
}

func (l recordedLedger) ReadRevision(context.Context, apply.RevisionInfo) (*apply.Revision, error) {
	return l.revision, nil
}

// requiring is a deployed revision whose request requires a key.
func requiring(t *testing.T, key string) *apply.Revision {
	t.Helper()
	request := v1alpha1.CustomScheduler{}
	request.Spec.Image.RequireSignature = key
	text, err := json.Marshal(map[string]any{
		"request": request, "scheduler": map[string]any{"Name": "s", "Configuration": map[string]any{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Revision{RevisionInfo: apply.RevisionInfo{Name: "s", Number: 1, Status: apply.Deployed},
		Record: text}
}

func TestRequirementIsKeptUntilItIsLifted(t *testing.T) {
	for name, c := range map[string]struct {
		recorded, wanted, want, message string
	}{
		"first deployment": {"", "a", "a", ""},
		"no requirement":   {"", "", "", ""},
		"without the flag": {"a", "", "a", "note: the image must be signed"},
		"another key":      {"a", "b", "b", ""},
		"lifted":           {"a", v1alpha1.NoSignature, "", "warning: the image needs no signature any more"},
		"nothing to lift":  {"", v1alpha1.NoSignature, "", ""},
	} {
		message := ""
		s := &session.Session{
			Warn: func(text string) { message = "warning: " + text }, Note: func(text string) { message = "note: " + text },
		}
		r := &request{deps: deploy.Deps{Cluster: recordedLedger{revision: requiring(t, c.recorded)}}}
		r.Request = &v1alpha1.CustomScheduler{}
		r.Request.Spec.Image.RequireSignature = c.wanted
		if err := r.keepRequirement(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		got := r.Request.Spec.Image.RequireSignature
		if got != c.want || !strings.HasPrefix(message, c.message) || c.message == "" && message != "" {
			t.Errorf("%s: got the key %q and %q, want %q and %q", name, got, message, c.want, c.message)
		}
	}
}

// A requirement that cannot be read is never taken for none.
func TestUnreadableRequirementIsRefusedUntilTheRequestSaysOne(t *testing.T) {
	damaged := requiring(t, "a")
	damaged.Damage = errors.New("unpack: unexpected EOF")
	cut := requiring(t, "a")
	cut.Record = cut.Record[:len(cut.Record)/2]
	lost := requiring(t, "a")
	lost.Record = nil
	deployment := &unstructured.Unstructured{}
	deployment.SetAnnotations(map[string]string{"pmk-sched.io/signed-by": "id"})
	lost.Objects = []*unstructured.Unstructured{deployment}
	unrecorded := requiring(t, "a")
	unrecorded.Record = nil
	for name, c := range map[string]struct {
		revision *apply.Revision
		refused  string
	}{
		"damaged":               {damaged, "read the required signature of s: unpack: unexpected EOF"},
		"half a record":         {cut, "read the record of revision 1 of s: unexpected end of JSON input"},
		"no record of a signed": {lost, "revision 1 of s requires the key id and does not record it"},
		"no record":             {unrecorded, ""},
	} {
		for _, wanted := range []string{"", "b", v1alpha1.NoSignature} {
			s := &session.Session{Warn: func(string) {}, Note: func(string) {}}
			r := &request{deps: deploy.Deps{Cluster: recordedLedger{revision: c.revision}}}
			r.Request = &v1alpha1.CustomScheduler{}
			r.Request.Name = "s"
			image := &r.Request.Spec.Image
			image.RequireSignature = wanted
			err := r.keepRequirement(t.Context(), s)
			if refused := wanted == "" && c.refused != ""; refused {
				if err == nil || !strings.Contains(err.Error(), c.refused) || len(problem.Hints(err)) != 1 {
					t.Errorf("%s: got %v with the hints %q, want %s", name, err, problem.Hints(err), c.refused)
				}
			} else if err != nil || image.RequireSignature != strings.TrimPrefix(wanted, v1alpha1.NoSignature) {
				t.Errorf("%s, %q: got %q, %v", name, wanted, image.RequireSignature, err)
			}
		}
	}
}

func TestUnsignedImageIsNotDeployed(t *testing.T) {
	r := &request{}
	if err := r.requireImages(); err != nil {
		t.Errorf("nothing is required: %v", err)
	}
	r.Signature = &deploy.Signature{Key: "k", Err: errors.New("not signed")}
	if err := r.requireImages(); err == nil {
		t.Error("an image without a signature is accepted")
	}
}
