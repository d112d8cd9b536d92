package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func TestSourceOfEventsOfBothAPIs(t *testing.T) {
	cases := map[string]struct {
		event                corev1.Event
		controller, instance string
	}{
		"events.k8s.io": {corev1.Event{ReportingController: "my-scheduler", ReportingInstance: "my-scheduler-master"},
			"my-scheduler", "my-scheduler-master"},
		"core": {corev1.Event{Source: corev1.EventSource{Component: "my-scheduler", Host: "master"}}, "my-scheduler",
			"master"},
		"both": {corev1.Event{ReportingController: "a", ReportingInstance: "a-1",
			Source: corev1.EventSource{Component: "b"}}, "a", "a-1"},
		"neither": {corev1.Event{}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if controller, instance := source(&tc.event); controller != tc.controller || instance != tc.instance {
				t.Errorf("got %q, %q", controller, instance)
			}
		})
	}
}

func TestLastOfReturnsTheNewestEventOfEitherAPI(t *testing.T) {
	events := []corev1.Event{
		{Reason: "FailedScheduling", Message: "old", LastTimestamp: metav1.Time{Time: start}},
		{Reason: "FailedScheduling", Message: "new", EventTime: metav1.MicroTime{Time: start.Add(time.Minute)}},
		{Reason: "FailedScheduling", Message: "series", EventTime: metav1.MicroTime{Time: start}, Series: &corev1.EventSeries{
			LastObservedTime: metav1.MicroTime{Time: start.Add(time.Hour)}}},
		{Reason: "Scheduled", Message: "other", LastTimestamp: metav1.Time{Time: start.Add(2 * time.Hour)}},
	}
	if got := lastOf(events, "FailedScheduling"); got == nil || got.Message != "series" {
		t.Errorf("last is %+v", got)
	}
	if got := lastOf(events[:2], "FailedScheduling"); got == nil || got.Message != "new" {
		t.Errorf("last is %+v", got)
	}
	if got := lastOf(events, "Preempted"); got != nil {
		t.Errorf("last is %+v", got)
	}
}

func TestWarningLines(t *testing.T) {
	log := `I0101 00:00:00.000000       1 serving.go:348] Generated self-signed cert
W0101 00:00:01.000000       1 authentication.go:317] no authentication-kubeconfig
E0101 00:00:02.000000       1 reflector.go:138] Failed to watch *v1.Node: forbidden
{"ts":1,"level":"info","msg":"fine"}
{"ts":1,"level":"error","msg":"not fine"}
{"ts":1,"msg":"Failed to do it","err":"why"}
panic: runtime error
goroutine 1 [running]:
`
	want := []string{
		"W0101 00:00:01.000000       1 authentication.go:317] no authentication-kubeconfig",
		"E0101 00:00:02.000000       1 reflector.go:138] Failed to watch *v1.Node: forbidden",
		`{"ts":1,"level":"error","msg":"not fine"}`, `{"ts":1,"msg":"Failed to do it","err":"why"}`, "panic: runtime error",
	}
	if diff := cmp.Diff(want, warningLines([]byte(log))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	many := strings.Repeat("E0101 x\n", 30) + "E0101 last"
	if got := warningLines([]byte(many)); len(got) != shownLines || got[len(got)-1] != "E0101 last" {
		t.Errorf("of many: %q", got)
	}
	if got := warningLines(nil); got != nil {
		t.Errorf("of none: %q", got)
	}
}

func TestTimeToBindNamesItsClock(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: start}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.Time{Time: start.Add(3 * time.Second)}}}
	if seconds, by := timeToBind(pod, start, start.Add(1500*time.Millisecond)); seconds != 1.5 || by != MeasuredLocally {
		t.Errorf("watched: %v by %s", seconds, by)
	}
	if seconds, by := timeToBind(pod, start, time.Time{}); seconds != 3 || by != MeasuredByAPI {
		t.Errorf("polled: %v by %s", seconds, by)
	}
}

func TestAccount(t *testing.T) {
	user, groups := account(rbacv1.Subject{Kind: "ServiceAccount", Name: "x", Namespace: "a"})
	if user != "system:serviceaccount:a:x" ||
		!cmp.Equal(groups, []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}) {
		t.Errorf("service account: %s %v", user, groups)
	}
	if user, _ := account(rbacv1.Subject{Kind: "User", Name: "system:kube-scheduler"}); user != "system:kube-scheduler" {
		t.Errorf("user: %s", user)
	}
}

func TestAnsweredCountsResultsAndErrors(t *testing.T) {
	const metrics = `# HELP pmk_extender_requests_total x
# TYPE pmk_extender_requests_total counter
pmk_extender_requests_total{result="ok",verb="filter"} 3
pmk_extender_requests_total{result="error",verb="filter"} 1
pmk_extender_requests_total{result="invalid",verb="filter"} 7
pmk_extender_requests_total{result="ok",verb="prioritize"} 1e+02
pmk_extender_nodes_total{direction="in",verb="filter"} 9
`
	if got := answered(metrics); got != 104 {
		t.Errorf("got %d", got)
	}
}
