package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

var testNow = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func detect(t testing.TB, s *apiServer, change ...func(*Options)) *Info {
	t.Helper()
	o := Options{Now: func() time.Time { return testNow }}
	for _, c := range change {
		c(&o)
	}
	info, err := Detect(context.Background(), s.start(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// wants reports every wanted text that no warning has, and every warning when none is wanted.
func wants(t *testing.T, info *Info, texts ...string) {
	t.Helper()
	if len(texts) == 0 && len(info.Warnings) > 0 {
		t.Errorf("unexpected warnings: %q", info.Warnings)
	}
	for _, text := range texts {
		if !slices.ContainsFunc(info.Warnings, func(w string) bool { return strings.Contains(w, text) }) {
			t.Errorf("no warning says %q: %q", text, info.Warnings)
		}
	}
}

func TestDetectOnPMKControlPlane(t *testing.T) {
	s := pmkMaster()
	root := t.TempDir()
	ca := newAuthority(t)
	writeFile(t, root, "/etc/pf9/kube.d/kubeconfigs/kube-scheduler.yaml", ca.kubeconfig(t, testNow.Add(365*24*time.Hour)))
	writeFile(t, root, "/proc/1/net/tcp", socketTable("0.0.0.0:443", "127.0.0.1:10259"))
	info := detect(t, s, func(o *Options) {
		o.NodeRoot = root
		o.SourceGo = func(context.Context, versions.Release) (string, error) { return "go1.18.3", nil }
	})
	wants(t, info)
	if got := info.Source; got != (Source{Branch: "v1.24.3", Module: "k8s.io/kubernetes@v1.24.3", Go: "1.18.3"}) {
		t.Errorf("source: %+v", got)
	}
	if diff := cmp.Diff([]Taint{{Key: "node-role.kubernetes.io/master", Value: "true", Effect: "NoSchedule"}},
		info.ControlPlane.Nodes[0].Taints); diff != "" {
		t.Errorf("taints:\n%s", diff)
	}
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[0-9]+$`).MatchString(info.Server.URL) {
		t.Errorf("URL: %s", info.Server.URL)
	}
	// These values change from run to run.
	info.Server.URL, info.Node.Root = "https://localhost:443", "/"
	out, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/pmk.json", string(out)+"\n")
}

func TestDetectMapsSuffixedVersionsToTheirRelease(t *testing.T) {
	for _, tc := range []struct{ reported, branch, distribution, layout, configuration string }{
		{"v1.29.3-eks-036c24b", "v1.29.3", "eks", LayoutManaged, versions.ConfigV1},
		{"v1.25.3-gke.100", "v1.25.3", "gke", LayoutManaged, versions.ConfigV1},
		{"v1.29.4+k3s1", "v1.29.4", "k3s", "k3s", versions.ConfigV1},
		{"v1.33.4+rke2r1", "v1.33.4", "rke2", "rke2", versions.ConfigV1},
		{"v1.23.17+k0s", "v1.23.17", "k0s", "k0s", versions.ConfigV1beta3},
		{"v1.24.3", "v1.24.3", DistributionUnknown, LayoutUnknown, versions.ConfigV1beta3},
		{"v1.37.0-rc.1", "v1.37.0-rc.1", DistributionUnknown, LayoutUnknown, versions.ConfigV1},
	} {
		info := detect(t, &apiServer{gitVersion: tc.reported})
		if info.Server.Version != tc.reported || info.Source.Branch != tc.branch ||
			info.Source.Module != "k8s.io/kubernetes@"+tc.branch ||
			info.Distribution != tc.distribution || info.Layout != tc.layout ||
			info.Configuration.APIVersion != tc.configuration {
			t.Errorf("%s: got %+v, %+v, %s, %s, %s", tc.reported, info.Server, info.Source, info.Distribution, info.Layout,
				info.Configuration.APIVersion)
		}
	}
}

func TestDetectOutsideTheSupportedReleases(t *testing.T) {
	info := detect(t, &apiServer{gitVersion: "v1.19.16"})
	wants(t, info, "is too old")
	if info.Source.Branch != "v1.19.16" || info.Configuration.APIVersion != versions.ConfigV1beta1 {
		t.Errorf("1.19: %+v %+v", info.Source, info.Configuration)
	}
	info = detect(t, &apiServer{gitVersion: "v1.99.0"})
	wants(t, info, "1.37 is the newest minor release")
	if info.Configuration.APIVersion != versions.ConfigV1 {
		t.Errorf("1.99: %+v", info.Configuration)
	}
}

func TestDetectRecognisesDistributionsByNodes(t *testing.T) {
	const plane, master = "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"
	for _, tc := range []struct {
		want, layout, key, value string
		node                     corev1.Node
		pods                     []corev1.Pod
	}{
		{want: "pmk", layout: "pmk", key: master, node: node("a", labelled(master, "")), pods: []corev1.Pod{
			staticPod("k8s-master", "a", container("kube-scheduler", "x"))}},
		{want: "kubeadm", layout: "kubeadm", key: plane, node: node("a", labelled(plane, ""), labelled(master, "")),
			pods: []corev1.Pod{staticPod("kube-scheduler", "a", container("kube-scheduler", "x"))}},
		{want: "kind", layout: "kubeadm", key: plane, node: node("a", labelled(plane, ""), provider("kind://docker/kind/a")),
			pods: []corev1.Pod{staticPod("kube-scheduler", "a", container("kube-scheduler", "x"))}},
		{want: "minikube", layout: "kubeadm", key: plane,
			node: node("a", labelled(plane, ""), labelled("minikube.k8s.io/name", "minikube"))},
		{want: "k3s", layout: "k3s", key: plane, value: "true",
			node: node("a", labelled(plane, "true"), labelled(master, "true"), provider("k3s://a"))},
		{want: "rke2", layout: "rke2", key: plane, value: "true",
			node: node("a", labelled(plane, "true"), provider("rke2://a"))},
		{want: "k0s", layout: "k0s", key: plane, value: "true",
			node: node("a", labelled(plane, "true"), labelled("node.k0sproject.io/role", "control-plane"))},
		{want: "microk8s", layout: "microk8s", key: "node.kubernetes.io/microk8s-controlplane",
			value: "microk8s-controlplane", node: node("a",
				labelled("node.kubernetes.io/microk8s-controlplane", "microk8s-controlplane"))},
		{want: "aks", layout: LayoutManaged, node: node("a", labelled("kubernetes.azure.com/cluster", "x"))},
		{want: "doks", layout: LayoutManaged, node: node("a", labelled("doks.digitalocean.com/node-id", "x"))},
		{want: DistributionUnknown, layout: LayoutUnknown, key: plane, node: node("a", labelled(plane, ""))},
	} {
		t.Run(tc.want, func(t *testing.T) {
			info := detect(t, &apiServer{gitVersion: "v1.24.3", nodes: []corev1.Node{tc.node}, pods: tc.pods})
			if info.Distribution != tc.want || info.Layout != tc.layout {
				t.Errorf("got %s, layout %s", info.Distribution, info.Layout)
			}
			if got := info.ControlPlane; got.LabelKey != tc.key || got.LabelValue != tc.value {
				t.Errorf("label: got %s=%s", got.LabelKey, got.LabelValue)
			}
			wants(t, info)
			if (tc.key == "") != (info.Hosted != nil) {
				t.Errorf("hosted: %+v", info.Hosted)
			}
		})
	}
}

func TestDetectPrefersFilesOfNode(t *testing.T) {
	for _, layout := range layouts() {
		if layout.Kubeconfig == "" {
			continue
		}
		root := t.TempDir()
		writeFile(t, root, layout.Kubeconfig, "no kubeconfig")
		info := detect(t, &apiServer{gitVersion: "v1.29.3-eks-036c24b"}, func(o *Options) { o.NodeRoot = root })
		if info.Distribution != layout.Name || info.Layout != layout.Name ||
			info.Credentials.Kubeconfig != layout.Kubeconfig || !info.Node.ControlPlane {
			t.Errorf("%s: got %s, layout %s, %+v", layout.Name, info.Distribution, info.Layout, info.Credentials)
		}
		if info.Scheduler.Runs != layout.Runs {
			t.Errorf("%s: runs as %s, want %s", layout.Name, info.Scheduler.Runs, layout.Runs)
		}
		wants(t, info, "credentials of this node are unusable: read kubeconfig "+layout.Kubeconfig)
	}
}

func TestDetectNamesKindByItsNodesAlsoOnTheNode(t *testing.T) {
	root := t.TempDir()
	writeFile(t, root, "/etc/kubernetes/scheduler.conf", newAuthority(t).kubeconfig(t, testNow.Add(time.Hour*24*365)))
	s := &apiServer{gitVersion: "v1.24.3",
		nodes: []corev1.Node{node("a", labelled("node-role.kubernetes.io/control-plane", ""),
			provider("kind://docker/kind/a"))}}
	info := detect(t, s, func(o *Options) { o.NodeRoot = root })
	if info.Distribution != "kind" || info.Layout != "kubeadm" {
		t.Errorf("got %s, layout %s", info.Distribution, info.Layout)
	}
}

func TestDetectWithoutPermissions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		forbid func(string) bool
		want   []string
		check  func(*Info) bool
	}{
		{"nothing but the version", func(p string) bool { return p != "/version" },
			[]string{"user nobody cannot list nodes at cluster scope", "pods in kube-system", "lease"},
			func(i *Info) bool {
				return i.Source.Branch == "v1.24.3" && i.ControlPlane.Count == 0 && i.Scheduler.Port == FirstPort
			}},
		{"no nodes", func(p string) bool { return strings.HasSuffix(p, "/nodes") },
			[]string{"list nodes: no permission"},
			func(i *Info) bool { return i.Scheduler.Lease.Holder != "" && i.ControlPlane.LabelKey == "" }},
		{"pods of kube-system only", func(p string) bool { return p == "/api/v1/pods" },
			[]string{"pods outside of kube-system"},
			func(i *Info) bool { return len(i.Scheduler.Pods) == 1 && i.Distribution == "pmk" }},
		{"no pods", func(p string) bool { return strings.HasSuffix(p, "/pods") },
			[]string{"the default scheduler's pod and the ports of pods are unknown"},
			func(i *Info) bool { return len(i.Scheduler.Pods) == 0 && i.ControlPlane.Count == 1 }},
		{"no lease", func(p string) bool { return strings.Contains(p, "leases") },
			[]string{"the leader of the default schedulers is unknown"},
			func(i *Info) bool { return i.Scheduler.Lease.Holder == "" && len(i.Scheduler.Pods) == 1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := pmkMaster()
			s.forbid = tc.forbid
			info := detect(t, s)
			wants(t, info, tc.want...)
			if !tc.check(info) {
				t.Errorf("got %+v", info)
			}
		})
	}
}

func TestDetectFailsWithoutAServer(t *testing.T) {
	server := pmkMaster().start(t)
	o := Options{}
	var unreachable *kubeapi.UnreachableError
	if _, err := Detect(context.Background(), &rest.Config{Host: "http://127.0.0.1:1"}, o); !errors.As(err,
		&unreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("no server: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Detect(ctx, server, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Detect(context.Background(), (&apiServer{gitVersion: "v0.0.0-master+$Format:%H$"}).start(t),
		o); err == nil || !strings.Contains(err.Error(), "v0.0.0") {
		t.Errorf("version that is none: %v", err)
	}
	s := &apiServer{gitVersion: "v1.24.3", forbid: func(string) bool { return true }}
	var forbidden *kubeapi.ForbiddenError
	if _, err := Detect(context.Background(), s.start(t), o); !errors.As(err, &forbidden) {
		t.Errorf("version forbidden: %v", err)
	}
}

func TestDetectWarnsAboutVersionSkew(t *testing.T) {
	plane := labelled("node-role.kubernetes.io/control-plane", "")
	s := &apiServer{gitVersion: "v1.28.5", expire: true, nodes: []corev1.Node{node("a", plane, kubelet("v1.28.5"))}}
	for i := range 700 {
		version := "v1.28.9"
		switch {
		case i < 4:
			version = "v1.27.3"
		case i < 5:
			version = "v1.24.17"
		case i < 6:
			version = "v1.29.0"
		case i < 7:
			version = "fake"
		}
		s.nodes = append(s.nodes, node(fmt.Sprintf("w%03d", i), kubelet(version)))
	}
	info := detect(t, s)
	wants(t, info,
		"4 of 701 nodes run kubelet v1.27.3 (w000, w001, w002, …), the API server is v1.28.5: an upgrade is in progress",
		"1 of 701 nodes run kubelet v1.24.17 (w004), the API server is v1.28.5: Kubernetes supports kubelets at most 3 "+
			"minors older",
		"1 of 701 nodes run kubelet v1.29.0 (w005), the API server is v1.28.5: Kubernetes does not support kubelets newer")
	if len(info.Warnings) != 3 {
		t.Errorf("warnings: %q", info.Warnings)
	}
	var order []string
	for _, k := range info.Nodes.Kubelets {
		if k.Version != "fake" {
			order = append(order, k.Version)
		}
	}
	if diff := cmp.Diff([]string{"v1.29.0", "v1.28.9", "v1.28.5", "v1.27.3", "v1.24.17"}, order); diff != "" {
		t.Errorf("kubelets, newest first:\n%s", diff)
	}
}

func TestDetectSeveralControlPlaneNodes(t *testing.T) {
	plane := labelled("node-role.kubernetes.io/control-plane", "")
	s := &apiServer{gitVersion: "v1.24.3", nodes: []corev1.Node{
		node("c", plane), node("a", plane, labelled("node-role.kubernetes.io/master", "")),
		node("b", labelled("node-role.kubernetes.io/master", ""), func(n *corev1.Node) {
			n.Status.NodeInfo.Architecture = "arm64"
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		}),
	}}
	for _, n := range s.nodes {
		image := "registry.example.com:5000/kube-scheduler:v1.24.3"
		if n.Name == "c" {
			image = "registry.example.com:5000/kube-scheduler:v1.23.17@sha256:0123"
		}
		s.pods = append(s.pods, staticPod("kube-scheduler", n.Name,
			container("kube-scheduler", image, "kube-scheduler", "--bind-address=127.0.0.1")))
	}
	s.pods[1].Status.ContainerStatuses[0].Ready = false
	info := detect(t, s)
	wants(t, info, "control-plane node b does not have the label node-role.kubernetes.io/control-plane=",
		"control-plane node b is not ready", "linux/amd64,linux/arm64", "kube-system/kube-scheduler-a is not ready",
		"on node c is v1.23.17")
	if info.ControlPlane.Count != 3 || info.ControlPlane.LabelKey != "node-role.kubernetes.io/control-plane" {
		t.Errorf("control plane: %+v", info.ControlPlane)
	}
	var names []string
	for _, pod := range info.Scheduler.Pods {
		names = append(names, pod.Name)
	}
	if diff := cmp.Diff([]string{"kube-scheduler-a", "kube-scheduler-b", "kube-scheduler-c"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestDetectBoundsControlPlaneNodes(t *testing.T) {
	s := &apiServer{gitVersion: "v1.24.3"}
	for i := range 120 {
		s.nodes = append(s.nodes, node(fmt.Sprint("n", i), labelled("node-role.kubernetes.io/control-plane", "")))
	}
	info := detect(t, s)
	if info.ControlPlane.Count != defaultMaxControlPlaneNodes {
		t.Errorf("looked at %d control-plane nodes", info.ControlPlane.Count)
	}
	wants(t, info, "more than 50 nodes have the label")
}

func TestDetectWarnsOfALeaseNobodyRenews(t *testing.T) {
	s := pmkMaster()
	old := metav1.NewMicroTime(testNow.Add(-10 * time.Minute))
	s.lease.Spec.RenewTime = &old
	wants(t, detect(t, s), "last renewed 10m0s ago, by 10.0.0.1_6b1f")
}

func TestDetectGoesOnWithoutTheReleasesOwnGoVersion(t *testing.T) {
	info := detect(t, pmkMaster(), func(o *Options) {
		o.SourceGo = func(context.Context, versions.Release) (string, error) { return "", errors.New("no network") }
	})
	wants(t, info, "no network")
	if info.Source.Go != "1.18.10" {
		t.Errorf("Go: %q", info.Source.Go)
	}
}

func TestDetectNeverListsWholeNodesOfALargeCluster(t *testing.T) {
	s := largeCluster(5000)
	info := detect(t, s)
	if info.Nodes.Count != 5000 || info.ControlPlane.Count != 3 {
		t.Fatalf("got %d nodes, %d of the control plane", info.Nodes.Count, info.ControlPlane.Count)
	}
	if s.wholeNodes > 10 {
		t.Errorf("%d whole nodes were listed", s.wholeNodes)
	}
	if s.largestPage > 500 {
		t.Errorf("a list was asked for with limit %d", s.largestPage)
	}
}
