package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

// NoNode is the node root that disables reading files on the node.
const NoNode = "none"

// FindNodeRoot returns the directory below which a control-plane node's files are: the given one,
// else / if this machine has a scheduler's kubeconfig, else "".
func FindNodeRoot(given string) (string, error) {
	switch given {
	case NoNode:
		return "", nil
	case "":
		if _, ok := SchedulerKubeconfig("/"); ok {
			return "/", nil
		}
		return "", nil
	}
	if info, err := os.Stat(given); err != nil || !info.IsDir() {
		return "", problem.Invalidf("", "--node-root %s: not a directory", given)
	}
	return given, nil
}

// SchedulerKubeconfig returns the path, as the node sees it, of the default scheduler's kubeconfig
// below root. One that this process may not read counts.
func SchedulerKubeconfig(root string) (string, bool) {
	for _, layout := range layouts() {
		if layout.Kubeconfig == "" {
			continue
		}
		_, err := os.Stat(filepath.Join(root, layout.Kubeconfig))
		if err == nil || errors.Is(err, fs.ErrPermission) {
			return layout.Kubeconfig, true
		}
	}
	return "", false
}

// IsSchedulerKubeconfig reports whether a path is the default scheduler's kubeconfig in any layout.
func IsSchedulerKubeconfig(path string) bool {
	return path != "" && slices.ContainsFunc(layouts(), func(l Layout) bool { return l.Kubeconfig == path })
}

// ServerRelease asks the API server for its release.
func ServerRelease(cfg *rest.Config) (versions.Release, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return versions.Release{}, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return versions.Release{}, kubeapi.Explain("ask the API server for its version", err)
	}
	return versions.FromServer(version.GitVersion)
}

// APIServerForPods returns the URL at which pods on the pod network reach the API server without
// cluster DNS: the cluster IP of the Service kubernetes. It is empty if that cannot be read.
func APIServerForPods(ctx context.Context, cfg *rest.Config) string {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return ""
	}
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || net.ParseIP(service.Spec.ClusterIP) == nil || len(service.Spec.Ports) == 0 {
		return ""
	}
	return "https://" + net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port)))
}

// MachineNames returns the host names and addresses by which a cluster may know this machine.
func MachineNames() []string {
	var names []string
	if host, err := os.Hostname(); err == nil {
		names = append(names, host, strings.ToLower(host))
	}
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && !network.IP.IsLoopback() {
			names = append(names, network.IP.String())
		}
	}
	return names
}
