package check

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Check is one question.
type Check struct {
	Name        string // stable, for machines: `namespace-exists`
	Description string // for people: `namespace kube-system exists`
	Warning     bool   // a failure is worth knowing, but stops nothing
	Run         func(ctx context.Context) (detail string, err error)
}

// Status is the answer to a check.
type Status string

// Answers.
const (
	Passed  Status = "passed"
	Warned  Status = "warning"
	Failed  Status = "failed"
	Skipped Status = "skipped" // the check could not be made: see the detail
)

// Outcome is an answered check.
type Outcome struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Status      Status `json:"status"`
	Detail      string `json:"detail,omitempty"`
	Hint        string `json:"hint,omitempty"`
}

// RunAll runs the checks in order and tells observe (may be nil) each outcome. Its error is an [*FailedError] when one failed.
func RunAll(ctx context.Context, checks []Check, observe func(Outcome)) ([]Outcome, error) {
	return nil, nil
}

// PreflightOptions says what is going to be deployed.
type PreflightOptions struct {
	Name, Namespace string
	Image           string
	Objects         []*unstructured.Unstructured // as they will be applied
	Port            int                          // 0: not checked
	TakenPorts      map[int]string               // ports known to be taken on the nodes, and by whom; ours must not be in it
	Log             *zap.Logger
}

// Preflight returns the checks to run before deploying.
func Preflight(cfg *rest.Config, o PreflightOptions) ([]Check, error) { return nil, nil }

// VerifyOptions says which scheduler to verify, and how.
type VerifyOptions struct {
	Name      string        // scheduler name, and name of its Deployment
	Namespace string        // of its Deployment and Lease
	Image     string        // of the pod that is to be scheduled; it does not have to start
	Timeout   time.Duration // how long the pod may stay unbound; 0: 60 s
	Keep      bool          // leave the namespace and the pod
	Log       *zap.Logger
	OnStep    func(name string) (done func(err error))
}

// Verification is what Verify saw.
type Verification struct {
	Scheduler  string   `json:"scheduler"`
	Namespace  string   `json:"namespace"` // of the pod
	Pod        string   `json:"pod"`
	Node       string   `json:"node"`
	BoundBy    string   `json:"boundBy"`            // the scheduler's name as its event gives it
	Instance   string   `json:"instance,omitempty"` // which process of it
	Seconds    float64  `json:"seconds"`            // from creation to bound
	MeasuredBy string   `json:"measuredBy"`         // which clock Seconds is of
	Notes      []string `json:"notes,omitempty"`
}

// Verify proves that the scheduler schedules.
func Verify(ctx context.Context, cfg *rest.Config, o VerifyOptions) (*Verification, error) {
	return nil, nil
}
