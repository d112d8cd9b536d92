package fleet

import (
	"context"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// Values of [Source.From]. Any other value is a directory.
const (
	FromContexts        = "contexts"
	FromArgoCD          = "argocd"
	FromClusterAPI      = "cluster-api"
	FromClusterProfiles = "cluster-profiles"
)

// Source is the origin of a fleet's kubeconfigs. The session's context is a path.Match pattern for
// [FromContexts], the context in each file for a directory, and the management cluster's context
// for the others.
type Source struct {
	// From is one of the constants, or a directory with kubeconfigs.
	From string
	// Namespace of the objects that describe the clusters. If it is empty, it is argocd for Argo CD,
	// and any namespace otherwise.
	Namespace string
	// Selector is a label selector for clusters.
	Selector string
	// AllowExec allows credential plugins that a Secret's content names. They run as this user.
	AllowExec bool
	// AccessProviders is a file with the credential plugins for ClusterProfiles.
	AccessProviders string
}

// clusters returns the source's clusters. A source may leave out clusters that the selector does
// not match.
func (o Source) clusters(ctx context.Context, s *session.Session, selector labels.Selector) ([]Cluster, error) {
	base := s.Connection
	managed := slices.Contains([]string{FromArgoCD, FromClusterAPI, FromClusterProfiles}, o.From)
	if !managed && base.Cluster+base.User+base.Server != "" {
		return nil, problem.Invalidf("", "--cluster, --user and --server are for one cluster, not for --from %s", o.From)
	}
	if o.From == FromContexts {
		return contexts(base, base.Context)
	}
	switch o.From {
	case FromArgoCD:
		return o.argoCD(ctx, base)
	case FromClusterAPI:
		return o.clusterAPI(ctx, base, selector)
	case FromClusterProfiles:
		return o.clusterProfiles(ctx, base, selector)
	}
	if info, err := os.Stat(o.From); err != nil || !info.IsDir() {
		return nil, problem.Invalidf("", "invalid --from %q: must be %s, %s, %s, %s or a directory", o.From, FromContexts,
			FromArgoCD, FromClusterAPI, FromClusterProfiles)
	}
	return directory(base, o.From)
}

// describe names the source in messages.
func (o Source) describe() string {
	switch o.From {
	case FromContexts:
		return "the kubeconfig"
	case FromArgoCD, FromClusterAPI, FromClusterProfiles:
		return "the management cluster (--from " + o.From + ")"
	}
	return "directory " + o.From
}
