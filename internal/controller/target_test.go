package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

func TestChoiceForTheOldestServer(t *testing.T) {
	index := &v1alpha1.SchedulerReleases{Releases: []v1alpha1.SchedulerRelease{
		{Minor: "1.28", Release: "v1.28.7", Image: "s:v1.28.7"},
		{Minor: "1.29", Release: "v1.29.1", Image: "s:v1.29.1"},
	}}
	at := func(image string) *v1alpha1.DeployedRelease {
		return &v1alpha1.DeployedRelease{Image: image, Server: "v1.28.7"}
	}
	for name, c := range map[string]struct {
		servers         Servers
		policy          string
		deployed        *v1alpha1.DeployedRelease
		deploy, waiting string
		missing         bool
	}{
		"one minor":                     {servers: Servers{"v1.29.3", "v1.29.3"}, deploy: "s:v1.29.1"},
		"an upgrade in progress":        {servers: Servers{"v1.28.7", "v1.29.3"}, deployed: at("s:v1.28.7"), deploy: "s:v1.28.7"},
		"a new minor without an image":  {servers: Servers{"v1.30.1", "v1.30.1"}, deployed: at("s:v1.29.1"), deploy: "s:v1.29.1", missing: true},
		"no image at all":               {servers: Servers{"v1.30.1", "v1.30.1"}, missing: true},
		"the deployed image is dropped": {servers: Servers{"v1.30.1", "v1.30.1"}, deployed: at("gone"), missing: true},
		"Manual before the first deployment": {servers: Servers{"v1.29.3", "v1.29.3"}, policy: v1alpha1.UpgradeManual,
			deploy: "s:v1.29.1"},
		"Manual": {servers: Servers{"v1.29.3", "v1.29.3"}, policy: v1alpha1.UpgradeManual, deployed: at("s:v1.28.7"),
			deploy: "s:v1.28.7", waiting: "s:v1.29.1"},
		"Manual, with another entry of the same image": {servers: Servers{"v1.29.3", "v1.29.3"},
			policy: v1alpha1.UpgradeManual, deployed: at("s:v1.29.1"), deploy: "s:v1.29.1"},
	} {
		object := &v1alpha1.CustomScheduler{}
		object.Spec.UpgradePolicy, object.Status.Release = c.policy, c.deployed
		got, err := choose(object, index, c.servers)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		image := func(t *target) string {
			if t == nil {
				return ""
			}
			return t.Image
		}
		if image(got.deploy) != c.deploy || image(got.waiting) != c.waiting || (got.missing != nil) != c.missing {
			t.Errorf("%s: got deploy %q, waiting %q, missing %v", name, image(got.deploy), image(got.waiting), got.missing)
		}
	}
	if _, err := choose(&v1alpha1.CustomScheduler{}, index, Servers{"34x", "34x"}); err == nil {
		t.Error("an invalid version was accepted")
	}
}

// The generation of an object does not change when the index that it names does.
func TestAChangedEntryOfTheIndexIsDeployed(t *testing.T) {
	targetOf := func(change func(*v1alpha1.SchedulerRelease)) *target {
		release := &v1alpha1.SchedulerRelease{Minor: "1.29", Release: "v1.29.1", Image: "s:v1"}
		change(release)
		made, err := newTarget(release, "v1.29.3")
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	status := targetOf(func(*v1alpha1.SchedulerRelease) {}).status()
	for name, c := range map[string]struct {
		change   func(*v1alpha1.SchedulerRelease)
		deployed bool
	}{
		"nothing":       {func(*v1alpha1.SchedulerRelease) {}, true},
		"image":         {func(r *v1alpha1.SchedulerRelease) { r.Image = "s:v2" }, false},
		"configuration": {func(r *v1alpha1.SchedulerRelease) { r.Configuration = "kind: K" }, false},
		"args":          {func(r *v1alpha1.SchedulerRelease) { r.Args = []string{"--v=4"} }, false},
		"rules": {func(r *v1alpha1.SchedulerRelease) {
			r.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}}
		}, false},
	} {
		if got := targetOf(c.change).isDeployed(status); got != c.deployed {
			t.Errorf("%s is changed: deployed is %t", name, got)
		}
	}
	if targetOf(func(*v1alpha1.SchedulerRelease) {}).isDeployed(nil) {
		t.Error("an object without a status is deployed")
	}
	bound := targetOf(func(*v1alpha1.SchedulerRelease) {})
	if bound.bind(session.Bounds{Key: "key"}); bound.isDeployed(status) {
		t.Error("what was deployed without a required signature is deployed with one")
	}
}

// requested returns the request for an object.
func requested(t *testing.T, wanted *target, object *v1alpha1.CustomScheduler) *v1alpha1.CustomScheduler {
	t.Helper()
	made, err := wanted.request(object)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestRequestHasTheRulesOfBoth(t *testing.T) {
	rule := func(verb string) rbacv1.PolicyRule { return rbacv1.PolicyRule{Verbs: []string{verb}} }
	object := &v1alpha1.CustomScheduler{}
	object.Spec.RBAC.Rules = []rbacv1.PolicyRule{rule("get")}
	wanted := &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Release: "v1.29.1",
		Rules: []rbacv1.PolicyRule{rule("list")}}}
	want := []rbacv1.PolicyRule{rule("get"), rule("list")}
	if diff := cmp.Diff(want, []rbacv1.PolicyRule(requested(t, wanted, object).Spec.RBAC.Rules)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(object.Spec.RBAC.Rules) != 1 {
		t.Errorf("the object was changed: %v", object.Spec.RBAC.Rules)
	}
}

func TestRequestHasTheReleaseAndTheOwner(t *testing.T) {
	object := &v1alpha1.CustomScheduler{}
	object.Name, object.Namespace = "a", "b"
	object.Spec.Releases, object.Spec.DeletionPolicy = &v1alpha1.Releases{}, v1alpha1.DeletionOrphan
	wanted := &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Release: "v1.29.1", Image: "s:v1.29.1",
		Configuration: "kind: K", Args: []string{"--v=2"}}}
	made := requested(t, wanted, object)
	s := made.Spec
	if s.Image.Reference != "s:v1.29.1" || s.Source.Branch != "v1.29.1" || s.Configuration.Inline != "kind: K" ||
		len(s.Args) != 1 || s.Releases != nil || s.DeletionPolicy != "" {
		t.Errorf("got %+v", s)
	}
	owner := made.Annotations[v1alpha1.AnnotationOwner]
	if owner != "CustomScheduler/b/a" || owner != deploy.OwnerName(object) {
		t.Errorf("owner is %q", owner)
	}
	object.Spec.Configuration.Preset, object.Spec.Args = "binpack", []string{"--v=4"}
	if s := requested(t, wanted, object).Spec; s.Configuration.Inline != "" || s.Args[0] != "--v=4" {
		t.Errorf("the object does not win: %+v", s)
	}
}

// What is deployed is the release of the index with its flags, without gates that it does not have,
// and a ServiceAccount: the controller has no files of a node.
func TestSpecIsOfTheReleaseOfTheIndex(t *testing.T) {
	object := &v1alpha1.CustomScheduler{}
	object.Name, object.Namespace, object.Spec.Source.Branch = "a", "b", "v1.24.3"
	object.Spec.Image.Reference = "s:v1.24.3"
	wanted := &target{SchedulerRelease: &v1alpha1.SchedulerRelease{Release: "v1.29.1", Image: "s:v1.29.1",
		Args: []string{"--v=2", "--feature-gates=TTLAfterFinished=true"}}}
	sp, err := spec.Of(spec.Flags{Version: "v0.0.0", CacheDir: t.TempDir()}, requested(t, wanted, object), "an object")
	if err != nil {
		t.Fatal(err)
	}
	request, facts, err := sp.Scheduler()
	if err != nil {
		t.Fatal(err)
	}
	if request.Name != "a" || request.Namespace != "b" || facts.Image != "s:v1.29.1" || facts.Branch != "v1.29.1" ||
		facts.Version != "v0.0.0" || facts.Credentials != deploy.CredentialsServiceAccount ||
		strings.Join(request.Spec.Args, " ") != "--v=2" {
		t.Errorf("got %+v, %+v", request, facts)
	}
	for _, release := range []string{"1.29", "v1.2.3"} {
		wanted.Release = release
		if made, err := wanted.request(object); err == nil {
			t.Errorf("%s was accepted: %+v", release, made)
		}
	}
}

// Without spec.releases the object is an index of its own image.
func TestReleasesOfAnObject(t *testing.T) {
	own := func(branch string) v1alpha1.CustomSchedulerSpec {
		s := v1alpha1.CustomSchedulerSpec{}
		s.Source.Branch, s.Image.Reference = branch, "s:v1"
		return s
	}
	listed := own("v1.24.3")
	listed.Releases = &v1alpha1.Releases{Items: []v1alpha1.SchedulerRelease{{Minor: "1.29", Image: "s:v2"}}}
	for name, c := range map[string]struct {
		spec v1alpha1.CustomSchedulerSpec
		want []v1alpha1.SchedulerRelease
	}{
		"image":         {own("v1.24.3"), []v1alpha1.SchedulerRelease{{Minor: "1.24", Release: "v1.24.3", Image: "s:v1"}}},
		"items":         {listed, listed.Releases.Items},
		"not a release": {own("master"), nil},
		"no image":      {v1alpha1.CustomSchedulerSpec{}, []v1alpha1.SchedulerRelease{{Minor: "1.30", Release: "v1.30.2"}}},
	} {
		got, err := (&reconciler{}).releases(t.Context(), &v1alpha1.CustomScheduler{Spec: c.spec},
			Servers{"v1.30.2-eks-1", "v1.31.0"})
		if (err == nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !cmp.Equal(c.want, got.Releases) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got.Releases))
		}
	}
}

// An object that names no image follows the API servers with the release's own.
func TestObjectWithoutAnImageFollowsTheAPIServers(t *testing.T) {
	for name, c := range map[string]struct {
		policy, deployed string
		deploy, waiting  string
	}{
		"first":          {deploy: "v1.30.2"},
		"the same":       {deployed: "v1.30.2", deploy: "v1.30.2"},
		"upgrade":        {deployed: "v1.29.1", deploy: "v1.30.2"},
		"Manual":         {policy: v1alpha1.UpgradeManual, deployed: "v1.29.1", deploy: "v1.29.1", waiting: "v1.30.2"},
		"Manual, before": {policy: v1alpha1.UpgradeManual, deploy: "v1.30.2"},
	} {
		object := &v1alpha1.CustomScheduler{}
		object.Spec.UpgradePolicy = c.policy
		if c.deployed != "" {
			object.Status.Release = &v1alpha1.DeployedRelease{Server: c.deployed, Scheduler: c.deployed}
		}
		servers := Servers{"v1.30.2", "v1.30.2"}
		index, err := (&reconciler{}).releases(t.Context(), object, servers)
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := choose(object, index, servers)
		if err != nil {
			t.Fatal(err)
		}
		release := func(t *target) string {
			if t == nil {
				return ""
			}
			return t.Release
		}
		if release(chosen.deploy) != c.deploy || release(chosen.waiting) != c.waiting {
			t.Errorf("%s: got deploy %q, waiting %q", name, release(chosen.deploy), release(chosen.waiting))
		}
		if made := requested(t, chosen.deploy, object); !made.Spec.UsesOwnImage() || made.Spec.Source.Branch != c.deploy {
			t.Errorf("%s: the request has %+v, %+v", name, made.Spec.Image, made.Spec.Source)
		}
	}
}
