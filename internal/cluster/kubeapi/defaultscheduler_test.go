package kubeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// podTables serves the pods of kube-system: as tables of one row each, and one by one; and the
// nodes with the label of kubeadm with their pods.
type podTables struct {
	pods  []corev1.Pod
	nodes []string
	// elsewhere are the pods on these nodes that are not in kube-system.
	elsewhere []corev1.Pod
	// read are the names of the pods that were read as a whole; unpaged counts the lists without a
	// limit.
	read    []string
	unpaged int
}

func (p *podTables) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name := path.Base(r.URL.Path)
	switch {
	case name == "nodes":
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
		for _, node := range p.nodes {
			if r.URL.Query().Get("labelSelector") == ControlPlaneLabels()[0] {
				list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
			}
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	case r.URL.Path == "/api/v1/pods":
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, pod := range p.elsewhere {
			if r.URL.Query().Get("fieldSelector") == "spec.nodeName="+pod.Spec.NodeName {
				list.Items = append(list.Items, pod)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	case name != "pods":
		p.read = append(p.read, name)
		at := slices.IndexFunc(p.pods, func(pod corev1.Pod) bool { return pod.Name == name })
		_ = json.NewEncoder(w).Encode(p.pods[at])
		return
	}
	if r.URL.Query().Get("limit") == "" {
		p.unpaged++
	}
	at := len(r.URL.Query().Get("continue")) // a letter for each page before
	table := metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Status"},
			{Name: "Name"}}, Rows: []metav1.TableRow{{Cells: []any{"Running", p.pods[at].Name}}},
	}
	if at+1 < len(p.pods) {
		table.Continue = "xxxxxxxxxx"[:at+1]
	}
	_ = json.NewEncoder(w).Encode(table)
}

func TestDefaultSchedulersAreFoundWithoutReadingTheOtherPods(t *testing.T) {
	handler := &podTables{pods: []corev1.Pod{
		podOn("n1", "kube-proxy-1", false, "kube-proxy"), podOn("n1", "kube-scheduler-n1", true, "kube-scheduler"),
		podOn("n2", "k8s-master-n2", true, "kube-scheduler"), podOn("n1", "my-kube-scheduler-5f", false, "kube-scheduler"),
		podOn("n1", "kube-scheduler-helper", true, "other"), podOn("n1", "etcd-n1", true, "etcd"),
	}}
	server := httptest.NewServer(handler)
	defer server.Close()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := DefaultSchedulerPods(t.Context(), kube.CoreV1())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	if want := []string{"kube-scheduler-n1", "k8s-master-n2"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if want := []string{"kube-scheduler-n1", "k8s-master-n2", "my-kube-scheduler-5f",
		"kube-scheduler-helper"}; !slices.Equal(handler.read, want) || handler.unpaged > 0 {
		t.Errorf("read %v, want %v; %d lists without a limit", handler.read, want, handler.unpaged)
	}
}

// podOn returns a pod with two containers, of which the second has a name and a command.
func podOn(node, name string, mirror bool, container string, command ...string) corev1.Pod {
	p := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"},
		Spec: corev1.PodSpec{NodeName: node,
			Containers: []corev1.Container{{Name: "first"}, {Name: container, Command: command}}}}
	if mirror {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	return p
}

func TestDefaultSchedulersOfAnotherNamespaceAreFoundOnTheControlPlaneNodes(t *testing.T) {
	openshift := podOn("m1", "openshift-kube-scheduler-m1", true, "kube-scheduler", "hyperkube", "kube-scheduler")
	openshift.Namespace = "openshift-kube-scheduler"
	guard := podOn("m1", "openshift-kube-scheduler-guard-m1", false, "guard")
	guard.Namespace = openshift.Namespace
	server := httptest.NewServer(&podTables{pods: []corev1.Pod{podOn("m1", "etcd-m1", true, "etcd")},
		nodes: []string{"m1"}, elsewhere: []corev1.Pod{guard, openshift}})
	defer server.Close()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := DefaultSchedulerPods(t.Context(), kube.CoreV1())
	if err != nil || len(pods) != 1 || pods[0].Name != openshift.Name {
		t.Errorf("got %v, %v", pods, err)
	}
}

func TestDefaultSchedulerIsRecognizedByItsContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"kubeadm":          {podOn("n", "kube-scheduler-n", true, "kube-scheduler", "kube-scheduler"), true},
		"PMK":              {podOn("n", "k8s-master-n", true, "kube-scheduler", "kube-scheduler"), true},
		"a log runner":     {podOn("n", "kube-scheduler-n", true, "main", "/go-runner", "--also-stdout", "/bin/kube-scheduler"), true},
		"hyperkube":        {podOn("n", "openshift-kube-scheduler-n", true, "scheduler", "hyperkube", "kube-scheduler"), true},
		"a shell":          {podOn("n", "openshift-kube-scheduler-n", true, "kube-scheduler", "/bin/bash", "-ec", "exec x"), true},
		"its program only": {podOn("n", "kube-scheduler-n", true, "main", "/usr/local/bin/kube-scheduler", "--v=2"), true},
		"not a static pod": {podOn("n", "kube-scheduler-n", false, "kube-scheduler", "kube-scheduler"), false},
		"another program":  {podOn("n", "kube-scheduler-n", true, "proxy", "haproxy"), false},
		"its name as a value": {podOn("n", "kube-scheduler-n", true, "elector", "elector", "--lease", "kube-scheduler"),
			false},
		"another lease": {podOn("n", "second-kube-scheduler-n", true, "kube-scheduler", "kube-scheduler",
			"--leader-elect-resource-name=second"), false},
	} {
		if got := DefaultScheduler(&tc.pod) != nil; got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestLeaseOfDefaultSchedulersIsWhereTheyPutIt(t *testing.T) {
	pod := func(namespace string, flags ...string) corev1.Pod {
		p := podOn("n", "kube-scheduler-n", true, "kube-scheduler", append([]string{"kube-scheduler"}, flags...)...)
		p.Namespace = namespace
		return p
	}
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		at   []string // the namespaces that have a lease
		want string
	}{
		"kube-system":          {[]corev1.Pod{pod("kube-system")}, []string{"kube-system"}, "kube-system"},
		"no pod is known":      {nil, []string{"kube-system"}, "kube-system"},
		"namespace of the pod": {[]corev1.Pod{pod("openshift-kube-scheduler")}, []string{"openshift-kube-scheduler"}, "openshift-kube-scheduler"},
		"in a flag":            {[]corev1.Pod{pod("kube-system", "--leader-elect-resource-namespace=locks")}, []string{"kube-system", "locks"}, "locks"},
		"none is elected":      {[]corev1.Pod{pod("kube-system", "--leader-elect=false")}, []string{"kube-system"}, ""},
		"none":                 {[]corev1.Pod{pod("kube-system")}, nil, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			namespace := path.Base(path.Dir(path.Dir(r.URL.Path)))
			if !slices.Contains(tc.at, namespace) {
				w.WriteHeader(http.StatusNotFound)
				_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
					Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
				return
			}
			_ = json.NewEncoder(w).Encode(coordinationv1.Lease{
				TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
				ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler", Namespace: namespace}})
		}))
		kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
			ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := DefaultLease(t.Context(), kube.CoordinationV1(), tc.pods)
		server.Close()
		if err != nil || (lease == nil) != (tc.want == "") || lease != nil && lease.Namespace != tc.want {
			t.Errorf("%s: got %v, %v", name, lease, err)
		}
	}
}

func TestReadTableRefusesATableWithoutTheColumn(t *testing.T) {
	server := httptest.NewServer(&podTables{pods: []corev1.Pod{{}}})
	defer server.Close()
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	err = ReadTable(t.Context(), kube.CoreV1().RESTClient(), "n", "pods", []string{"Name", "Version"},
		func([]string) { t.Error("a row was visited") })
	if err == nil || err.Error() != "read table: no column Version" {
		t.Errorf("got %v", err)
	}
}
