//go:build linux

package pluginlab

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
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

// metrics reads what the scheduler says of itself, from its own port.
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
	config := rest.CopyConfig(m.config)
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, "" // it signs its certificate itself
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(patience(t), http.MethodGet, "https://"+net.JoinHostPort(pod.Status.HostIP, port)+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v: %s", response.Status, err, text)
	}
	return string(text)
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
