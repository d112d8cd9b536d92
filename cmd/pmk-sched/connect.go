package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
)

// connect turns the global flags into the configuration of a client, by the
// rules of kubectl: --kubeconfig, $KUBECONFIG, ~/.kube/config, then the pod's
// ServiceAccount. Nothing is sent yet.
func connect(c *cli.Context, u *ui) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = global(c, flagKubeconfig)
	rules.WarnIfAllMissing = false
	overrides := &clientcmd.ConfigOverrides{CurrentContext: global(c, flagContext)}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, errNoKubeconfig
		}
		return nil, usagef("", "read kubeconfig: %s", err)
	}
	cfg.UserAgent = fmt.Sprintf("pmk-sched/%s", ownVersion())
	cfg.Timeout = requestTimeout
	return kubeapi.ClientConfig(cfg, u.log), nil
}

// errNoKubeconfig says that nothing tells which cluster is meant.
var errNoKubeconfig error = &usageError{
	problem: "find a cluster: there is no kubeconfig",
	hint: "name one with --kubeconfig, or set KUBECONFIG; a master has an administrator's: " +
		"/etc/pf9/kube.d/kubeconfigs/admin.yaml on PMK, /etc/kubernetes/admin.conf with kubeadm",
}

// requestTimeout bounds one request, so that a cluster that does not answer is
// an error and not a wait.
const requestTimeout = 30 * time.Second

// apiServerForPods is the address at which pods on the pod network reach the API
// server: the cluster address of the service kubernetes, which needs no cluster
// DNS. Empty when it may not be read.
func apiServerForPods(ctx context.Context, cfg *rest.Config) string {
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
