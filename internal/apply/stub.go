package apply

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Client changes one cluster. It is made by [New] and safe for use by several goroutines.
type Client struct{}

// New returns a client of the cluster that cfg names, without asking it anything yet.
func New(cfg *rest.Config, log *zap.Logger) (*Client, error) { return nil, nil }

// SetPatience sets how long an API server that was there may be away before an operation gives up (2 minutes if not set).
// The context of an operation can end it sooner.
func (c *Client) SetPatience(d time.Duration) {}

// Plan asks the API server what Apply would do.
func (c *Client) Plan(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	return nil, nil
}

// Apply makes the cluster hold objs.
func (c *Client) Apply(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	return nil, nil
}

// WaitOptions says how steady a Deployment must be. The zero value is good.
type WaitOptions struct {
	SteadyFor          time.Duration      // how long it must be available without any change; 0: 10 s
	Seen               int                // how often, at least; 0: 5
	Interval           time.Duration      // between two looks; 0: 1 s
	PullGrace          time.Duration      // how long an image may fail to be pulled; 0: 5 s
	UnschedulableGrace time.Duration      // how long a pod may find no node; 0: 30 s
	OnProgress         func(state string) // called when what is waited for changes; may be nil
}

// WaitSteady waits until the Deployment is steadily available.
func (c *Client) WaitSteady(ctx context.Context, ns, deployment string, o WaitOptions) error {
	return nil
}

// Owned lists everything labelled as belonging to the scheduler name: in all namespaces and at cluster scope.
func (c *Client) Owned(ctx context.Context, name, ns string) ([]*unstructured.Unstructured, error) {
	return nil, nil
}

// Delete deletes objs and waits until they are gone.
func (c *Client) Delete(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	return nil, nil
}

// Prune deletes the ConfigMaps, Secrets and revisions of the scheduler that none of the kept revisions refers to.
func (c *Client) Prune(ctx context.Context, ns, name string) (ChangeSet, error) { return nil, nil }

// Lock takes the Lease pmk-sched-<name>.
func (c *Client) Lock(ctx context.Context, ns, name, holder string) (unlock func(context.Context) error, err error) {
	return nil, nil
}

// RevisionStatus says how far a revision got.
type RevisionStatus string

// How far a revision got.
const (
	Pending  RevisionStatus = "pending"  // written before the cluster is touched
	Deployed RevisionStatus = "deployed" // was seen steady
	Failed   RevisionStatus = "failed"
)

// Revision is one state of a scheduler, numbered from 1.
type Revision struct {
	Number      int                          `json:"revision"`
	Name        string                       `json:"name"`
	Namespace   string                       `json:"namespace"`
	Status      RevisionStatus               `json:"status"`
	Created     time.Time                    `json:"created"`
	Description string                       `json:"description,omitempty"` // in the words of who deployed: release, image, …
	Reason      string                       `json:"reason,omitempty"`      // why it failed
	Objects     []*unstructured.Unstructured `json:"-"`
}

// SaveRevision writes objs as the next revision of scheduler name, pending.
func (c *Client) SaveRevision(ctx context.Context, ns, name, description string, objs []*unstructured.Unstructured) (*Revision, error) {
	return nil, nil
}

// SetRevisionStatus notes how a revision ended; reason says why it failed.
func (c *Client) SetRevisionStatus(ctx context.Context, r *Revision, status RevisionStatus, reason string) error {
	return nil
}

// Revisions returns all kept revisions of scheduler name, oldest first.
func (c *Client) Revisions(ctx context.Context, ns, name string) ([]*Revision, error) {
	return nil, nil
}

// LastDeployed returns the newest revision that was seen steady, or nil.
func LastDeployed(revisions []*Revision) *Revision { return nil }
