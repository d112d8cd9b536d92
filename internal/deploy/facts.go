package deploy

import (
	"errors"
	"slices"
	"time"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Facts are a plan's input in addition to its request. A zero value is unknown.
type Facts struct {
	// Cluster is the cluster's state. It is nil without one: then the release is required.
	Cluster *inspect.Info
	// Node are this control-plane node's credentials, or nil elsewhere.
	Node *inspect.NodeCredentials
	// APIServer is the API server's URL on the pod network, for the credentials serviceaccount. If it
	// is empty, the scheduler uses its Service's name, which needs cluster DNS.
	APIServer string
	// Branch is the release that was chosen for spec.source.branch: v1.24.3, or auto for the API
	// server's release.
	Branch string
	// Credentials are used if the request leaves the choice, instead of those for this machine.
	Credentials string
	// Image is the image's name, in which [image.ReleaseInTag] is replaced by the release.
	// Architectures are amd64 and arm64, or nil if unknown. MissingImage is the reason why no node can
	// get the image, or nil. Signature is its required signature, or nil.
	Image         string
	Architectures []string
	MissingImage  error
	Signature     *Signature
	// Plugins are compiled into the image. Rules returns a plugin's permissions by its name.
	Plugins []profiles.Plugin
	Rules   map[string]manifest.RulesFunc
	// Recorded is set if the request is from the cluster: its permissions that are not granted now are
	// confirmed.
	Recorded bool
	// Copied is the source of the request's inline configuration, or nil.
	Copied *CopiedFrom
	// SystemClosed is the reason why the cluster refuses the RoleBinding in kube-system, or empty.
	SystemClosed string
	// Version of pmk-sched, recorded in a label.
	Version string
	// Origin and Replaces are the plan's, for an upgrade.
	Origin   string
	Replaces int
	// Now is the time at which certificates must be valid.
	Now time.Time
}

// CopiedFrom is a file that has a configuration among other things, and the positions in it by the
// lines of the configuration.
type CopiedFrom struct {
	Name   string
	Places map[int]node.Position
}

// notes returns notes about the configuration with their lines in the file.
func (c *CopiedFrom) notes(all []profiles.Note) []profiles.Note {
	moved := slices.Clone(all)
	for i := range moved {
		at := c.Places[moved[i].Line]
		moved[i].Line, moved[i].Column = at.Line, at.Column
	}
	return moved
}

// explain returns an error about the configuration with the lines in the file.
func (c *CopiedFrom) explain(err error) error {
	var wrong *profiles.Error
	if !errors.As(err, &wrong) {
		return err
	}
	moved := &profiles.Error{Name: c.Name, Problems: slices.Clone(wrong.Problems)}
	for i := range moved.Problems {
		at := c.Places[moved.Problems[i].Line]
		moved.Problems[i].Line, moved.Problems[i].Column = at.Line, at.Column
	}
	return moved
}

// Signature is an image's required signature.
type Signature struct {
	// Key identifies the public key: its DER encoding's SHA-256 digest in base64.
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

// Release returns a plan's release: the chosen one, else the API server's.
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
