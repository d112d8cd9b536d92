package kubeapi

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // auth-provider: oidc of a kubeconfig, as kubectl
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// ConnectOptions choose a cluster and a user, like the kubectl flags with the same names.
type ConnectOptions struct {
	// Kubeconfig is the path to a kubeconfig. If it is empty, $KUBECONFIG, ~/.kube/config and then the
	// pod's ServiceAccount are used.
	Kubeconfig string
	// Loaded is a kubeconfig in memory. If it is set, no file and no environment variable is read.
	Loaded *clientcmdapi.Config
	// Context, Cluster, User and Server override the kubeconfig's selection.
	Context, Cluster, User, Server string
	// As and AsGroups impersonate a user.
	As       string
	AsGroups []string
	// RequestTimeout bounds one request. The default is 30 seconds.
	RequestTimeout time.Duration
	// UserAgent names the program in the API server's audit log.
	UserAgent string
	// Log gets the API server's warnings.
	Log *zap.Logger
}

// requestTimeout turns an API server that does not answer into an error.
const requestTimeout = 30 * time.Second

// ErrNoKubeconfig is returned by [Connect] when no cluster is configured.
var ErrNoKubeconfig = problem.Invalidf(
	"name one with --kubeconfig, or set KUBECONFIG; a control-plane node has an administrator's: "+
		"/etc/pf9/kube.d/kubeconfigs/admin.yaml on PMK, /etc/kubernetes/admin.conf with kubeadm",
	"find a cluster: there is no kubeconfig")

// Connect returns the configuration for a client, which bounds what the API server answers: see
// [BoundError]. It sends nothing.
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
		return nil, o.explain(err)
	}
	// Certificates and plugin settings that every request needs.
	if _, err := rest.HTTPClientFor(cfg); err != nil {
		return nil, problem.Invalidf("check the user of the context", "read kubeconfig: %w", err)
	}
	cfg.Wrap(boundAnswers)
	cfg.UserAgent = o.UserAgent
	if cfg.Timeout = o.RequestTimeout; cfg.Timeout <= 0 {
		cfg.Timeout = requestTimeout
	}
	return ClientConfig(cfg, o.Log), nil
}

// explain returns the error for a kubeconfig that selects no cluster.
func (o ConnectOptions) explain(err error) error {
	loaded, loadErr := LoadKubeconfig(o)
	if loadErr != nil {
		return loadErr
	}
	read, unread := o.files()
	file := "the kubeconfig"
	if len(read) > 0 {
		file = strings.Join(read, ", ")
	}
	context := o.Context
	if context == "" {
		context = loaded.CurrentContext
	}
	lacks := func(flag, name string, names []string) error {
		return problem.Invalidf("choose another "+flag, "read kubeconfig: %s has no %s %q: expected one of %s", file,
			strings.TrimPrefix(flag, "--"), name, strings.Join(append(names, unread...), ", "))
	}
	contexts, clusters, users := sorted(loaded.Contexts), sorted(loaded.Clusters), sorted(loaded.AuthInfos)
	switch {
	case len(contexts) == 0 && clientcmd.IsEmptyConfig(err):
		for _, path := range read {
			unread = append(unread, path+" has no context")
		}
		if len(unread) == 0 {
			return ErrNoKubeconfig
		}
		return fmt.Errorf("%w: %s", ErrNoKubeconfig, strings.Join(unread, ", "))
	case context != "" && !slices.Contains(contexts, context):
		return lacks("--context", context, contexts)
	case o.Cluster != "" && !slices.Contains(clusters, o.Cluster):
		return lacks("--cluster", o.Cluster, clusters)
	case o.User != "" && !slices.Contains(users, o.User):
		return lacks("--user", o.User, users)
	case context == "" && clientcmd.IsEmptyConfig(err):
		return problem.Invalidf("choose one with --context", "read kubeconfig: %s has no current context; it has %s", file,
			strings.Join(append(contexts, unread...), ", "))
	}
	return problem.Invalidf("", "read kubeconfig: %w", err)
}

func sorted[T any](byName map[string]T) []string { return slices.Sorted(maps.Keys(byName)) }

// files returns the kubeconfigs that exist, and messages about others. The file in the home
// directory need not exist.
func (o ConnectOptions) files() (read, unread []string) {
	if o.Loaded != nil {
		return nil, nil
	}
	for _, path := range o.rules().GetLoadingPrecedence() {
		switch _, err := os.Stat(path); {
		case err == nil:
			read = append(read, path)
		case path != clientcmd.RecommendedHomeFile:
			unread = append(unread, path+" does not exist")
		}
	}
	return read, unread
}

// LoadKubeconfig returns the kubeconfig that [Connect] uses, with absolute paths. It is empty if
// there is none.
func LoadKubeconfig(o ConnectOptions) (*clientcmdapi.Config, error) {
	if o.Loaded != nil {
		return o.Loaded, nil
	}
	loaded, err := o.rules().Load()
	if err != nil {
		return nil, problem.Invalidf(unreadableHint(err), "read kubeconfig: %w", err)
	}
	return loaded, nil
}

// unreadableHint returns a hint for a kubeconfig that the user may not read, or "". client-go keeps
// only the text of the error.
func unreadableHint(err error) string {
	if !strings.Contains(err.Error(), fs.ErrPermission.Error()) {
		return ""
	}
	return "an administrator's kubeconfig on a node is readable for root only: run as root, or name another with --kubeconfig"
}

func (o ConnectOptions) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	rules.WarnIfAllMissing = false
	return rules
}
