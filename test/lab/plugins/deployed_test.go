//go:build linux

package plugins

import (
	"bytes"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addressOf is the address of a network interface of this machine.
func addressOf(link string) (string, error) {
	i, err := net.InterfaceByName(link)
	if err != nil {
		return "", fmt.Errorf("find the machine's end of the lab's network: %w", err)
	}
	addresses, err := i.Addrs()
	if err != nil {
		return "", fmt.Errorf("read the addresses of %s: %w", link, err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("link %s has no address", link)
}

// pod is the one pod of the deployed scheduler.
func (m *master) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	list, err := m.kube.CoreV1().Pods("kube-system").List(patience(t), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + scheduler, FieldSelector: "status.phase=Running",
	})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("the scheduler has %d pods: %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// metrics reads what the scheduler says of itself, from its own port, which may be in the pods' network.
func (m *master) metrics(t *testing.T) string {
	t.Helper()
	pod, port := m.pod(t), ""
	for _, c := range pod.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if value, ok := strings.CutPrefix(arg, "--secure-port="); ok {
				port = value
			}
		}
	}
	// The API server asks without a name: see opensMetrics.
	text, err := m.kube.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").
		Name("https:" + pod.Name + ":" + port).SubResource("proxy").Suffix("metrics").DoRaw(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// opensMetrics lets everybody read the metrics of schedulers, for the test.
func (m *master) opensMetrics(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "read-metrics"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:anonymous"}},
	}
	if _, err := m.kube.RbacV1().ClusterRoles().Create(patience(t), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.kube.RbacV1().ClusterRoleBindings().Create(patience(t), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// metric is the sum of a metric's values, over those lines that hold a text such as result="ok"; -1 if there is none.
func (m *master) metric(t *testing.T, name, with string) float64 {
	t.Helper()
	sum, found := 0.0, false
	for line := range strings.Lines(m.metrics(t)) {
		series, text, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok || !strings.HasPrefix(series, name+"{") || !strings.Contains(series, with) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("read %s: %v", line, err)
		}
		sum, found = sum+value, true
	}
	if !found {
		return -1
	}
	return sum
}

// trouble are the lines that a scheduler writes about what it may not do, or what stood in its way.
var trouble = regexp.MustCompile(`(?i)forbidden|conflict|the object has been modified|panic`)

// isContent fails the test if the log of the scheduler tells of any trouble, or if it was restarted.
func (m *master) isContent(t *testing.T) {
	t.Helper()
	pod := m.pod(t)
	log, err := m.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte("Serving securely")) {
		t.Errorf("the log is not one of a scheduler:\n%s", log)
	}
	for line := range strings.Lines(string(log)) {
		if trouble.MatchString(line) {
			t.Errorf("the scheduler has trouble: %s", line)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.RestartCount != 0 {
			t.Errorf("the scheduler was restarted %d times", c.RestartCount)
		}
	}
}

// uninstall takes the scheduler away and fails the test if anything of it stays.
func (m *master) uninstall(t *testing.T) {
	t.Helper()
	m.pmkSched(t, "uninstall", "--name", scheduler, "--yes").ok(t)
	left := m.kubectl(t, "get", "deployments,pods,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,leases",
		"-A", "-l", "app.kubernetes.io/instance="+scheduler, "-o", "name")
	if left != "" {
		t.Errorf("left behind by uninstall: %s", left)
	}
}
