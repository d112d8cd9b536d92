package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// countingApplier counts what it is told to apply.
type countingApplier struct {
	Cluster
	applied int
}

func (a *countingApplier) Apply(context.Context, []*unstructured.Unstructured) (apply.ChangeSet, error) {
	a.applied++
	return nil, nil
}

const pinned = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// An undo applies what a Secret of the cluster has, and a plan could get a container that its list
// of images does not name.
func TestNothingOutsideOfTheBoundsIsApplied(t *testing.T) {
	errUnsigned := errors.New("unsigned")
	signed := func(_ context.Context, r pack.SignatureRequest) (string, error) {
		name, _, hasDigest := strings.Cut(r.Reference, "@")
		switch {
		case strings.Contains(name, "unsigned"):
			return "", errUnsigned
		case !hasDigest:
			return r.Reference + pinned, nil
		}
		return r.Reference, nil
	}
	bounds := session.Bounds{Key: "key", Repositories: []string{"r.example.com/team"}}
	const deployment = "kind: Deployment\nspec: {template: {spec: {containers: [{name: a, image: r.example.com/team/s" +
		pinned + "}, {name: b, image: IMAGE}]}}}"
	for name, c := range map[string]struct{ object, image, refused string }{
		"within":       {deployment, "r.example.com/team/b" + pinned, ""},
		"elsewhere":    {deployment, "r.example.com/other" + pinned, "is in none of the allowed repositories"},
		"unsigned":     {deployment, "r.example.com/team/unsigned" + pinned, "unsigned"},
		"no digest":    {deployment, "r.example.com/team/b:v1", "has no digest"},
		"not a name":   {deployment, "r.example.com/team/../b:v1", "invalid image name"},
		"no container": {"kind: ConfigMap\ndata: {image.yaml: 'image: IMAGE'}", "busybox", ""},
		"init container of a CronJob": {"kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {initContainers: " +
			"[{name: a, image: IMAGE}]}}}}}", "busybox", "is in none of the allowed repositories"},
		"pod": {"kind: Pod\nspec: {ephemeralContainers: [{name: a, image: IMAGE}]}", "busybox",
			"is in none of the allowed repositories"},
	} {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(c.object, "IMAGE", c.image)), &content); err != nil {
			t.Fatal(err)
		}
		a := &countingApplier{}
		_, err := bounded(a, Deps{Bounds: bounds, Signed: signed}).Apply(t.Context(),
			[]*unstructured.Unstructured{{Object: content}})
		if c.refused == "" && (err != nil || a.applied != 1) ||
			c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || a.applied != 0) {
			t.Errorf("%s: got %v, applied %d", name, err, a.applied)
		}
	}
}
