// Package fleet runs the commands for one cluster on many clusters. It takes their kubeconfigs from
// a [Source], keeps them in memory only, and stores nothing: the clusters are the only state.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// Cluster is a cluster in a fleet.
type Cluster struct {
	Name string
	// Labels are from the object that describes the cluster, or from its kubeconfig context.
	Labels map[string]string

	// connection reaches the cluster, unless err is set: the reason why its kubeconfig is not used.
	connection kubeapi.ConnectOptions
	err        error
}

// List returns the source's clusters whose labels match its selector, sorted by name. A cluster
// whose kubeconfig is missing, damaged or refused is in the list: using it fails.
func List(ctx context.Context, s *session.Session, from Source) ([]Cluster, error) {
	selector, err := labels.Parse(from.Selector)
	if err != nil {
		return nil, problem.Invalidf("", "invalid --selector %q: %w", from.Selector, err)
	}
	found, err := from.clusters(ctx, s, selector)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c Cluster) bool { return !selector.Matches(labels.Set(c.Labels)) })
	if len(found) == 0 {
		return nil, problem.Invalidf("check --from, --context and --selector", "find clusters: %s has none that match",
			from.describe())
	}
	slices.SortStableFunc(found, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// session returns a session for the cluster. It reads no files from this node, which does not
// belong to the cluster.
func (c Cluster) session(s *session.Session) (*session.Session, error) {
	if c.err != nil {
		return nil, c.err
	}
	one := *s
	one.Connection, one.NodeRoot = c.connection, inspect.NoNode
	one.Log = s.Log.With(zap.String("cluster", c.Name))
	one.Connection.Log = one.Log
	return &one, nil
}

// loaded returns options to connect with a kubeconfig in memory and base's general settings.
func loaded(base kubeapi.ConnectOptions, kubeconfig *clientcmdapi.Config) kubeapi.ConnectOptions {
	return kubeapi.ConnectOptions{
		Loaded: kubeconfig, As: base.As, AsGroups: base.AsGroups, RequestTimeout: base.RequestTimeout,
		UserAgent: base.UserAgent,
	}
}

// minify returns the part of a kubeconfig that a context needs. Clients change it.
func minify(kubeconfig *clientcmdapi.Config, name string) (*clientcmdapi.Config, error) {
	context := kubeconfig.Contexts[name]
	if context == nil {
		return nil, fmt.Errorf("the kubeconfig has no context %q", name)
	}
	cluster, user := kubeconfig.Clusters[context.Cluster], kubeconfig.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil && context.AuthInfo != "" {
		return nil, fmt.Errorf("the kubeconfig lacks the cluster or the user of context %q", name)
	}
	if user == nil {
		user = clientcmdapi.NewAuthInfo()
	}
	return single(name, cluster.DeepCopy(), user.DeepCopy()), nil
}

// single returns a kubeconfig with one context, whose name is in errors.
func single(name string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name] = cluster, user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return config
}

// sortByWave sorts clusters by a label's value, numbers by their value and before other text. It
// refuses clusters without the label. The order within a wave does not change.
func sortByWave(clusters []Cluster, label string) error {
	var without []string
	for _, c := range clusters {
		if _, found := c.Labels[label]; !found {
			without = append(without, c.Name)
		}
	}
	if len(without) > 0 {
		return problem.Invalidf("label them, or leave them out with --selector "+label,
			"order clusters by --wave %s: %d of %d have no such label: %s", label, len(without), len(clusters),
			strings.Join(without[:min(len(without), mostNamed)], ", "))
	}
	slices.SortStableFunc(clusters, func(a, b Cluster) int { return compareWaves(a.Labels[label], b.Labels[label]) })
	return nil
}

// mostNamed limits the clusters that an error names.
const mostNamed = 10

func compareWaves(a, b string) int {
	digits := func(text string) (string, bool) {
		return strings.TrimLeft(text, "0"), text != "" && strings.Trim(text, "0123456789") == ""
	}
	x, xNumber := digits(a)
	y, yNumber := digits(b)
	switch {
	case xNumber && yNumber:
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	case xNumber:
		return -1
	case yNumber:
		return 1
	}
	return strings.Compare(a, b)
}
