package extender

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// probePod returns a pod as `pmk-sched verify` creates it.
func probePod(name string) *corev1.Pod {
	pod := newPod(name, "", 1)
	pod.Labels = map[string]string{probeLabel: probeComponent}
	return pod
}

// answeredPage returns the page about a pod.
func answeredPage(t *testing.T, server *httptest.Server, uid types.UID) string {
	t.Helper()
	response, err := server.Client().Get(server.URL + "/answered?pod=" + string(uid))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestTheAnsweredVerbsOfAProbeAreReported(t *testing.T) {
	failing := filterBy("Failing", func(pod *corev1.Pod, _ scheduler.NodeInfo) *scheduler.Status {
		if strings.HasPrefix(pod.Name, "failing") {
			return scheduler.Error(fmt.Errorf("no data"))
		}
		return nil
	})
	server, _ := serveWith(t, nil, Options{}, failing, numbered())
	workload := newPod("workload", "", 1)
	arguments := func(pod *corev1.Pod) extenderv1.ExtenderArgs {
		return extenderv1.ExtenderArgs{Pod: pod, NodeNames: names("a")}
	}
	for _, pod := range []*corev1.Pod{probePod("called"), probePod("failing"), workload} {
		ask[extenderv1.ExtenderFilterResult](t, server, VerbFilter, arguments(pod))
	}
	post(t, server, VerbPrioritize, arguments(probePod("called")))
	post(t, server, VerbFilter, `{"Pod": {"metadata": {"uid": "uid-invalid", "labels": {"`+probeLabel+`": "`+
		probeComponent+`"}}}}`)
	for uid, verbs := range map[types.UID]string{
		"uid-called":   `["filter","prioritize"]`,
		"uid-failing":  `["filter"]`, // reported to the scheduler
		"uid-invalid":  `[]`,
		"uid-workload": `[]`,
		"uid-invented": `[]`,
	} {
		if got, want := answeredPage(t, server, uid), fmt.Sprintf(`{"pod":%q,"verbs":%s}`, uid, verbs); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Whoever reaches the extender can invent pods. They take bounded memory and remove no pod of the
// cluster from the record.
func TestInventedProbesDoNotReplaceAProbeOfTheCluster(t *testing.T) {
	c := filledCache(t)
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	c.pods = corelisters.NewPodLister(pods)
	server, e := serveWith(t, c, Options{}, numbered())
	prioritize := func(pod *corev1.Pod) {
		post(t, server, VerbPrioritize, extenderv1.ExtenderArgs{Pod: pod, NodeNames: names("a")})
	}
	early := probePod("early") // the informer has it after the request
	prioritize(early)
	if err := pods.Add(early); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxProbes {
		prioritize(probePod(fmt.Sprint("invented-", i)))
	}
	long := probePod("long")
	long.UID = types.UID(strings.Repeat("x", 1<<10))
	prioritize(long)
	if got := len(e.probes.list); got != maxProbes {
		t.Errorf("%d pods are recorded, want %d", got, maxProbes)
	}
	for uid, recorded := range map[types.UID]bool{early.UID: true, "uid-invented-0": false, long.UID: false} {
		if got := len(e.probes.verbs(uid)) > 0; got != recorded {
			t.Errorf("pod %.20s: recorded %v, want %v", uid, got, recorded)
		}
	}
}
