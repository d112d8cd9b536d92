package kubeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// podTables serves the pods of kube-system: as tables of one row each, and one by one.
type podTables struct {
	pods []corev1.Pod
	// read are the names of the pods that were read as a whole; unpaged counts the lists without a
	// limit.
	read    []string
	unpaged int
}

func (p *podTables) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name := path.Base(r.URL.Path)
	if name != "pods" {
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
	pod := func(name, container string, mirror bool) corev1.Pod {
		p := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "first"}, {Name: container}}}}
		if mirror {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}
		return p
	}
	handler := &podTables{pods: []corev1.Pod{
		pod("kube-proxy-1", "kube-proxy", false), pod("kube-scheduler-n1", "kube-scheduler", true), pod("k8s-master-n2",
			"kube-scheduler", true),
		pod("my-kube-scheduler-5f", "kube-scheduler", false), pod("kube-scheduler-helper", "other", true), pod("etcd-n1",
			"etcd", true),
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
