package kubeapi

import (
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// ConnectOptions choose a cluster and a user, like the flags of kubectl with the same names.
type ConnectOptions struct {
	// Kubeconfig is the path of a kubeconfig. If it is empty, $KUBECONFIG, ~/.kube/config and then
	// the pod's ServiceAccount are used.
	Kubeconfig string
	// Loaded is a kubeconfig in memory. If it is set, no file and no environment variable is read.
	Loaded *clientcmdapi.Config
	// Context, Cluster, User and Server override the selection of the kubeconfig.
	Context, Cluster, User, Server string
	// As and AsGroups impersonate a user.
	As       string
	AsGroups []string
	// RequestTimeout bounds one request. The default is 30 seconds.
	RequestTimeout time.Duration
	// UserAgent names the program in the audit log of the API server.
	UserAgent string
	// Log gets the warnings of the API server.
	Log *zap.Logger
}

// requestTimeout turns an API server that does not answer into an error.
const requestTimeout = 30 * time.Second

// ErrNoKubeconfig is returned by [Connect] when no cluster is configured.
var ErrNoKubeconfig = problem.Invalidf(
	"name one with --kubeconfig, or set KUBECONFIG; a control-plane node has an administrator's: "+
		"/etc/pf9/kube.d/kubeconfigs/admin.yaml on PMK, /etc/kubernetes/admin.conf with kubeadm",
	"find a cluster: there is no kubeconfig")

// Connect returns the configuration of a client. It sends nothing.
func Connect(o ConnectOptions) (*rest.Config, error) {
	overrides := &clientcmd.ConfigOverrides{
		CurrentContext: o.Context,
		Context:        clientcmdapi.Context{Cluster: o.Cluster, AuthInfo: o.User},
		ClusterInfo:    clientcmdapi.Cluster{Server: o.Server},
		AuthInfo:       clientcmdapi.AuthInfo{Impersonate: o.As, ImpersonateGroups: o.AsGroups},
	}
	source := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.rules(), overrides)
	if o.Loaded != nil {
		source = clientcmd.NewNonInteractiveClientConfig(*o.Loaded, o.Context, overrides, nil)
	}
	cfg, err := source.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, ErrNoKubeconfig
		}
		return nil, problem.Invalidf("", "read kubeconfig: %w", err)
	}
	cfg.UserAgent = o.UserAgent
	if cfg.Timeout = o.RequestTimeout; cfg.Timeout <= 0 {
		cfg.Timeout = requestTimeout
	}
	return ClientConfig(cfg, o.Log), nil
}

// LoadKubeconfig returns the kubeconfig that [Connect] uses, with absolute paths. It is empty if
// there is none.
func LoadKubeconfig(o ConnectOptions) (*clientcmdapi.Config, error) {
	if o.Loaded != nil {
		return o.Loaded, nil
	}
	loaded, err := o.rules().Load()
	if err != nil {
		return nil, problem.Invalidf("", "read kubeconfig: %w", err)
	}
	return loaded, nil
}

func (o ConnectOptions) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	rules.WarnIfAllMissing = false
	return rules
}
