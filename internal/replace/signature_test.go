package replace

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
)

// signedBy verifies images of a registry, which the key with the given text signed.
func signedBy(signer string, asked *[]string) func(context.Context, pack.SignatureRequest) (string, error) {
	return func(_ context.Context, r pack.SignatureRequest) (string, error) {
		image := r.Reference
		*asked = append(*asked, image)
		if r.Key != signer {
			return "", errors.New("not signed")
		}
		if !strings.Contains(image, "@") {
			image += "@sha256:" + strings.Repeat("0", 64)
		}
		return image, nil
	}
}

// Public keys, to which only their prefix matters.
const keyA, keyB = "-----BEGIN A", "-----BEGIN B"

// keyIn returns the required key in a record.
func keyIn(t *testing.T, text []byte) string {
	t.Helper()
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r.Request.Spec.Image.RequireSignature
}

func TestRequiredKeyIsRecordedAndKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t, "kubeadm")
		var asked []string
		for _, c := range []struct {
			name, image, key, signer string
			refused                  bool
			recorded                 string
			verified                 int
		}{
			{"not signed", "localhost/s:v1.24.3", keyA, keyB, true, "", 1},
			{"signed", "localhost/s:v1.24.3", keyA, keyA, false, keyA, 1},
			{"again without the flag", "localhost/s:v1.24.3", "", keyA, false, keyA, 1},
			{"another image that is not signed", "localhost/s:v1.24.3-2", "", keyB, true, keyA, 1},
			{"the configuration only", "", "", keyB, false, keyA, 0},
			{"another key", "", keyB, keyB, false, keyB, 1},
			{"lifted", "localhost/s:v1.24.3-2", v1alpha1.NoSignature, keyA, false, "", 0},
		} {
			asked = nil
			deps := n.deps(t)
			deps.Signed = signedBy(c.signer, &asked)
			o := asks(c.image, "default")
			o.Request.Spec.Image.RequireSignature, o.StableFor = c.key, time.Millisecond
			plan, err := DryRun(t.Context(), deps, n.info(), o)
			if c.refused != (err != nil) || len(asked) != c.verified {
				t.Fatalf("%s: %v, asked about %q", c.name, err, asked)
			}
			if err != nil {
				continue
			}
			if key := keyIn(t, plan.Record); key != c.recorded || c.recorded != "" && !strings.Contains(plan.Image, "@sha256:") {
				t.Errorf("%s: the key is %q, want %q; the image is %s", c.name, key, c.recorded, plan.Image)
			}
			if c.key == "" || c.recorded == "" {
				continue // to record nothing new takes as long
			}
			if _, err := Run(t.Context(), deps, n.info(), o); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if _, key, err := requiredKey(deps.Files); err != nil || key != c.recorded {
				t.Errorf("%s: the recorded key is %q, want %q: %v", c.name, key, c.recorded, err)
			}
			time.Sleep(time.Second) // backups are named by time
		}
	})
}

// The pods of a run through all nodes are privileged: their image must be signed too.
func TestImageOfThePodsOnNodesMustBeSigned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key, signer string
		asked       int
		refused     bool
	}{
		"signed":       {key: "a", signer: "a", asked: 2},
		"not signed":   {key: "a", signer: "b", asked: 1, refused: true},
		"not required": {key: v1alpha1.NoSignature},
	} {
		var asked []string
		n := &Node{podImage: "r/pmk-sched:v1", info: newTestNode(t, "kubeadm").info()}
		n.o.Image, n.o.Request.Spec.Image.RequireSignature = "r/kube-scheduler:v1", c.key
		n.deps.Signed = signedBy(c.signer, &asked)
		if err := n.verifyForNodes(t.Context()); c.refused != (err != nil) || len(asked) != c.asked {
			t.Errorf("%s: got %v, asked about %q", name, err, asked)
		}
		if c.asked == 2 && !strings.HasPrefix(n.podImage, "r/pmk-sched:v1@sha256:") {
			t.Errorf("%s: the image of the pods is %s", name, n.podImage)
		}
	}
}
