//go:build linux

package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/metrics"
)

// OpenMetrics lets everyone read the metrics of schedulers: through its proxy the API server sends
// no credentials of the client.
func OpenMetrics(ctx context.Context, t testing.TB, kube kubernetes.Interface) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "read-metrics"},
		Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:anonymous"}},
	}
	if _, err := kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ServeMetrics returns flags with which a scheduler serves its metrics to every process of this
// machine.
func ServeMetrics(t testing.TB, address string) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--bind-address=" + host, "--secure-port=" + port, "--authentication-skip-lookup",
		"--authorization-always-allow-paths=/metrics"}
}

// Get returns the answer of a scheduler, which signs its certificate itself. token may be empty.
func Get(ctx context.Context, url, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, text)
	}
	return string(text), err
}

// ReadMetrics returns the metrics of a scheduler that runs with the flags of [ServeMetrics].
func ReadMetrics(ctx context.Context, address string) (Metrics, error) {
	text, err := Get(ctx, "https://"+address+"/metrics", "")
	return Metrics(text), err
}

// MovedPods is the metric of a scheduler that counts the pods which each event moves between its
// queues. Flushed is the event of pods that are tried again only because they have waited for five
// minutes, up to 1.23 for one minute.
const (
	MovedPods = "scheduler_queue_incoming_pods_total"
	Flushed   = "UnschedulableTimeout"
)

// Metrics are metrics in the text format of Prometheus.
type Metrics string

// By returns the sums of the values of a metric by a label. The sum of series without the label is
// at "". If label is "", the sum of all series is at "".
func (m Metrics) By(t testing.TB, name, label string) map[string]float64 {
	t.Helper()
	return metrics.Parse(string(m)).SumBy(name, label)
}

// Increase returns the differences between after and before, without unchanged values.
func Increase(before, after map[string]float64) map[string]float64 {
	more := maps.Clone(after)
	maps.DeleteFunc(more, func(key string, value float64) bool { return value == before[key] })
	for key := range more {
		more[key] -= before[key]
	}
	return more
}
