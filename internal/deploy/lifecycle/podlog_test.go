package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// cluster answers the requests for the pods, the logs and the lease of scheduler s in namespace n.
type cluster struct {
	mu     sync.Mutex
	pods   []corev1.Pod
	leader string
	// logs are the texts that requests for the log of a pod get, one after the other; the last one
	// again and again.
	logs map[string][]string
	// refuse is the status of the answer to requests for the log of a pod.
	refuse map[string]int
}

func pod(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: types.UID(name)},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "kube-scheduler"}}},
	}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := "/api/v1/namespaces/n/pods"
	name, isLog := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, pods+"/"), "/log")
	at := slices.IndexFunc(c.pods, func(p corev1.Pod) bool { return p.Name == name })
	switch {
	case r.URL.Path == pods && r.URL.Query().Get("labelSelector") == "app.kubernetes.io/instance=s":
		write(w, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: c.pods})
	case r.URL.Path == "/apis/coordination.k8s.io/v1/namespaces/n/leases/s" && c.leader != "":
		holder := c.leader + "_1234"
		write(w, coordinationv1.Lease{TypeMeta: metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}})
	case isLog && c.refuse[name] != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(c.refuse[name])
		write(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(c.refuse[name]), Reason: reasonOf(c.refuse[name]), Message: "no log of " + name})
	case isLog && len(c.logs[name]) > 0 && r.URL.Query().Get("container") == "kube-scheduler":
		_, _ = io.WriteString(w, c.logs[name][0])
		if len(c.logs[name]) > 1 {
			c.logs[name] = c.logs[name][1:]
		}
	case at >= 0 && !isLog:
		write(w, c.pods[at])
	default:
		http.NotFound(w, r)
	}
}

func reasonOf(status int) metav1.StatusReason {
	if status == http.StatusForbidden {
		return metav1.StatusReasonForbidden
	}
	return metav1.StatusReasonBadRequest
}

func write(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

func start(t *testing.T, c *cluster) *rest.Config {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestPrintNamesThePodOfEachLineAndTheLeader(t *testing.T) {
	c := &cluster{pods: []corev1.Pod{pod("s-b"), pod("s-a")}, leader: "s-b", logs: map[string][]string{
		"s-a": {"2026-01-01T00:00:01.5Z one\n2026-01-01T00:00:02Z two words\n"},
		"s-b": {"2026-01-01T00:00:00Z three\nno time\n"},
	}}
	var out bytes.Buffer
	if err := printLogs(t.Context(), start(t, c), logOptions{Name: "s", Namespace: "n", Container: "kube-scheduler"},
		&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[s-a] one\n[s-a] two words\n[s-b leader] three\n[s-b leader] no time\n",
		out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestPrintWithoutSomeOfTheLogsWarns(t *testing.T) {
	c := &cluster{pods: []corev1.Pod{pod("s-a"), pod("s-b")},
		logs:   map[string][]string{"s-b": {"2026-01-01T00:00:00Z one\n"}},
		refuse: map[string]int{"s-a": http.StatusBadRequest}}
	var out bytes.Buffer
	var warned []string
	o := logOptions{Name: "s", Namespace: "n", Container: "kube-scheduler",
		Warn: func(text string) { warned = append(warned, text) }}
	if err := printLogs(t.Context(), start(t, c), o, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "[s-b] one\n" || len(warned) != 1 ||
		!strings.Contains(warned[0], "read the log of Pod/n/s-a: no log of s-a") {
		t.Errorf("printed %q, warned %q", out.String(), warned)
	}
}

func TestPrintFails(t *testing.T) {
	for name, tt := range map[string]struct {
		c       *cluster
		w       io.Writer
		invalid bool
		want    string
	}{
		"no pods": {&cluster{}, io.Discard, true, "scheduler s has no pods in namespace n"},
		"no log": {&cluster{pods: []corev1.Pod{pod("s-a")}, refuse: map[string]int{"s-a": http.StatusForbidden}},
			io.Discard, false, "no permission"},
		"no place for it": {&cluster{pods: []corev1.Pod{pod("s-a")},
			logs: map[string][]string{"s-a": {"2026-01-01T00:00:00Z one\n"}}}, broken{}, false, "print the log: broken"},
	} {
		for _, follow := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				err := printLogs(t.Context(), start(t, tt.c),
					logOptions{Name: "s", Namespace: "n", Container: "kube-scheduler", Follow: follow}, tt.w)
				if err == nil || !strings.Contains(err.Error(), tt.want) || problem.IsInvalid(err) != tt.invalid {
					t.Errorf("follow %t: error %v", follow, err)
				}
			})
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }

// lines collects output until it contains want, and then calls done.
type lines struct {
	mu   sync.Mutex
	text string
	want string
	done func()
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	if strings.Contains(l.text, l.want) {
		l.done()
	}
	return len(p), nil
}

// A restarted container continues the log of its pod: the line of the second in which the log is
// read again is not repeated. New pods are followed too, and the mark moves with the lease.
func TestFollowContinuesAfterRestartsAndWithNewPods(t *testing.T) {
	c := &cluster{pods: []corev1.Pod{pod("s-a")}, leader: "s-a", logs: map[string][]string{
		"s-a": {"2026-01-01T00:00:01.2Z one\n", "2026-01-01T00:00:01.2Z one\n2026-01-01T00:00:01.3Z two\n"},
		"s-b": {"2026-01-01T00:00:05Z three\n"},
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	first := &lines{want: "two", done: func() {
		c.pods, c.leader = []corev1.Pod{pod("s-a"), pod("s-b")}, "s-b"
	}}
	out := &lines{want: "three", done: cancel}
	p, err := newPrinter(start(t, c), logOptions{Name: "s", Namespace: "n", Container: "kube-scheduler", Follow: true},
		writers{first, out, c})
	if err != nil {
		t.Fatal(err)
	}
	p.interval = time.Millisecond
	if err := p.run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[s-a leader] one\n[s-a leader] two\n[s-b leader] three\n", out.text); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// writers writes to both, with the cluster locked.
type writers struct {
	first, out *lines
	c          *cluster
}

func (w writers) Write(p []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return io.MultiWriter(w.out, w.first).Write(p)
}
