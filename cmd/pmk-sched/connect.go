package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client limits of this program's own requests: high enough that a deployment
// is not slowed down by them, low enough to be no burden.
const (
	clientQPS   = 50
	clientBurst = 100
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
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.Timeout = requestTimeout
	cfg.WarningHandler = apiWarnings{u.log}
	return cfg, nil
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

// apiWarnings logs the warnings that an API server sends with its answers.
type apiWarnings struct{ log *zap.Logger }

// HandleWarningHeader logs one warning.
func (w apiWarnings) HandleWarningHeader(_ int, _ string, text string) {
	w.log.Info("warning of the API server", zap.String("text", text))
}
