package deploy

import (
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Facts are the input of a plan in addition to its request. A zero value is unknown.
type Facts struct {
	// Cluster is the state of the cluster. It is nil without one: then the release is required.
	Cluster *inspect.Info
	// Node are the credentials of this control-plane node, or nil elsewhere.
	Node *inspect.NodeCredentials
	// APIServer is the URL of the API server on the pod network, for the credentials serviceaccount.
	// If it is empty, the scheduler uses the name of its Service, which needs cluster DNS.
	APIServer string
	// Branch is the release that was chosen for spec.source.branch: v1.24.3, or auto for the release
	// of the API server.
	Branch string
	// Credentials are used if the request leaves the choice, instead of those for this machine.
	Credentials string
	// Image is the name of the image, in which [image.ReleaseInTag] is replaced by the release.
	// Architectures are amd64 and arm64, or nil if unknown. MissingImage is the reason why no node can
	// get the image, or nil. Signature is its required signature, or nil.
	Image         string
	Architectures []string
	MissingImage  error
	Signature     *Signature
	// Plugins are compiled into the image. Rules returns the permissions of a plugin by its name.
	Plugins []profiles.Plugin
	Rules   map[string]manifest.RulesFunc
	// Recorded is set if the request comes out of the cluster: those of its permissions that are not
	// granted now are confirmed.
	Recorded bool
	// SystemClosed is the reason why the cluster refuses the RoleBinding in kube-system, or empty.
	SystemClosed string
	// Wirings are extenders that pmk-sched deploys itself; they come after the others.
	Wirings []manifest.Wiring
	// Version of pmk-sched, recorded in a label.
	Version string
	// Origin and Replaces of the plan, for an upgrade.
	Origin   string
	Replaces int
	// Now is the time at which certificates must be valid.
	Now time.Time
}

// Signature is the required signature of an image.
type Signature struct {
	// Key identifies the public key: base64 of the SHA-256 digest of its DER encoding.
	Key string
	// Err is the reason why the signature is not verified. It is nil if it is.
	Err error
}

// WantsNodeCredentials reports whether a plan may need the node's scheduler kubeconfig, which the
// caller reads before it calls [NewPlan].
func (f Facts) WantsNodeCredentials(r *v1alpha1.CustomScheduler) bool {
	return f.credentials(r) != CredentialsServiceAccount
}

// credentials returns the credentials that the request or an earlier deployment chose, or "".
func (f Facts) credentials(r *v1alpha1.CustomScheduler) string {
	for _, mode := range []string{r.Spec.Credentials, f.Credentials} {
		if IsChosen(mode) {
			return mode
		}
	}
	return ""
}

// Release returns the release of a plan: the chosen one, else the release of the API server.
func (f Facts) Release() (versions.Release, error) {
	switch {
	case IsChosen(f.Branch):
		return versions.Parse(f.Branch)
	case f.Cluster != nil:
		return f.Cluster.Release, nil
	}
	return versions.Release{},
		problem.Invalidf("specify a release, for example --branch v1.24.3", "--branch is required without a cluster")
}
