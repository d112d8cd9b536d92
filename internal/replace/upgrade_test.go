package replace

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestReplacedDefaultSchedulerIsComparedWithTheCluster(t *testing.T) {
	info := &inspect.Info{Release: versions.Release{Major: 1, Minor: 25, Patch: 4}}
	const needs = "run `pmk-sched upgrade --default` on the node"
	for name, tt := range map[string]struct {
		node NodeStatus
		here *HereStatus
		want NodeUpgrade
	}{
		"up to date": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4"},
			here: &HereStatus{Node: "a", State: staticpod.Replaced},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4", Release: "v1.25.4"},
		},
		"no release in the tag": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "localhost/s:mine"},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "localhost/s:mine"},
		},
		"behind": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "registry.example.com:5000/s:v1.24.3-plugins-0123456789"},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "registry.example.com:5000/s:v1.24.3-plugins-0123456789",
				Release: "v1.24.3", Due: true, Needs: needs},
		},
		"kubeadm wrote the manifest again": {
			node: NodeStatus{Node: "a", Image: "registry.k8s.io/kube-scheduler:v1.25.4"},
			here: &HereStatus{Node: "a", State: staticpod.Replaced,
				Drift: []Drift{{Path: "/etc/kubernetes/manifests/kube-scheduler.yaml", What: "rewritten without the replacement"}}},
			want: NodeUpgrade{
				Node: "a", Image: "registry.k8s.io/kube-scheduler:v1.25.4", Release: "v1.25.4", Due: true, Needs: needs,
				Drift: []string{"/etc/kubernetes/manifests/kube-scheduler.yaml: rewritten without the replacement"},
			},
		},
		"interrupted": {
			node: NodeStatus{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4"},
			here: &HereStatus{Node: "a", State: staticpod.Started, Step: "swap"},
			want: NodeUpgrade{Node: "a", Replaced: true, Image: "localhost/s:v1.25.4", Release: "v1.25.4", Due: true,
				Drift: []string{"the replacement stopped at step swap"}, Needs: needs},
		},
	} {
		if diff := cmp.Diff(tt.want, describeNode(tt.node, tt.here, info)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNodeOfTheLeaderIsUpgradedLast(t *testing.T) {
	nodes := []NodeUpgrade{{Node: "b", Leads: true}, {Node: "c"}, {Node: "a"}}
	slices.SortFunc(nodes, byNode)
	if nodes[0].Node != "a" || nodes[1].Node != "c" || nodes[2].Node != "b" {
		t.Errorf("got %+v", nodes)
	}
}

func TestReportCountsWhatIsDue(t *testing.T) {
	r := &UpgradeReport{Schedulers: []lifecycle.Upgrade{{Due: true}, {}, {Due: true, Blocked: "x"}},
		Nodes: []NodeUpgrade{{Due: true}, {}}}
	if due, all := r.Due(); due != 3 || all != 5 {
		t.Errorf("%d of %d are due, want 3 of 5", due, all)
	}
}

// planned returns the upgrade of a node's replacement to a patch release, and what was asked.
func planned(t *testing.T, n *testNode, patch int) (u *DefaultUpgrade, asked []*pack.Unconfirmed, err error) {
	t.Helper()
	sp, err := spec.Read(spec.Flags{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	u = &DefaultUpgrade{Node: &Node{s: &session.Session{CacheDir: t.TempDir(), Log: zap.NewNop()}, deps: n.deps(t),
		info: n.info()}}
	u.info.Release.Patch = patch
	ask := func(_ context.Context, f *pack.Unconfirmed) error {
		asked = append(asked, f)
		return nil
	}
	err = u.plan(t.Context(), lifecycle.UpgradeOptions{Spec: sp, Confirm: ask})
	return u, asked, err
}

func TestUpgradePlansTheRecordedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTestNode(t, "kubeadm")
		if _, _, err := planned(t, n, 9); err == nil || !strings.Contains(err.Error(), "is not replaced") {
			t.Errorf("got %v", err)
		}
		n.replaced(t, asks("localhost/s:v1.24.3-mine", "binpack"))
		if u, _, err := planned(t, n, 3); err != nil || u.Due {
			t.Errorf("up to date: %+v, %v", u, err)
		}

		u, asked, err := planned(t, n, 9)
		if err != nil || !u.Due || u.NewImage != "localhost/s:v1.24.9-mine" || !u.Build || u.Configuration != "binpack" ||
			u.o.Request.Spec.Configuration.Preset != "binpack" || !u.o.FitGates || len(u.build.Load) != 1 {
			t.Fatalf("a newer patch: %+v, %v", u, err)
		}
		if len(asked) != 1 || asked[0].Image != u.NewImage || !strings.Contains(asked[0].Origin, n.backup(t).Dir()) {
			t.Errorf("asked %+v", asked)
		}

		n.write(t, n.layout.Manifest, n.original) // as kubeadm does
		if u, asked, err = planned(t, n, 3); err != nil || !u.Due || u.Build || len(asked) > 0 ||
			u.o.Image != "localhost/s:v1.24.3-mine" {
			t.Errorf("rewritten: %+v, %v", u, err)
		}
		n.isRestored(t)

		n.replaced(t, asks("", "spread"))
		if u, _, err = planned(t, n, 9); err != nil || !u.Due || u.Build || u.o.Image != "" || u.Configuration != "spread" {
			t.Errorf("the image of the manifest: %+v, %v", u, err)
		}
	})
}
